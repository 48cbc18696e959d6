package engine

import (
	"fmt"
	"math"
	"slices"

	"blis/pkg/des"
)

// Start starts a step at time now: of the batch that was formed ahead, or of
// one that it forms. With asynchronous scheduling it then forms the next one.
// It returns false if there is nothing to do, and fails when no sequence can
// make progress, which is a bug.
func (e *Engine) Start(now des.Time) (bool, error) {
	e.formed = e.formed[:0]
	if e.isQueued {
		e.current, e.ahead, e.isQueued = e.ahead, e.current, false
	} else {
		if e.Running()+e.Waiting() == 0 {
			return false, nil
		}
		// Who preempts itself may leave the batch empty. The next one is formed at
		// once, as vLLM's scheduler is asked again at once.
		e.thrown = e.thrown[:0]
		for !e.form(e.current) {
			if len(e.current.Preempted) == 0 {
				return false, e.stuck("schedules nothing")
			}
			e.thrown = append(e.thrown, e.current.Preempted...)
			e.formed = e.formed[:0]
		}
		e.current.Preempted = append(e.current.Preempted, e.thrown...)
	}
	e.inFlight = true
	e.current.Start, e.current.End = now, now+e.current.length
	if e.cfg.AsyncScheduling && e.Running()+e.Waiting() > 0 {
		e.isQueued = e.form(e.ahead)
	}
	e.used = e.cache.Total() - e.cache.Free()
	return true, nil
}

// form makes b a batch and reports whether there is anything in it.
// From then on the sequences count as if it had run.
func (e *Engine) form(b *batch) bool {
	*b = batch{Step: Step{Admitted: b.Admitted[:0], Preempted: b.Preempted[:0], Resumed: b.Resumed[:0]}, last: b.last[:0], tokens: b.tokens[:0]}
	budget := e.cfg.MaxNumBatchedTokens
	if !e.runTogether(b, &budget) {
		e.runOneByOne(b, &budget)
	}
	if len(b.Preempted) == 0 {
		e.admit(b, &budget)
	}
	e.advance(b)
	b.Running, b.Waiting = e.Running(), e.Waiting()
	b.UsedBlocks = e.cache.Total() - e.cache.Free()
	e.stats.PeakRunning = max(e.stats.PeakRunning, b.Running)
	e.stats.PeakBlocks = max(e.stats.PeakBlocks, b.UsedBlocks)
	e.stats.PeakPrefill, e.stats.PeakDecode = max(e.stats.PeakPrefill, b.Prefill), max(e.stats.PeakDecode, b.Decode)
	e.formed = append(e.formed, &b.Step)
	if b.Prefill+b.Decode == 0 {
		return false
	}
	b.length = e.model.Step(b.Batch)
	return true
}

// Stop accounts for the part of a step in flight that lies before now, where a
// simulation ends.
func (e *Engine) Stop(now des.Time) {
	if e.inFlight {
		e.account(now)
	}
}

func (e *Engine) account(now des.Time) {
	d := now - e.current.Start
	e.stats.BusyUS += d
	e.stats.BlockUS += float64(d) * float64(e.used)
}

// want returns how many tokens q still has to compute. The last one that it
// generates is never computed.
func (q *sequence) want() int32 {
	if q.generated == q.output {
		return 0
	}
	return q.input + q.generated - q.computed
}

// known returns how many of the first upto tokens of q have appeared.
func (q *sequence) known(upto int) int { return min(upto, int(q.input+q.shown)) }

// runTogether schedules what runs: the steady sequences as one, the singles in
// turn. It does nothing and returns false where the order of admission would
// decide who gets tokens or blocks.
func (e *Engine) runTogether(b *batch, budget *int) bool {
	left := *budget - e.steadies.Len()
	need := 0
	if left < 0 {
		return false
	}
	if e.steadies.Len() > 0 {
		need = e.cache.TickNeed()
	}
	before := left
	for _, s := range e.singles {
		q := &e.seqs[s]
		n := e.capped(int(q.want()))
		if n > left {
			if q.turn < e.newest {
				return false
			}
			n = left
		}
		if n > 0 && e.cache.Writing(q.kv) {
			return false
		}
		need += e.cache.Missing(q.kv, int(q.computed)+n)
		left -= n
	}
	if need > e.cache.Free() {
		return false
	}
	if e.steadies.Len() > 0 {
		b.ticked, b.steady = true, e.steadies.Len()
		b.Decode = int64(b.steady)
		b.Context = e.context + b.Decode*e.cache.Ticks()
		b.WindowContext = e.window.total(e.cache.Ticks())
		e.cache.Tick()
		b.tick = e.cache.Ticks()
		e.window.advance(b.tick)
	}
	for _, s := range e.singles {
		q := &e.seqs[s]
		n := min(e.capped(int(q.want())), before)
		before -= n
		e.extend(b, q, n)
	}
	*budget = left
	return true
}

// capped applies the long-prefill threshold.
func (e *Engine) capped(n int) int {
	if t := e.cfg.LongPrefillTokenThreshold; 0 < t && t < n {
		return t
	}
	return n
}

// extend lets q compute n tokens in b; it returns false if there are too few
// free blocks.
func (e *Engine) extend(b *batch, q *sequence, n int) bool {
	if n == 0 {
		return true
	}
	upto := int(q.computed) + n
	if !e.cache.Extend(q.kv, upto, q.known(upto)) {
		return false
	}
	e.compute(b, q, n)
	return true
}

// compute counts n tokens of q, which has the blocks for them, in b.
func (e *Engine) compute(b *batch, q *sequence, n int) {
	e.add(b, q, int64(n), 1)
	q.computed += int32(n)
}

// add adds to the sums of b what n tokens of q come to, or takes it away if sign
// is -1.
func (e *Engine) add(b *batch, q *sequence, n, sign int64) {
	c := int64(q.computed)
	if q.generated > 0 && q.want() == 1 {
		b.Decode += sign
		b.Context += sign * c
		b.WindowContext += sign * e.window.clip(c)
		return
	}
	b.Prefill += sign * n
	b.Chunks += sign
	b.Past += sign * c
	b.Pairs += sign * (n*c + n*(n+1)/2)
	b.WindowPast += sign * e.window.clip(c)
	b.WindowPairs += sign * e.window.pairs(c, n)
}

// runOneByOne schedules what runs, sequence by sequence in order of admission,
// preempting where blocks run out. A victim that had its turn leaves the batch,
// but for the hashes of blocks that it filled; who comes next has its turn all the
// same, which vLLM skips where the victim had nothing left to compute.
func (e *Engine) runOneByOne(b *batch, budget *int) {
	e.settleAll()
	e.parts = e.parts[:0]
	for i := 0; i < len(e.singles) && *budget > 0; i++ {
		q := &e.seqs[e.singles[i]]
		n := min(e.capped(int(q.want())), *budget)
		for !e.extend(b, q, n) {
			at := e.victim()
			if at < i { // it had its turn before, and gives back what it got
				back := e.parts[at]
				e.parts = slices.Delete(e.parts, at, at+1)
				e.undo(b, &e.seqs[e.singles[at]], back)
				*budget += back
			}
			e.preempt(b, at)
			if at == i {
				return
			}
			if at < i {
				i--
			}
		}
		e.parts = append(e.parts, n)
		*budget -= n
	}
}

// undo takes n tokens of q out of b again.
func (e *Engine) undo(b *batch, q *sequence, n int) {
	q.computed -= int32(n)
	if n > 0 {
		e.add(b, q, int64(n), -1)
	}
}

// victim is the place in singles of the sequence that is preempted next.
func (e *Engine) victim() int {
	last := len(e.singles) - 1
	if e.cfg.Victim == nil {
		return last
	}
	best, most := last, math.Inf(-1)
	for i := last; i >= 0; i-- {
		q := &e.seqs[e.singles[i]]
		if q.counting { // its last token is in flight, those before are not counted yet
			e.collect(q)
		}
		p := Progress{Generated: int(q.shown), Computed: int(q.computed), Blocks: e.cache.Holds(q.kv)}
		if v := e.cfg.Victim(q.tag, p); v > most {
			best, most = i, v
		}
	}
	return best
}

// preempt throws the running sequence at a place in singles back into the wait
// queue. A token of it in an earlier batch still appears.
func (e *Engine) preempt(b *batch, at int) {
	s := e.singles[at]
	q := &e.seqs[s]
	e.cache.Release(q.kv)
	q.computed, q.state = 0, waiting
	e.singles = slices.Delete(e.singles, at, at+1)
	e.putBack(s)
	b.Preempted = append(b.Preempted, q.tag)
	e.stats.Preemptions++
}

// admit schedules waiting requests in queue order until the first that does not
// fit.
func (e *Engine) admit(b *batch, budget *int) {
	for *budget > 0 && e.Waiting() > 0 && e.Running() < e.cfg.MaxNumSeqs {
		s := e.wait.heap[0].seq
		q := &e.seqs[s]
		tokens := int(q.input + q.generated)
		cached := e.cache.Lookup(q.kv, tokens-1)
		n := e.capped(tokens - cached)
		if n > *budget && !e.cfg.ChunkedPrefill {
			return
		}
		n = min(n, *budget)
		room, spare := cached+n, 0
		if e.cfg.ReserveFullSequence {
			room = tokens
		}
		if e.Running() > 0 {
			spare = e.cfg.WatermarkBlocks
		}
		if !e.cache.Admit(q.kv, cached+n, room, spare) {
			return
		}
		e.unqueue(s)
		q.computed, q.state = int32(cached), single
		q.turn = e.turns
		e.turns++
		e.singles = append(e.singles, s)
		*budget -= n
		e.compute(b, q, n)
		if q.admitted {
			b.Resumed = append(b.Resumed, q.tag)
		} else {
			q.admitted = true
			b.Admitted = append(b.Admitted, Admission{q.tag, cached})
			e.stats.QueriedTokens += int64(tokens)
			e.stats.CachedTokens += int64(cached)
		}
	}
}

// advance lets the sequences be what they are when b has run: who computes all
// it has gets a token, and is steady or ending from then on.
func (e *Engine) advance(b *batch) {
	for e.steadies.Next() <= e.cache.Ticks() {
		s := e.steadies.Pop().Slot
		e.unsteady(s)
		e.seqs[s].state = ending
		e.endings = append(e.endings, s)
		b.last = append(b.last, s)
	}
	kept := e.singles[:0]
	for _, s := range e.singles {
		q := &e.seqs[s]
		if q.generated < q.output {
			if q.want() > 0 {
				kept = append(kept, s)
				continue
			}
			b.tokens = append(b.tokens, s)
			q.generated++
		}
		if q.generated == q.output {
			q.state = ending
			e.endings = append(e.endings, s)
		} else {
			e.makeSteady(s)
		}
	}
	e.singles = kept
}

// stuck is the error of a replica that makes no progress.
func (e *Engine) stuck(how string) error {
	var s int32
	switch {
	case len(e.singles) > 0:
		s = e.singles[0]
	case e.steadies.Len() > 0:
		s = e.steadies.First().Slot
	case len(e.endings) > 0:
		s = e.endings[0]
	default:
		s = e.wait.heap[0].seq
	}
	return &StuckError{Tag: e.seqs[s].tag, Msg: fmt.Sprintf("the replica %s: %d running, %d waiting, %d of %d blocks free",
		how, e.Running(), e.Waiting(), e.cache.Free(), e.cache.Total())}
}

// StuckError is a replica that makes no progress though it has work.
type StuckError struct {
	Tag int32 // a request that does not get on
	Msg string
}

func (e *StuckError) Error() string { return "engine: " + e.Msg }
