package engine

import "fmt"

// Check recounts what the engine keeps as sums and reports the first thing that
// does not add up. It costs a look at every sequence.
func (e *Engine) Check() error {
	if n := e.Running(); n > e.cfg.MaxNumSeqs {
		return fmt.Errorf("engine: %d sequences run, at most %d may", n, e.cfg.MaxNumSeqs)
	}
	if e.inFlight {
		if n := e.step.Prefill + e.step.Decode; n > int64(e.cfg.MaxNumBatchedTokens) || n < 1 {
			return fmt.Errorf("engine: a batch of %d tokens, at least 1 and at most %d may be", n, e.cfg.MaxNumBatchedTokens)
		}
	}
	queued := 0
	for s := e.head; s != none; s = e.seqs[s].next {
		if e.seqs[s].state != waiting {
			return fmt.Errorf("engine: sequence %d is queued and runs", s)
		}
		queued++
	}
	if queued != e.queued {
		return fmt.Errorf("engine: %d queued, %d counted", queued, e.queued)
	}
	context := int64(0)
	for d := range e.steadies.All() {
		q := &e.seqs[d.Slot]
		gained := e.cache.Ticks() - q.since
		context += int64(q.computed) + gained
		if q.state != steady || q.scheduled != 0 {
			return fmt.Errorf("engine: sequence %d is not steady", d.Slot)
		}
		if left := d.At - e.cache.Ticks(); left < 0 || int64(q.generated)+gained+left != int64(q.output) {
			return fmt.Errorf("engine: sequence %d has %d of %d tokens and is done in %d steps", d.Slot, int64(q.generated)+gained, q.output, left)
		}
	}
	if want := e.context + int64(e.steadies.Len())*e.cache.Ticks(); context != want {
		return fmt.Errorf("engine: a context of %d tokens, %d counted", context, want)
	}
	last := int64(-1)
	for _, s := range e.singles {
		q := &e.seqs[s]
		if q.state != single || q.order <= last {
			return fmt.Errorf("engine: sequence %d is out of order or not running", s)
		}
		last = q.order
	}
	return e.cache.Check()
}
