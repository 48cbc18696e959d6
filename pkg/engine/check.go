package engine

import "fmt"

// Check recounts what the engine keeps as sums and reports the first thing that
// does not add up. It costs a look at every sequence.
func (e *Engine) Check() error {
	if n := e.Running(); n > e.cfg.MaxNumSeqs {
		return fmt.Errorf("engine: %d sequences run, at most %d may", n, e.cfg.MaxNumSeqs)
	}
	for _, b := range e.batches() {
		if n := b.Prefill + b.Decode; n > int64(e.cfg.MaxNumBatchedTokens) || n < 1 {
			return fmt.Errorf("engine: a batch of %d tokens, at least 1 and at most %d may be", n, e.cfg.MaxNumBatchedTokens)
		}
	}
	for i, w := range e.wait.heap {
		q := &e.seqs[w.seq]
		if q.state != waiting || int(q.place) != i {
			return fmt.Errorf("engine: sequence %d is queued and runs, or is lost in the queue", w.seq)
		}
		if i > 0 && w.before(&e.wait.heap[(i-1)/2]) {
			return fmt.Errorf("engine: sequence %d is out of order in the queue", w.seq)
		}
	}
	if err := e.checkSteady(); err != nil {
		return err
	}
	last := int64(-1)
	for _, s := range e.singles {
		q := &e.seqs[s]
		if q.state != single || q.turn <= last {
			return fmt.Errorf("engine: sequence %d is out of order or not running", s)
		}
		last = q.turn
	}
	for _, s := range e.endings {
		if q := &e.seqs[s]; q.state != ending || q.generated != q.output {
			return fmt.Errorf("engine: sequence %d is not ending: %d of %d tokens", s, q.generated, q.output)
		}
	}
	return e.cache.Check()
}

// batches are the one in flight and the one behind it.
func (e *Engine) batches() []*batch {
	var list []*batch
	if e.inFlight {
		list = append(list, e.current)
	}
	if e.isQueued {
		list = append(list, e.ahead)
	}
	return list
}

// checkSteady recounts the sums over steady sequences, and who of them waits
// for a token.
func (e *Engine) checkSteady() error {
	tick := e.cache.Ticks()
	var context, clipped int64
	for d := range e.steadies.All() {
		q := &e.seqs[d.Slot]
		gained := tick - q.since
		context += int64(q.computed) + gained
		clipped += e.window.clip(int64(q.computed) + gained)
		if q.state != steady {
			return fmt.Errorf("engine: sequence %d is not steady", d.Slot)
		}
		if left := d.At - tick; left < 0 || int64(q.generated)+gained+left != int64(q.output) {
			return fmt.Errorf("engine: sequence %d has %d of %d tokens and is done in %d steps", d.Slot, int64(q.generated)+gained, q.output, left)
		}
	}
	if want := e.context + int64(e.steadies.Len())*tick; context != want {
		return fmt.Errorf("engine: a context of %d tokens, %d counted", context, want)
	}
	if want := e.window.total(tick); clipped != want {
		return fmt.Errorf("engine: a context of %d tokens within the window, %d counted", clipped, want)
	}
	for _, b := range e.batches() {
		await := 0
		for s := range e.seqs {
			if q := &e.seqs[s]; !q.aborted && e.awaits(q, b) {
				await++
			}
		}
		if await != b.steady {
			return fmt.Errorf("engine: %d steady sequences wait for a token, %d counted", await, b.steady)
		}
	}
	return nil
}
