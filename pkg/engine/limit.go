package engine

// Limit is a limit of batches.
type Limit uint8

// What stops the wait queue when a batch is formed: nothing, if it is empty then; no free batch slot; else a spent
// token budget, or one without prompts by the PrefillInterval; else too few free blocks, for the first request or for a
// running one; or all waiting requests have adapters that the running ones leave no room for, or grammars that are not
// compiled, or begin with items that the encoder has no room for.
const (
	noLimit Limit = iota
	SlotLimit
	BudgetLimit
	BlockLimit
	AdapterLimit
	EncoderLimit
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
	if e.spec != nil {
		left = e.spec.left
	}
	switch {
	case b.Running >= e.cfg.MaxNumSeqs:
		return SlotLimit
	case left <= 0 || e.spec != nil && e.spec.padding || e.cadence != nil && e.cadence.stops:
		return BudgetLimit
	}
	first := e.firstBlocked()
	switch {
	case first == none && e.skipping.adapters:
		return AdapterLimit
	case first == none && e.skipping.items && !e.lacksEmbeddings():
		return EncoderLimit
	case first == none: // all wait for transfers, embeddings, their grammars or their tokens in flight
		return noLimit
	case !e.cfg.ChunkedPrefill && e.tokensToCompute(first) > left:
		return BudgetLimit
	}
	return BlockLimit
}

// firstBlocked is the first request that did not fit into the last batch though it had batch slots and tokens left;
// none if all others wait for transfers, for adapters, for their grammars, for the encoder or for
// their tokens in flight.
func (e *Engine) firstBlocked() int32 {
	switch {
	case e.offload != nil:
		return e.offload.blocked
	case e.skips():
		return e.skipping.blocked
	}
	return e.wait.heap[0].seq
}

// tokensToCompute is the number of tokens that a request that does not run has to compute in a step.
func (e *Engine) tokensToCompute(s int32) int {
	q := &e.seqs[s]
	tokens := int(q.input + q.generated)
	if q.state == loading {
		return e.limitChunk(tokens - int(q.computed))
	}
	return e.limitChunk(tokens - e.cache.Match(e.cache.Path(q.kv), tokens-1))
}
