package attribution

import (
	"cmp"
	"slices"

	"blis/pkg/stream"
)

// Example is one decision and what came of it.
type Example struct {
	// Decision and Request are ids; Decision is "" where nobody decided.
	Decision, Request string
	// Pattern is its place among the patterns, -1 of none.
	Pattern int
	// Tenant, Class and Rule are names, "" where there is none.
	Tenant, Class, Rule, Why string
	ArrivalUS                stream.Micros
	// Replica is where it went, "" if nowhere; Seen what the router saw of that, Next of
	// the best of the others, nil where it showed none.
	Replica    string
	Seen, Next *Seen
	// Queue is how long the queue there truly was, Shortest the shortest, at Freest.
	Queue, Shortest int64
	Freest          string
	State, Reason   string
	// MS are the Parts of its time in ms. TTFTMS and E2EMS are absent, below 0, where they
	// never came; so is TPOTMS.
	MS                    [PartCount]float64
	TTFTMS, TPOTMS, E2EMS float64
	Targets               stream.Targets
	Lost                  bool
	Missed                []string // ttft, tpot, e2e
	OverMS                float64
	Input, Output, Cached int64
	Expected              int64
	Preemptions           int64
	// Ahead are tokens that it waited behind.
	Ahead int64
	// Estimate is the regret by estimate, Exact by playing, nil where not recorded.
	Estimate *Estimate
	Exact    *Exact
}

// Estimate is what the choice was estimated to take, and the best other candidate.
type Estimate struct {
	HindsightMS, AvoidableMS float64
	OursMS, BestMS           float64
	Best                     string
}

// Seen is a replica as the router saw it; nil is what it did not look at.
type Seen struct {
	Replica                string
	Inflight               int64
	Queue, Running, Prefix *int64 // Prefix are tokens that it believed to be there
	KV                     *float64
	AgeMS                  float64
	Score                  *float64
}

// worst picks an exemplar of each pattern, in their order, and those that lost most of
// the requests that no pattern explains, by one in each part.
func (in *Analyzer) worst(f *Findings) (all []Example) {
	for n := range f.Patterns {
		if w := f.Patterns[n].worst; w >= 0 {
			all = append(all, in.exemplar(w, n))
		}
	}
	if f.Loss.Lost == 0 {
		return all
	}
	var rest [PartCount]int32
	for p := range rest {
		rest[p] = -1
	}
	for i := range in.rows {
		r := in.rows[i]
		if r.loss == 0 || in.by[i] >= 0 {
			continue
		}
		if at := &rest[r.blame]; *at < 0 || in.moreLost(r, in.rows[*at]) {
			*at = int32(i)
		}
	}
	order := slices.DeleteFunc(rest[:], func(i int32) bool { return i < 0 })
	slices.SortFunc(order, func(a, b int32) int {
		if in.moreLost(in.rows[a], in.rows[b]) {
			return -1
		}
		return cmp.Compare(b, a)
	})
	for _, i := range order {
		all = append(all, in.exemplar(i, -1))
	}
	return all
}

// exemplar tells about row i.
func (in *Analyzer) exemplar(i int32, pattern int) Example {
	r := in.rows[i]
	name := func(n int32) string { return in.names.list[n] }
	e := Example{Decision: r.decision, Request: r.id, Pattern: pattern, Tenant: name(r.tenant), Class: name(r.class), Rule: name(r.rule), Why: name(r.why),
		ArrivalUS: r.arrival, Replica: in.Replica(r.replica), Queue: int64(r.queue), Shortest: int64(r.shortest), Freest: in.Replica(r.freest),
		State: name(r.state), Reason: name(r.reason), TTFTMS: -1, TPOTMS: -1, E2EMS: -1, Targets: in.classes[name(r.class)].Targets,
		Lost: r.loss > 0, OverMS: r.overMS, Input: int64(r.input), Output: int64(r.output), Cached: int64(r.cached), Expected: int64(r.expected),
		Preemptions: int64(r.preemptions), Ahead: r.ahead, Exact: in.exact[r.decision]}
	if r.decision == "" {
		e.Decision = r.admission
	}
	e.Seen, e.Next = in.seen(&r.seen), in.seen(&r.next)
	s := r.split()
	for p := range s {
		e.MS[p] = float64(s[p]) / 1000
	}
	if r.first != never {
		e.TTFTMS = ms(r.first - r.arrival)
	}
	if e.State == stream.StateCompleted {
		e.E2EMS = ms(r.ended - r.arrival)
		if r.output > 1 {
			e.TPOTMS = stream.TPOT(int64(r.ended-r.first), int64(r.output))
		}
	}
	for _, m := range []struct {
		mark uint8
		name string
	}{{missedTTFT, "ttft"}, {missedTPOT, "tpot"}, {missedE2E, "e2e"}} {
		if r.missed&m.mark != 0 {
			e.Missed = append(e.Missed, m.name)
		}
	}
	if r.estimated {
		e.Estimate = &Estimate{HindsightMS: r.hindsight, AvoidableMS: r.avoidable, OursMS: r.ours, BestMS: r.bestMS, Best: in.Replica(r.best)}
	}
	return e
}

// seen is v for those who read it, nil if there is none.
func (in *Analyzer) seen(v *view) *Seen {
	if v.replica == nowhere {
		return nil
	}
	n := func(x int32) *int64 {
		if x < 0 {
			return nil
		}
		of := int64(x)
		return &of
	}
	s := &Seen{Replica: in.Replica(v.replica), Inflight: int64(v.inflight), Queue: n(v.queue), Running: n(v.running), AgeMS: float64(v.age) / 1000}
	if s.Prefix = n(max(v.matched, v.cached)); s.Prefix != nil {
		*s.Prefix *= in.plan.block(v.replica)
	}
	if v.kv >= 0 {
		kv := v.kv
		s.KV = &kv
	}
	if score := v.score; score == score { // no NaN
		s.Score = &score
	}
	return s
}
