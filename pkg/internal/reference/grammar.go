package reference

import (
	"cmp"
	"slices"
)

// Grammars is structured output: requests wait until their grammar is compiled, and steps for the masks of tokens.
type Grammars struct {
	// Workers compile grammars, each of which takes CompileUS, in the order of the requests. The mean is about MeanUS.
	Workers   int
	MeanUS    int64
	CompileUS func(grammar string) int64
	// The host fills a mask in MaskUS. A step ends SamplingUS after its masks at the earliest.
	MaskUS     float64
	SamplingUS int64
}

// GrammarCounts counts requests with a grammar that come to replicas, the grammars that are compiled for them, and what
// happens to these requests: those that wait for it, for one that another request has asked for, and in a queue behind
// others; those passed in the queue; batches whose masks are filled when the step before has ended; steps that wait for
// masks; batches formed when those of the step before are filled; and aborts while that is so.
type GrammarCounts struct {
	Waits, Shared, Queued, Skipped, Idle      int
	Deferred, Extended, FormedLate, LeftEarly int
	Requests, Compiled, Masks                 int
}

func (g *GrammarCounts) add(h GrammarCounts) {
	g.Waits += h.Waits
	g.Shared += h.Shared
	g.Queued += h.Queued
	g.Skipped += h.Skipped
	g.Idle += h.Idle
	g.Deferred += h.Deferred
	g.Extended += h.Extended
	g.FormedLate += h.FormedLate
	g.LeftEarly += h.LeftEarly
	g.Requests += h.Requests
	g.Compiled += h.Compiled
	g.Masks += h.Masks
}

// structured is the state of structured output at a replica.
type structured struct {
	// used: a request with a grammar has come. workers are when each of them is free.
	used     bool
	workers  []int64
	compiled map[string]int64
	// wakeAt is when the host has filled the masks that it fills now. forming: it forms the next batch then, while a
	// step is in progress. filling: it starts the next step then.
	wakeAt           int64
	forming, filling bool
	// lastEnd is when the last step ended.
	lastEnd int64
	counts  GrammarCounts
}

// compile hands the grammar of a request that comes to a worker.
func (r *replica) compile(q *request, now int64) {
	g, c := &r.grammars, r.config.Grammars
	q.readyAt = now
	if c == nil || q.Grammar == "" {
		return
	}
	if !g.used {
		g.used, g.workers, g.compiled = true, make([]int64, c.Workers), map[string]int64{}
		if r.ordersByArrival() {
			slices.SortStableFunc(r.waiting, func(p, q *request) int {
				return cmp.Or(cmp.Compare(r.config.order(p), r.config.order(q)), cmp.Compare(p.arrival, q.arrival))
			})
		}
	}
	g.counts.Requests++
	first := slices.Index(g.workers, slices.Min(g.workers))
	start := max(now, g.workers[first])
	if start > now {
		g.counts.Queued++
	}
	if at, known := g.compiled[q.Grammar]; known {
		if at > start {
			g.counts.Shared++
		}
		q.readyAt = max(start, at)
	} else {
		q.readyAt = start + c.CompileUS(q.Grammar)
		g.compiled[q.Grammar] = q.readyAt
		g.counts.Compiled++
	}
	g.workers[first] = q.readyAt
	if q.readyAt > now {
		g.counts.Waits++
	}
}

// skipsGrammar passes the first waiting request if its grammar is not compiled at now.
func (r *replica) skipsGrammar(q *request, now int64) bool {
	if q.readyAt <= now {
		return false
	}
	r.grammars.counts.Skipped++
	r.skippedNow = append(r.skippedNow, q)
	r.waiting = r.waiting[1:]
	return true
}

// isDeferred reports whether the masks of a batch are filled only when the step in progress has ended: one of its
// requests with a grammar then gets the token before.
func (r *replica) isDeferred(b *batch) bool {
	return r.config.Grammars != nil && slices.ContainsFunc(b.entries, func(p entry) bool {
		return p.request.Grammar != "" && p.emitsToken && p.follows
	})
}

// fillMasks fills the masks of a batch from a time on. Requests that have left, or leave now, need none.
func (r *replica) fillMasks(b *batch, at int64) {
	c, rows := r.config.Grammars, 0
	if c == nil {
		return
	}
	for _, p := range b.entries {
		q := p.request
		if q.Grammar == "" || !p.emitsToken || q.final() || slices.Contains(r.aborted, q) || r.endsNow(b, q) {
			continue
		}
		rows++
		if s := r.config.Speculation; s != nil && !p.padded && (p.follows || !r.config.Async) {
			rows += p.drafts
		}
	}
	b.Masks = rows
	if r.config.Speculation == nil && rows > 128 { // 8 workers fill 16 at a time
		workers := [8]int{}
		for left := rows; left > 0; left -= 16 {
			w := slices.Index(workers[:], slices.Min(workers[:]))
			workers[w] += min(16, left)
		}
		rows = slices.Max(workers[:])
	}
	b.MaskUS = roundHalfUp(float64(float64(rows) * c.MaskUS))
	b.masksAt = at + b.MaskUS
	r.grammars.counts.Masks += b.Masks
}

// endsNow reports whether a request in a batch has all its output when the step before that ends.
func (r *replica) endsNow(b *batch, q *request) bool {
	if r.step == nil || b == r.step {
		return false
	}
	for _, p := range r.step.entries {
		if p.request == q && p.emitsToken {
			return q.outcome.Generated+1+r.accepted(p) >= q.Output
		}
	}
	return false
}

// waitForMasks makes a step that begins wait for its masks.
func (r *replica) waitForMasks() {
	if b := r.step; b.Masks > 0 {
		if at := b.masksAt + r.config.Grammars.SamplingUS; at > b.EndUS {
			b.MaskWaitUS, b.EndUS = at-b.EndUS, at
			r.grammars.counts.Extended++
		}
	}
}

// isBusy reports whether a replica does not start anything at now.
func (r *replica) isBusy(now int64) bool {
	g := &r.grammars
	return r.step != nil && !(g.forming && now == g.wakeAt) || g.filling && now < g.wakeAt
}

// endsStep reports whether the host sees at now that the step in progress has ended.
func (r *replica) endsStep(now int64) bool {
	g := &r.grammars
	if r.step != nil && r.pipelined {
		return r.step.EndUS <= now && !r.awaitsBlocks()
	}
	return r.step != nil && !g.forming && max(r.step.EndUS, g.wakeAt) == now
}

// hostTimes are when a replica ends its step or has filled masks.
func (r *replica) hostTimes() (times []int64) {
	g := &r.grammars
	switch {
	case g.forming || g.filling:
		times = append(times, g.wakeAt)
	case r.step != nil:
		times = append(times, max(r.step.EndUS, g.wakeAt))
	}
	for _, q := range r.waiting {
		times = append(times, q.readyAt)
	}
	return times
}

// leaveEarly frees the blocks of requests that were aborted while the host filled the masks of the step in progress.
func (r *replica) leaveEarly() []*request {
	left := r.aborted
	for _, q := range left {
		r.leave(q)
		r.grammars.counts.LeftEarly++
	}
	r.aborted = nil
	return left
}
