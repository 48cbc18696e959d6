package sim

import (
	"blis/pkg/cluster"
	"blis/pkg/record"
)

// limits are what makes a request impossible for the replicas of a deployment.
type limits struct {
	modelLen  int64 // 0: no limit
	slots     int64 // in the cache
	blockSize int64
	// budget bounds a prompt that must be computed in one step; 0: no limit.
	budget int64
}

func limitsOf(d *cluster.Deployment) limits {
	e := &d.Engine
	l := limits{modelLen: int64(e.MaxModelLen), slots: int64(d.Blocks()) * int64(e.BlockSize), blockSize: int64(e.BlockSize)}
	if !e.EnableChunkedPrefill {
		l.budget = int64(e.MaxNumBatchedTokens)
	}
	return l
}

// refuses says why a request of so many tokens cannot run, "" if it can. The
// last token generated is never computed and needs no slot.
func (l *limits) refuses(input, output int64) string {
	slots := input + output - 1
	switch {
	case l.modelLen > 0 && input+output > l.modelLen:
		return record.ReasonTooLongForModel
	case slots > l.slots:
		return record.ReasonTooLongForCache
	case l.budget > 0 && slots > l.budget:
		return record.ReasonTooLongForBudget
	}
	return ""
}
