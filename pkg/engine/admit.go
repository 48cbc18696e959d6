package engine

// stuck is the index of a sequence for which no other may be preempted: the next victim is in the step in flight, and a
// tier could load into its blocks (Scheduler._request_blocks_can_be_freed).
const stuck = -2

// admit schedules waiting requests in queue order up to the first that does not fit.
func (e *Engine) admit(b *batch, budget *int) {
	for *budget > 0 && len(e.wait.heap) > 0 && e.Running() < e.cfg.MaxNumSeqs {
		s := e.wait.heap[0].seq
		q := &e.seqs[s]
		tokens := int(q.input + q.generated)
		if e.features && e.passOver(s) || e.offload != nil && e.skipStoring(s) {
			continue
		}
		cached := e.cache.Lookup(q.kv, tokens-1)
		if e.offload != nil {
			switch e.tryLoad(s, cached, tokens) {
			case passed:
				continue
			case blocked:
				return
			}
		}
		if e.encoder != nil && e.awaitsItems(s, cached) {
			e.pass(s)
			continue
		}
		if e.defersPrompt(cached, tokens) {
			return
		}
		n := e.limitChunk(tokens - cached)
		if n > *budget && !e.cfg.ChunkedPrefill {
			return
		}
		if n = e.align(q, cached, min(n, *budget)); n == 0 {
			return
		}
		if e.encoder != nil {
			if n = e.cutAtItem(s, cached, n); n == 0 {
				e.skipping.items = true
				e.pass(s)
				continue
			}
		}
		reserve := cached + n
		if e.cfg.ReserveFullSequence {
			reserve = tokens
		}
		if !e.allocate(q, cached+n, tokens, reserve) {
			if e.encoder != nil {
				e.encoder.releaseAll(s)
			}
			return
		}
		e.dequeue(s)
		if e.encoder != nil {
			e.enterItems(b, s, cached)
		}
		q.computed = int32(cached)
		*budget -= n
		e.enter(b, q, s, tokens, n, cached)
	}
}

// allocate gives the waiting q, which has this many tokens, its hits and the blocks for its first upto tokens, or for
// all. It returns false if they do not fit.
func (e *Engine) allocate(q *sequence, upto, tokens, reserve int) bool {
	if e.offload != nil && e.offload.cfg.WholePrompts {
		return e.cache.AdmitAhead(q.kv, upto, tokens, tokens, e.spareBlocks())
	}
	return e.cache.Admit(q.kv, upto, reserve, e.spareBlocks())
}

// spareBlocks returns how many blocks must stay free when a request is admitted.
func (e *Engine) spareBlocks() int {
	if e.Running() > 0 {
		return e.cfg.WatermarkBlocks
	}
	return 0
}

// enter makes q, sequence s, which is in no queue and has blocks for n more tokens, run and compute them in b. It found
// cached of its tokens in the cache.
func (e *Engine) enter(b *batch, q *sequence, s int32, tokens, n, cached int) {
	q.state = individual
	q.admission = e.admissions
	e.admissions++
	e.individual = append(e.individual, s)
	if e.lora != nil {
		e.lora.enter(q)
	}
	if e.offload != nil {
		e.offload.uses[s].entered = b.number
	}
	if e.cadence != nil {
		e.cadence.setPassed(s, false)
		e.cadence.prefills = e.cadence.prefills || cached < tokens-1
	}
	if e.spec != nil {
		e.computeDrafted(b, q, n)
	} else {
		e.compute(b, q, n)
	}
	if q.admitted {
		b.Resumed = append(b.Resumed, q.tag)
		return
	}
	q.admitted = true
	b.Admitted = append(b.Admitted, Admission{Tag: q.tag, Cached: cached})
	e.stats.QueriedTokens += int64(tokens)
	e.stats.CachedTokens += int64(cached)
	if q.pulled {
		e.stats.PulledTokens += int64(tokens)
	}
}
