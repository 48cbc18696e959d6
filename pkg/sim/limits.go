package sim

import (
	"blis/pkg/cluster"
	"blis/pkg/kv"
	"blis/pkg/stream"
)

// limits are what makes a request impossible for the replicas of a deployment.
type limits struct {
	modelLen  int64 // 0: no limit
	blocks    int64 // of the cache
	blockSize int64
	hold      kv.Window
	// budget bounds a prompt that must be computed in one step; 0: no limit.
	budget int64
}

func limitsOf(d *cluster.Deployment, hold kv.Window) limits {
	e := &d.Engine
	l := limits{modelLen: int64(e.MaxModelLen), blocks: int64(d.Blocks()), blockSize: int64(e.BlockSize), hold: hold}
	if !e.EnableChunkedPrefill {
		l.budget = int64(e.MaxNumBatchedTokens)
	}
	return l
}

// hittable is how many tokens of a prompt can be found cached: full blocks, and not
// the last token, which is computed whatever is there.
func (l *limits) hittable(input int64) int64 { return l.blockSize * ((input - 1) / l.blockSize) }

// refuses says why a request of so many tokens cannot run, "" if it can. The
// last token generated is never computed and needs no slot.
func (l *limits) refuses(input, output int64) string {
	slots := input + output - 1
	blocks := (slots + l.blockSize - 1) / l.blockSize
	blocks += int64(l.hold.Extra) * min(blocks, int64(l.hold.Blocks))
	switch {
	case l.modelLen > 0 && input+output > l.modelLen:
		return stream.ReasonTooLongForModel
	case blocks > l.blocks:
		return stream.ReasonTooLongForCache
	case l.budget > 0 && slots > l.budget:
		return stream.ReasonTooLongForBudget
	}
	return ""
}
