package engine

import (
	"fmt"
	"slices"

	"blis/pkg/des"
)

// Grammars is structured output as in vLLM 0.33: a request whose grammar is not compiled yet is skipped
// (Scheduler._handle_blocked_waiting_request in vllm/v1/core/sched/scheduler.py), and a step samples when the host has
// filled the masks of its requests with a grammar (EngineCore.step and step_with_batch_queue in
// vllm/v1/engine/core.py).
type Grammars struct {
	// Workers is the number of grammars that are compiled at a time (StructuredOutputManager in
	// vllm/v1/structured_output/__init__.py).
	Workers int
	// MaskUS is how long the host fills the mask of one token. SamplingUS, at least 1, is how long a step goes on when
	// they are filled.
	MaskUS     float64
	SamplingUS des.Time
}

// grammars is the state of structured output. Grammars are numbers from 1 on.
type grammars struct {
	// free is when each worker is free, compiled when each grammar is or will be compiled, or never.
	free, compiled []des.Time
	// ready is when the grammar of each sequence is compiled.
	ready []des.Time
	// present counts the sequences with a grammar.
	present int
}

const never des.Time = -1

// masked is a sequence that samples by a grammar. rows is how many masks it needs: one for each of its drafts and one
// more. past: it computes a token behind its last one, so that it is gone when deferred masks are filled.
type masked struct {
	seq, rows int32
	past      bool
}

// host is what the host does besides steps: until then it fills masks. filling: nothing else is done before that, by
// Start.
type host struct {
	until   des.Time
	filling bool
}

// openGrammar hands the grammar of a new request to the workers, which take them in order. One that another worker
// compiles is waited for: xgrammar's cache has a place for it from the beginning (cpp/support/thread_safe_cache.h).
func (e *Engine) openGrammar(s int32, r *Request) {
	if e.grammars == nil {
		e.grammars, e.features = &grammars{free: make([]des.Time, e.cfg.Grammars.Workers)}, true
		e.orderByArrival()
	}
	x := e.grammars
	for len(x.compiled) <= int(r.Grammar) {
		x.compiled = append(x.compiled, never)
	}
	x.setReady(s, 0)
	x.present++
	worker, ready := e.compilation(r.Now, r)
	if x.compiled[r.Grammar] == never {
		x.compiled[r.Grammar] = ready
		e.stats.Compilations++
	}
	x.free[worker], x.ready[s] = ready, ready
	e.stats.GrammarRequests++
	if ready > r.Now {
		e.stats.GrammarWaits++
		e.stats.GrammarWaitUS += ready - r.Now
	}
}

// compilation returns the worker that takes the grammar of a request that is enqueued now, and when it is compiled.
func (e *Engine) compilation(now des.Time, r *Request) (worker int, ready des.Time) {
	x := e.grammars
	if x == nil {
		return 0, now + r.CompileUS
	}
	for i, at := range x.free {
		if at < x.free[worker] {
			worker = i
		}
	}
	start := max(now, x.free[worker])
	if int(r.Grammar) < len(x.compiled) && x.compiled[r.Grammar] != never {
		return worker, max(start, x.compiled[r.Grammar])
	}
	return worker, start + r.CompileUS
}

func (x *grammars) setReady(s int32, at des.Time) {
	for len(x.ready) <= int(s) {
		x.ready = append(x.ready, 0)
	}
	x.ready[s] = at
}

// GrammarReady returns when the grammar of the request that Enqueue numbered s is compiled, 0 if it has none.
func (e *Engine) GrammarReady(s int32) des.Time {
	if e.seqs[s].grammar == 0 {
		return 0
	}
	return e.grammars.ready[s]
}

// dropGrammar forgets a sequence. Its grammar is compiled nevertheless.
func (e *Engine) dropGrammar(s int32) {
	is := func(m masked) bool { return m.seq == s }
	e.current.masked = slices.DeleteFunc(e.current.masked, is)
	e.next.masked = slices.DeleteFunc(e.next.masked, is)
	if e.seqs[s].grammar != 0 {
		e.grammars.present--
	}
}

// masks reports whether steps may need masks.
func (e *Engine) masks() bool { return e.grammars != nil && e.grammars.present > 0 }

// noteMasks notes which sequences in b, whose sequences are not advanced yet, sample by a grammar. If the last token of
// any of them is in flight, all masks are filled when the step in flight has ended (pending_structured_output_tokens).
func (e *Engine) noteMasks(b *batch) {
	if !e.masks() {
		return
	}
	for i := range b.drafted {
		p := &b.drafted[i]
		q := &e.seqs[p.seq]
		if q.grammar == 0 || q.remaining() > 0 {
			continue
		}
		rows, flying := int32(1), e.cfg.AsyncScheduling && q.generated > q.emitted
		if !p.padded && (flying || !e.cfg.AsyncScheduling) {
			rows += p.drafts
		}
		b.mask(masked{p.seq, rows, false}, flying)
	}
	if e.spec != nil {
		e.fillAtOnce(b)
		return
	}
	for _, s := range e.individual {
		if q := &e.seqs[s]; q.grammar != 0 && q.lastBatch == b.number && q.input+q.generated == q.computed {
			b.mask(masked{s, 1, q.generated == q.output}, e.inFlight && q.generated > q.emitted)
		}
	}
	if b.ticked {
		for d := range e.decoding.All() {
			if e.seqs[d.Slot].grammar != 0 {
				b.mask(masked{d.Slot, 1, false}, e.inFlight) // each of them has a token in the step in flight
			}
		}
	}
	e.fillAtOnce(b)
}

// mask adds a sequence whose last token may be in flight.
func (b *batch) mask(m masked, flying bool) {
	b.masked = append(b.masked, m)
	b.deferred = b.deferred || flying
}

// fillAtOnce fills the masks of b when it is formed, unless they are deferred.
func (e *Engine) fillAtOnce(b *batch) {
	if !b.deferred {
		e.fill(b, e.now, func(*masked) bool { return true })
	}
}

// fill fills the masks of b for some sequences from a time on.
func (e *Engine) fill(b *batch, at des.Time, has func(*masked) bool) {
	for i := range b.masked {
		if m := &b.masked[i]; has(m) {
			b.Masks += int(m.rows)
		}
	}
	rows := b.Masks
	if e.spec == nil {
		rows = serialMasks(rows)
	}
	b.MaskUS = des.Micros(float64(float64(rows) * e.cfg.Grammars.MaskUS))
	b.filled = at + b.MaskUS
	e.stats.Masks += int64(b.Masks)
	e.stats.MaskUS += b.MaskUS
}

// Beyond maskThreshold of them, masks are filled by maskWorkers threads, each in groups of maskGroup
// (StructuredOutputManager: half the CPUs, at most 8).
const (
	maskThreshold = 128
	maskGroup     = 16
	maskWorkers   = 8
)

// serialMasks is the number of masks in the time of n of them.
func serialMasks(n int) int {
	if n <= maskThreshold {
		return n
	}
	groups := (n + maskGroup - 1) / maskGroup
	rounds, last := (groups-1)/maskWorkers, maskGroup
	if groups%maskWorkers == 1 { // only the last group, which may be smaller
		last = n - (groups-1)*maskGroup
	}
	return rounds*maskGroup + last
}

// fillDeferred fills the masks of the next batch if they were deferred until the step in flight ends, which is now, and
// returns how long that takes. Sequences that end with this step need none.
func (e *Engine) fillDeferred(now des.Time) des.Time {
	if !e.hasNext || !e.next.deferred {
		return 0
	}
	e.fill(e.next, now, func(m *masked) bool {
		return !m.past && !e.seqs[m.seq].aborted && (e.spec == nil || !e.endsNow(m.seq))
	})
	if e.next.MaskUS > 0 {
		e.host = host{until: e.next.filled, filling: true}
	}
	return e.next.MaskUS
}

// endsNow reports whether a sequence has all its output when the step in flight ends, with speculative decoding.
func (e *Engine) endsNow(s int32) bool {
	q := &e.seqs[s]
	for i := range e.current.drafted {
		if p := &e.current.drafted[i]; p.seq == s && p.yields {
			return q.emitted+1+e.spec.accepted(q, &e.spec.seqs[q.kv], p) >= q.output
		}
	}
	return false
}

// startMasked is start for a step that may wait for masks. ahead: it was formed before, and the GPU begins with it when
// the step before it ends. If the host fills masks for a new one, it forms the next one only then.
func (e *Engine) startMasked(now des.Time, ahead bool) {
	b := e.current
	e.host = host{}
	if ahead && b.Start == e.next.End {
		e.inFlight = true
	} else {
		e.start(now)
	}
	if wait := b.filled + e.cfg.Grammars.SamplingUS - b.End; b.Masks > 0 && wait > 0 {
		b.MaskWaitUS = wait
		b.End += wait
		e.stats.MaskWaitUS += wait
	}
	e.used = e.cache.Total() - e.cache.Free()
	if !ahead && b.MaskUS > 0 && e.cfg.AsyncScheduling {
		e.host = host{until: b.filled, filling: true}
	}
}

// formAhead forms the next batch with asynchronous scheduling. The host fills its masks before it sees that the step in
// flight has ended, unless they are deferred.
func (e *Engine) formAhead(now des.Time) {
	if !e.cfg.AsyncScheduling || e.Running()+e.Waiting() == 0 {
		return
	}
	if e.hasNext = e.form(e.next); !e.hasNext {
		e.lostVictims = len(e.next.Preempted)
	} else {
		e.next.Start = e.current.End
		if e.next.End = e.end(e.next.Start, e.next.length); !e.next.deferred {
			e.host.until = e.next.filled
		}
	}
	e.used = e.cache.Total() - e.cache.Free()
}

// leaveEarly drops the requests that were aborted while the host filled the masks of the step in flight.
func (e *Engine) leaveEarly() {
	e.result.Aborted = e.result.Aborted[:0]
	e.dropAborted()
	e.early = append(e.early, e.result.Aborted...)
}

// LeftEarly returns the aborted requests whose blocks were freed by the last Start.
func (e *Engine) LeftEarly() []int32 {
	list := e.early
	e.early = e.early[:0]
	return list
}

// WakeAt returns when something is to be done while the replica is Busy: Start if it is Filling, else Finish.
func (e *Engine) WakeAt() des.Time {
	if e.host.filling {
		return e.host.until
	}
	return max(e.current.End, e.host.until)
}

// FormsLate reports whether Start only forms the batch behind the step in flight, whose masks are then filled.
func (e *Engine) FormsLate() bool { return e.host.filling && e.inFlight }

// Filling reports whether the host fills masks and does nothing else until WakeAt.
func (e *Engine) Filling() bool { return e.host.filling }

func (x *grammars) clone() *grammars {
	if x == nil {
		return nil
	}
	c := *x
	c.free, c.compiled, c.ready = slices.Clone(x.free), slices.Clone(x.compiled), slices.Clone(x.ready)
	return &c
}

// checkGrammars counts the sequences with a grammar again.
func (e *Engine) checkGrammars() error {
	if e.grammars == nil {
		return nil
	}
	present := 0
	for i := range e.seqs {
		if e.seqs[i].grammar != 0 {
			present++
		}
	}
	if present != e.grammars.present {
		return fmt.Errorf("engine: %d sequences have a grammar, the running total says %d", present, e.grammars.present)
	}
	return nil
}
