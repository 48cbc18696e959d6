package engine

// limitChunks sets chunkLimit for a batch that is formed now.
func (e *Engine) limitChunks() {
	t, requests := e.cfg.LongPrefillTokenThreshold, e.Running()+e.Waiting()
	switch {
	case t == 0 || requests == 0:
	case requests == 1 && e.cfg.ThresholdSparesLone:
		t = 0
	case e.cfg.AdaptiveThreshold:
		t = max(t, e.cfg.MaxNumBatchedTokens/requests)
	}
	if most := e.cfg.MaxSequenceTokens; most > 0 && (t == 0 || t > most) {
		t = most
	}
	e.chunkLimit = t
}

// limitChunk applies chunkLimit to n tokens.
func (e *Engine) limitChunk(n int) int {
	if t := e.chunkLimit; 0 < t && t < n {
		return t
	}
	return n
}
