package sim

import (
	"blis/pkg/cluster"
	"blis/pkg/engine"
	"blis/pkg/stream"
)

// limits determine which requests the replicas of a deployment can never serve.
type limits struct {
	modelLen  int64 // 0: no limit
	blocks    int64 // in the cache
	blockSize int64
	// needed is how many blocks a lone request with this many tokens needs.
	needed func(tokens int) int
	// budget limits a prompt that must be computed in one step; 0: no limit.
	budget int64
	// drafts is for how many more tokens than it computes a request has blocks at most.
	drafts int64
	// adapters is how many they serve at a time.
	adapters int32
	// itemTokens is the maximum number of tokens of an image or another item, 0 if they serve none.
	itemTokens int32
}

func limitsOf(d *cluster.Deployment) limits {
	e := &d.Engine
	l := limits{modelLen: int64(e.MaxModelLen), blocks: int64(d.UsableBlocks()), blockSize: int64(d.HitSize()),
		needed: d.SequenceBlocks(), drafts: d.DraftSlots(), adapters: int32(e.MaxLoras),
		itemTokens: int32(e.MaxTokensPerItem)}
	if !e.EnableChunkedPrefill {
		l.budget = int64(e.TokensOfStep())
	}
	return l
}

// endsByEOS reports whether a request with these token counts that an end-of-sequence token ends has then not reached
// the model's length, which would end it, too.
func (l *limits) endsByEOS(input, output int64) bool {
	return l.modelLen == 0 || input+output < l.modelLen
}

// maxCachedTokens is the largest number of prompt tokens that can be cache hits: full blocks without
// the last token, which is always computed.
func (l *limits) maxCachedTokens(input int64) int64 { return l.blockSize * ((input - 1) / l.blockSize) }

// rejectReason is why a request with these token counts and this adapter cannot run, "" if it can. The last token
// generated is never computed and needs no slot.
func (l *limits) rejectReason(input, output int64, adapter string) string {
	slots := input + output - 1
	switch {
	case adapter != "" && l.adapters == 0:
		return stream.ReasonNoLoRA
	case l.modelLen > 0 && input+output > l.modelLen:
		return stream.ReasonTooLongForModel
	case int64(l.needed(int(l.withDrafts(slots)))) > l.blocks:
		return stream.ReasonTooLongForCache
	case l.budget > 0 && slots > l.budget:
		return stream.ReasonTooLongForBudget
	}
	return ""
}

// itemsReason is rejectReason for the items of a request.
func (l *limits) itemsReason(items []engine.Item) string {
	for i := range items {
		switch {
		case l.itemTokens == 0:
			return stream.ReasonNoEncoder
		case items[i].Tokens > l.itemTokens:
			return stream.ReasonTooLongForEncoder
		}
	}
	return ""
}

// withDrafts is the most tokens that a request of which this many are computed has blocks for.
func (l *limits) withDrafts(slots int64) int64 {
	if l.drafts > 0 && l.modelLen > 0 {
		return min(slots+l.drafts, l.modelLen)
	}
	return slots + l.drafts
}
