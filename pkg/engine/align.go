package engine

import "blis/pkg/kv"

// align shortens a chunk of n tokens of q after the first start tokens. It may leave nothing.
func (e *Engine) align(q *sequence, start, n int) int {
	if e.cfg.StateBlock == 0 || n == 0 {
		return n
	}
	if e.cfg.StateChunks >= kv.AlignBlocks {
		return e.alignBlocks(q, start, n)
	}
	size, tokens := e.cfg.StateBlock, int(q.input+q.emitted)
	if e.cfg.StateChunks == kv.AlignPrompts {
		if tokens = int(q.input); q.emitted > 0 {
			return n
		}
	} else if start >= max(int(q.input), tokens-1) {
		return n
	}
	last := tokens - tokens%size
	switch end := start + n; {
	case end < last:
		n -= n % size
	case start < last && last < end:
		n = last - start
	}
	if shared := e.cache.Junction(q.kv) - start; e.cfg.StateChunks == kv.AlignShared && q.state == waiting &&
		size <= shared && shared < n {
		n = shared - shared%size
	}
	return n
}

// alignBlocks is align since vLLM 0.28.
func (e *Engine) alignBlocks(q *sequence, start, n int) int {
	size, tokens, end := e.cfg.StateBlock, int(q.input+q.emitted), start+n
	prefillEnd := max(int(q.input), tokens-1)
	if start >= prefillEnd {
		return n
	}
	last := tokens - tokens%size
	if e.cfg.StateChunks == kv.AlignResumable {
		last = (tokens - 1) / size * size
	}
	// A checkpoint is at the last end of a block before the end of the prompt.
	inside := e.cfg.StateCheckpoints > 0 && end >= prefillEnd && start%size == 0 &&
		start+size <= (prefillEnd-1)/size*size
	if end < prefillEnd {
		most := e.cfg.MaxNumBatchedTokens
		for _, limit := range [...]int{e.cfg.MaxSequenceTokens, e.cfg.LongPrefillTokenThreshold} {
			if limit > 0 {
				most = min(most, limit)
			}
		}
		if aligned := end - end%size; aligned > start || size <= most {
			end = aligned
		}
	}
	cut := func(stop int) {
		if start < stop && stop < end {
			end = stop
		}
	}
	if junction := e.cache.Junction(q.kv); start < junction && junction < end {
		cut(start + (junction-start)/size*size)
	}
	if !inside {
		if start%size != 0 {
			cut((start/size + 1) * size)
		}
		cut(last)
	}
	return max(end-start, 0)
}
