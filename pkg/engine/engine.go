// Package engine is the data plane: one replica that serves requests as vLLM's
// V1 engine does (vllm/v1/core/sched/scheduler.py), with continuous batching,
// chunked prefill, a prefix cache and preemption by recomputation.
//
// The caller owns the clock: Start forms a batch and says when its step ends,
// Finish, at that time, makes its effects visible. While a step only decodes,
// both cost the same for one sequence as for a thousand.
package engine

import (
	"fmt"

	"blis/pkg/des"
	"blis/pkg/kv"
	"blis/pkg/latency"
)

// Config is what bounds a batch. The names are vLLM's.
type Config struct {
	MaxNumSeqs          int
	MaxNumBatchedTokens int
	// ChunkedPrefill: a prompt may be computed over several steps.
	ChunkedPrefill bool
	// LongPrefillTokenThreshold is the most tokens that one sequence may
	// compute in a step; 0 is no such bound.
	LongPrefillTokenThreshold int
	// KeepGaps: results carry every gap between tokens, not only the longest.
	KeepGaps bool
}

// Request is one request at a replica's door.
type Request struct {
	// Tag is the caller's number for it; results carry it.
	Tag           int32
	Path          kv.Path
	Input, Output int
}

// sequence is a request inside the engine.
type sequence struct {
	tag           int32
	kv            kv.Seq
	input, output int32
	// generated and computed count tokens; of a steady sequence they are those
	// at the time it became steady, which is tick since.
	generated, computed int32
	since               int64
	// scheduled is what the batch in flight computes of a sequence that is not
	// steady.
	scheduled int32
	state     state
	// admitted: it ran before; aborted: it leaves when the step ends.
	admitted, aborted bool
	// order counts admissions to running.
	order      int64
	prev, next int32 // in the wait queue
	lastToken  des.Time
	gaps       Gaps
}

type state uint8

const (
	waiting state = iota
	// single: running, visited one by one: it computes a prompt, or missed a step.
	single
	// steady: running, with one token in every step until it is done.
	steady
)

const none int32 = -1

// Engine is one replica.
type Engine struct {
	cfg   Config
	model latency.Model
	cache *kv.Cache

	seqs       []sequence
	spare      []int32
	head, tail int32 // of the wait queue
	queued     int

	// singles are in order of admission; done keeps the steady ones by the tick
	// at which they have all their output.
	singles []int32
	done    doneHeap
	orders  int64
	// newest is the highest order that ever became steady.
	newest int64
	// context + n·tick is the sum of what n steady sequences have computed.
	context int64

	step     Step
	inFlight bool
	// ticked: the step in flight gives the steady sequences a token.
	ticked bool
	// aborts counts running sequences that leave when the step ends.
	aborts int
	// fruitless counts the steps since a token appeared; there can be patience
	// of them.
	fruitless, patience int

	log   gapLog
	batch []int32 // scratch
	ends  Ends
	stats Stats
}

// Step is a batch and its time.
type Step struct {
	Start, End des.Time
	latency.Batch
	// Running, Waiting and UsedBlocks are as the batch was formed.
	Running, Waiting, UsedBlocks int
	// Admitted ran for the first time, Preempted were thrown back.
	Admitted  []Admission
	Preempted []int32
}

// Admission is a request's first place in a batch.
type Admission struct {
	Tag    int32
	Cached int // prompt tokens found in the prefix cache
}

// Ends is what became visible at the end of a step.
type Ends struct {
	// First got their first token.
	First []int32
	// Done got their last one and have left, in order of admission.
	Done []Result
	// Left were aborted before and have now given back their blocks.
	Left []int32
	// Steady sequences got a token Gap after their last one; Gaps are the
	// others' gaps.
	Steady int
	Gap    des.Time
	Gaps   []des.Time
}

// Result is what a request has when it leaves.
type Result struct {
	Tag       int32
	Generated int
	Gaps      Gaps
}

// Stats are sums over a replica's life. Times are µs.
type Stats struct {
	Steps, BusyUS               int64
	PrefillTokens, DecodeTokens int64
	// QueriedTokens are the prompt tokens of requests at their first admission,
	// CachedTokens those of them that were found.
	QueriedTokens, CachedTokens int64
	Preemptions                 int64
	PeakWaiting, PeakRunning    int
	PeakBlocks                  int
	// BlockUS is the integral of used blocks over time.
	BlockUS int64
}

// New returns an idle replica.
func New(cfg Config, model latency.Model, cache *kv.Cache) *Engine {
	return &Engine{cfg: cfg, model: model, cache: cache, head: none, tail: none, newest: -1,
		// The first in line computes a token a step, and no more than fit.
		patience: cache.Total()*cache.BlockSize() + 1,
		log:      gapLog{keep: cfg.KeepGaps, limit: minLog}}
}

// Waiting returns how many requests are queued.
func (e *Engine) Waiting() int { return e.queued }

// Running returns how many sequences hold a place in the batch.
func (e *Engine) Running() int { return len(e.singles) + len(e.done) }

// Busy reports whether a step is in flight.
func (e *Engine) Busy() bool { return e.inFlight }

// Cache returns the replica's block cache.
func (e *Engine) Cache() *kv.Cache { return e.cache }

// Step returns the last batch. It is valid until the next Start.
func (e *Engine) Step() *Step { return &e.step }

// Stats returns the sums so far.
func (e *Engine) Stats() Stats { return e.stats }

// Enqueue puts a request at the end of the wait queue and returns the number by
// which Abort knows it.
func (e *Engine) Enqueue(r Request) int32 {
	var s int32
	if last := len(e.spare) - 1; last >= 0 {
		s = e.spare[last]
		e.spare = e.spare[:last]
	} else {
		s = int32(len(e.seqs))
		e.seqs = append(e.seqs, sequence{})
	}
	e.seqs[s] = sequence{tag: r.Tag, kv: e.cache.Open(r.Path), input: int32(r.Input), output: int32(r.Output), prev: e.tail, next: none}
	if e.tail != none {
		e.seqs[e.tail].next = s
	} else {
		e.head = s
	}
	e.tail = s
	e.queued++
	e.stats.PeakWaiting = max(e.stats.PeakWaiting, e.queued)
	return s
}

// putBack puts a preempted sequence at the head of the wait queue.
func (e *Engine) putBack(s int32) {
	q := &e.seqs[s]
	q.prev, q.next = none, e.head
	if e.head != none {
		e.seqs[e.head].prev = s
	} else {
		e.tail = s
	}
	e.head = s
	e.queued++
	e.stats.PeakWaiting = max(e.stats.PeakWaiting, e.queued)
}

func (e *Engine) unqueue(s int32) {
	q := &e.seqs[s]
	if q.prev != none {
		e.seqs[q.prev].next = q.next
	} else {
		e.head = q.next
	}
	if q.next != none {
		e.seqs[q.next].prev = q.prev
	} else {
		e.tail = q.prev
	}
	e.queued--
}

// Start forms a batch at time now and returns false if there is nothing to do.
// It fails when no sequence can make progress, which is a bug.
func (e *Engine) Start(now des.Time) (bool, error) {
	if e.Running()+e.queued == 0 {
		return false, nil
	}
	e.step = Step{Start: now, Admitted: e.step.Admitted[:0], Preempted: e.step.Preempted[:0]}
	budget := e.cfg.MaxNumBatchedTokens
	if !e.runTogether(&budget) {
		e.runOneByOne(&budget)
	}
	if len(e.step.Preempted) == 0 {
		e.admit(&budget)
	}
	if e.step.Prefill+e.step.Decode == 0 {
		return false, e.stuck("schedules nothing")
	}
	e.step.End = now + e.model.Step(e.step.Batch)
	e.step.Running, e.step.Waiting = e.Running(), e.queued
	e.step.UsedBlocks = e.cache.Total() - e.cache.Free()
	e.inFlight = true
	e.stats.PeakRunning = max(e.stats.PeakRunning, e.step.Running)
	e.stats.PeakBlocks = max(e.stats.PeakBlocks, e.step.UsedBlocks)
	return true, nil
}

// Stop accounts for the part of a step in flight that lies before now, where a
// simulation ends.
func (e *Engine) Stop(now des.Time) {
	if e.inFlight {
		e.account(now)
	}
}

func (e *Engine) account(now des.Time) {
	d := now - e.step.Start
	e.stats.BusyUS += d
	e.stats.BlockUS += d * int64(e.step.UsedBlocks)
}

// want returns how many tokens s still has to compute.
func (q *sequence) want() int32 { return q.input + q.generated - q.computed }

// runTogether schedules what runs: the steady sequences as one, the singles in
// turn. It does nothing and returns false where the order of admission would
// decide who gets tokens or blocks.
func (e *Engine) runTogether(budget *int) bool {
	left := *budget - len(e.done)
	need := 0
	if left < 0 {
		return false
	}
	if len(e.done) > 0 {
		need = e.cache.TickNeed()
	}
	for _, s := range e.singles {
		q := &e.seqs[s]
		n := e.capped(int(q.want()))
		if n > left {
			if q.order < e.newest {
				return false
			}
			n = left
		}
		if n > 0 && e.cache.Writing(q.kv) {
			return false
		}
		need += e.cache.Missing(q.kv, int(q.computed)+n)
		left -= n
		q.scheduled = int32(n)
	}
	if need > e.cache.Free() {
		return false
	}
	if e.ticked = len(e.done) > 0; e.ticked {
		e.step.Decode = int64(len(e.done))
		e.step.Context = e.context + e.step.Decode*e.cache.Ticks()
		e.cache.Tick()
	}
	for _, s := range e.singles {
		q := &e.seqs[s]
		if q.scheduled > 0 {
			e.cache.Extend(q.kv, int(q.computed+q.scheduled))
			e.count(q, +1)
		}
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

// count adds (sign +1) what q computes in this step to the batch, or takes it
// back (-1).
func (e *Engine) count(q *sequence, sign int64) {
	if q.generated > 0 && q.want() == 1 {
		e.step.Decode += sign
		e.step.Context += sign * int64(q.computed)
	} else {
		e.step.Prefill += sign * int64(q.scheduled)
	}
}

// runOneByOne schedules what runs, sequence by sequence in order of admission,
// preempting from the end where blocks run out.
func (e *Engine) runOneByOne(budget *int) {
	e.settleAll()
	e.ticked = false
	for i := 0; i < len(e.singles) && *budget > 0; i++ {
		q := &e.seqs[e.singles[i]]
		n := min(e.capped(int(q.want())), *budget)
		for !e.cache.Extend(q.kv, int(q.computed)+n) {
			victim := e.singles[len(e.singles)-1]
			e.preempt(victim, budget)
			if len(e.singles) == i {
				return
			}
		}
		q.scheduled = int32(n)
		*budget -= n
		e.count(q, +1)
	}
}

// preempt throws the last running sequence back into the wait queue.
func (e *Engine) preempt(s int32, budget *int) {
	q := &e.seqs[s]
	if q.scheduled > 0 {
		*budget += int(q.scheduled)
		e.count(q, -1)
		q.scheduled = 0
	}
	e.cache.Release(q.kv)
	q.computed, q.state = 0, waiting
	e.singles = e.singles[:len(e.singles)-1]
	e.putBack(s)
	e.step.Preempted = append(e.step.Preempted, q.tag)
	e.stats.Preemptions++
}

// admit schedules waiting requests in queue order until the first that does not
// fit.
func (e *Engine) admit(budget *int) {
	for *budget > 0 && e.head != none && e.Running() < e.cfg.MaxNumSeqs {
		s := e.head
		q := &e.seqs[s]
		tokens := int(q.input + q.generated)
		cached := e.cache.Lookup(q.kv, tokens-1)
		n := e.capped(tokens - cached)
		if n > *budget && !e.cfg.ChunkedPrefill {
			return
		}
		n = min(n, *budget)
		if !e.cache.Admit(q.kv, cached+n) {
			return
		}
		e.unqueue(s)
		q.computed, q.scheduled, q.state = int32(cached), int32(n), single
		q.order = e.orders
		e.orders++
		e.singles = append(e.singles, s)
		*budget -= n
		e.count(q, +1)
		if !q.admitted {
			q.admitted = true
			e.step.Admitted = append(e.step.Admitted, Admission{q.tag, cached})
			e.stats.QueriedTokens += int64(tokens)
			e.stats.CachedTokens += int64(cached)
		}
	}
}

// stuck is the error of a replica that makes no progress.
func (e *Engine) stuck(how string) error {
	s := e.head
	if len(e.singles) > 0 {
		s = e.singles[0]
	} else if len(e.done) > 0 {
		s = e.done[0].seq
	}
	return &StuckError{Tag: e.seqs[s].tag, Msg: fmt.Sprintf("the replica %s: %d running, %d waiting, %d of %d blocks free",
		how, e.Running(), e.queued, e.cache.Free(), e.cache.Total())}
}

// StuckError is a replica that makes no progress though it has work.
type StuckError struct {
	Tag int32 // a request that does not get on
	Msg string
}

func (e *StuckError) Error() string { return "engine: " + e.Msg }
