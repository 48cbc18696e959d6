package engine

import "fmt"

// Check recomputes the engine's running totals and returns the first mismatch. It visits every
// sequence, and now and then every run of blocks of a cache that has many.
func (e *Engine) Check() error {
	if n := e.Running(); n > e.cfg.MaxNumSeqs {
		return fmt.Errorf("engine: %d sequences are running, the limit is %d", n, e.cfg.MaxNumSeqs)
	}
	for _, b := range e.batches() {
		if n := b.Prefill + b.Decode + b.Drafts; n > int64(e.cfg.MaxNumBatchedTokens) || n < 1 {
			return fmt.Errorf("engine: a batch has %d tokens, must have 1 to %d", n, e.cfg.MaxNumBatchedTokens)
		}
	}
	for i, w := range e.wait.heap {
		q := &e.seqs[w.seq]
		if q.state != waiting || int(q.heapIndex) != i {
			return fmt.Errorf("engine: sequence %d is queued while running, or has a wrong queue index", w.seq)
		}
		if i > 0 && w.before(&e.wait.heap[(i-1)/2]) {
			return fmt.Errorf("engine: sequence %d is out of order in the queue", w.seq)
		}
	}
	if err := e.checkDecoding(); err != nil {
		return err
	}
	last := int64(-1)
	for _, s := range e.individual {
		q := &e.seqs[s]
		if q.state != individual || q.admission <= last {
			return fmt.Errorf("engine: sequence %d is out of order or not running", s)
		}
		last = q.admission
	}
	for _, s := range e.finishing {
		if q := &e.seqs[s]; q.state != finishing || q.generated != q.output {
			return fmt.Errorf("engine: sequence %d is not finishing: it has %d of %d tokens", s, q.generated, q.output)
		}
	}
	if err := e.checkPrompts(); err != nil {
		return err
	}
	if err := e.checkAdapters(); err != nil {
		return err
	}
	if err := e.checkGrammars(); err != nil {
		return err
	}
	if err := e.checkPipeline(); err != nil {
		return err
	}
	if err := e.checkEncoder(); err != nil {
		return err
	}
	if e.offload != nil && e.offload.store != nil {
		e.StopGrowth()
		if err := e.offload.store.Check(); err != nil {
			return err
		}
		if err := e.checkBelow(); err != nil {
			return err
		}
	}
	// A recount looks at all runs of blocks. The more there are, the fewer steps recount, so that a step
	// of a large cache does not cost much more.
	if e.uncheckedSteps++; e.uncheckedSteps*runsPerCheck < e.cache.Runs() {
		return nil
	}
	e.uncheckedSteps = 0
	return e.cache.Check()
}

// runsPerCheck is the number of runs up to which the cache is recounted at each step.
const runsPerCheck = 64

// batches returns the batch in flight and those queued after it, with tokens.
func (e *Engine) batches() []*batch {
	var list []*batch
	if e.inFlight {
		list = append(list, e.current)
	}
	if e.hasNext {
		list = append(list, e.next)
	}
	if e.pipe != nil {
		for _, b := range e.pipe.queue {
			if b.hasTokens() {
				list = append(list, b)
			}
		}
	}
	return list
}

// checkPrompts checks that running requests have blocks for their whole prompts, if they must.
func (e *Engine) checkPrompts() error {
	if e.offload == nil || !e.offload.cfg.WholePrompts {
		return nil
	}
	for _, s := range e.individual {
		q := &e.seqs[s]
		if n := e.cache.BlocksNeeded(q.kv, int(q.input)); n != 0 || e.stats.Preemptions > 0 {
			return fmt.Errorf("engine: sequence %d lacks %d blocks of its prompt after %d preemptions", s, n,
				e.stats.Preemptions)
		}
	}
	return nil
}

// checkDecoding recomputes the totals over decoding sequences, and how many of them expect a token.
func (e *Engine) checkDecoding() error {
	tick := e.cache.Ticks()
	var context, clipped, longest int64
	for d := range e.decoding.All() {
		q := &e.seqs[d.Slot]
		gained := tick - q.startTick
		context += int64(q.computed) + gained
		longest = max(longest, int64(q.computed)+gained)
		clipped += e.window.clip(int64(q.computed) + gained)
		if q.state != decoding {
			return fmt.Errorf("engine: sequence %d is not decoding", d.Slot)
		}
		if left := d.At - tick; left < 0 || int64(q.generated)+gained+left != int64(q.output) {
			return fmt.Errorf("engine: sequence %d has %d of %d tokens and is done in %d steps", d.Slot,
				int64(q.generated)+gained, q.output, left)
		}
	}
	if want := e.context + int64(e.decoding.Len())*tick; context != want {
		return fmt.Errorf("engine: the decode context is %d tokens, the running total says %d", context, want)
	}
	if e.decoding.Len() > 0 && longest != e.longestBase()+tick {
		return fmt.Errorf("engine: the longest decode context is %d tokens, the running value says %d", longest,
			e.longestBase()+tick)
	}
	if want := e.window.total(tick); clipped != want {
		return fmt.Errorf("engine: the window context is %d tokens, the running total says %d", clipped, want)
	}
	for _, b := range e.batches() {
		await := 0
		for s := range e.seqs {
			if q := &e.seqs[s]; !q.aborted && e.expectsToken(q, b) {
				await++
			}
		}
		if await != b.decoding {
			return fmt.Errorf("engine: %d decoding sequences expect a token, the batch says %d", await, b.decoding)
		}
	}
	return nil
}
