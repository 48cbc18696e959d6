package engine

// Limit is a limit of batches.
type Limit uint8

// What stops the wait queue when a batch is formed: nothing, if it is empty then; no free batch slot; else a spent
// token budget; else too few free blocks, for the first request or for a running one.
const (
	noLimit Limit = iota
	SlotLimit
	BudgetLimit
	BlockLimit
	limitCount
)

// LimitCount is the number of limits.
const LimitCount = int(limitCount)

// StoppedBy returns what stopped the wait queue when the last batch was formed.
func (e *Engine) StoppedBy() Limit {
	if len(e.formed) == 0 || e.Waiting() == 0 {
		return noLimit
	}
	b := e.formed[len(e.formed)-1]
	left := e.cfg.MaxNumBatchedTokens - int(b.Prefill+b.Decode)
	switch {
	case b.Running >= e.cfg.MaxNumSeqs:
		return SlotLimit
	case left == 0 || !e.cfg.ChunkedPrefill && e.firstWaitingTokens() > left:
		return BudgetLimit
	}
	return BlockLimit
}

// firstWaitingTokens is the number of tokens that the first waiting request has to compute in a step.
func (e *Engine) firstWaitingTokens() int {
	q := &e.seqs[e.wait.heap[0].seq]
	tokens := int(q.input + q.generated)
	return e.limitChunk(tokens - e.cache.Match(e.cache.Path(q.kv), tokens-1))
}
