package engine

// HeadOfLine returns the request that blocked the wait queue when the last batch was formed,
// although batch slots were free: the first waiting request if it does not fit, or the one with the
// most prompt left if the batch is at its token limit. A prompt of freeTokens would get blocks. ok
// is false if no request blocks the queue: nothing waits, no slot is free, a sequence was
// preempted, or many short prompts share the token limit.
func (e *Engine) HeadOfLine() (tag int32, freeTokens int, ok bool) {
	if len(e.formed) == 0 || e.Waiting() == 0 || e.Running() >= e.cfg.MaxNumSeqs {
		return 0, 0, false
	}
	b := e.formed[len(e.formed)-1]
	if len(b.Preempted) > 0 || e.cadence != nil && e.cadence.stops {
		return 0, 0, false
	}
	freeTokens = (e.cache.Free() - e.cfg.WatermarkBlocks) * e.cache.BlockSize()
	if b.Prefill+b.Decode < int64(e.cfg.MaxNumBatchedTokens) {
		first := e.firstBlocked()
		if first == none {
			return 0, 0, false
		}
		return e.seqs[first].tag, freeTokens, true
	}
	most := int32(0)
	for _, s := range e.individual {
		if q := &e.seqs[s]; q.remaining() > most {
			tag, most = q.tag, q.remaining()
		}
	}
	return tag, freeTokens, most > 0
}
