package attribution

import (
	"slices"

	"blis/pkg/stream"
)

// Example is one request, the decision about it and its outcome.
type Example struct {
	// Decision and Request are ids; Decision is "" if there was none.
	Decision, Request string
	// Pattern is the index of the pattern that explains it, -1 for none.
	Pattern   int
	Labels    Labels
	ArrivalUS stream.Micros
	// Replica is where it was sent, "" if it was not; Chosen is that replica as the router saw it,
	// NextBest the best of the others, nil where the record has none.
	Replica          string
	Chosen, NextBest *ReplicaView
	Queue            ActualQueue
	Outcome          Outcome
	Latency          Latency
	Tokens           Tokens
	// Estimate and Exact are its counterfactuals, nil where not recorded.
	Estimate *Estimate
	Exact    *Exact
}

// Outcome is how a request ended. Lost: it counts as lost. ExcessMS is how far it was above the target
// that it missed most.
type Outcome struct {
	State, Reason string
	Preemptions   int64
	Lost          bool
	ExcessMS      float64
}

// Labels are the tenant and the class of a request, and the rule and the reason of its routing;
// "" where there is none.
type Labels struct{ Tenant, Class, Rule, RoutingReason string }

// ActualQueue is the actual length of the queue that a request was sent to, and of the shortest
// queue with its replica; -1 where it was not routed. TokensAhead is the work that it waited behind.
type ActualQueue struct {
	Own, Shortest int64
	ShortestAt    string
	TokensAhead   int64
}

// Latency is the time of a request and its targets. TTFTMS, TPOTMS and E2EMS are below 0 where
// they do not exist.
type Latency struct {
	PartsMS               [PartCount]float64
	TTFTMS, TPOTMS, E2EMS float64
	Targets               stream.Targets
}

// Tokens are the prompt and output tokens of a request, and the prompt tokens found in the cache
// and expected there.
type Tokens struct{ Input, Output, Cached, Expected int64 }

// Estimate is the estimated regret of a decision: the E2E of the choice and that of the best
// alternative.
type Estimate struct {
	HindsightMS, AvoidableMS float64
	ChosenMS, BestMS         float64
	Best                     string
}

// ReplicaView is a replica as the router saw it; a signal that it did not read is nil.
type ReplicaView struct {
	Replica  string
	Inflight int64
	// Prefix is the number of prompt tokens that the router believed to be cached.
	Queue, Running, Prefix *int64
	KV, Score              *float64
	AgeMS                  float64
}

// worstExamples are the worst request of each pattern, in their order, then of the losing requests
// that no pattern explains the worst one for each dominant part.
func (a *Analyzer) worstExamples(f *Findings) (all []Example) {
	for n := range f.Patterns {
		if w := f.Patterns[n].worst; w >= 0 {
			all = append(all, a.example(w, n))
		}
	}
	if f.Loss.Lost == 0 {
		return all
	}
	var byPart [PartCount]int32
	for p := range byPart {
		byPart[p] = -1
	}
	for i, r := range a.requests {
		if !r.lost() || a.patternOf[i] >= 0 {
			continue
		}
		if w := &byPart[r.verdict.dominant]; *w < 0 || lostMore(r, a.requests[*w]) {
			*w = int32(i)
		}
	}
	order := slices.DeleteFunc(byPart[:], func(i int32) bool { return i < 0 })
	slices.SortFunc(order, func(x, y int32) int {
		return compareTrue(lostMore(a.requests[x], a.requests[y]), lostMore(a.requests[y], a.requests[x]))
	})
	for _, i := range order {
		all = append(all, a.example(i, -1))
	}
	return all
}

func (a *Analyzer) example(i int32, pattern int) Example {
	r, n := a.requests[i], a.names.list
	g := &r.routing
	e := Example{Decision: r.decision, Request: r.id, Pattern: pattern, ArrivalUS: r.times.arrival,
		Labels:  Labels{n[r.labels.tenant], n[r.labels.class], n[g.rule], n[g.reason]},
		Replica: a.Replica(r.replica), Chosen: a.replicaView(&g.chosen), NextBest: a.replicaView(&g.nextBest),
		Queue: a.actualQueue(r), Latency: a.latency(r), Exact: a.exact[r.decision],
		Outcome: Outcome{n[r.labels.state], n[r.labels.reason], int64(r.preemptions), r.lost(), r.verdict.excessMS},
		Tokens: Tokens{int64(r.tokens.input), int64(r.tokens.output), int64(r.tokens.cached),
			int64(r.tokens.expected)}}
	if r.decision == "" {
		e.Decision = r.admission.id
	}
	if g.estimated {
		e.Estimate = &Estimate{HindsightMS: g.hindsightMS, AvoidableMS: g.avoidableMS, ChosenMS: g.chosenE2EMS,
			BestMS: g.bestE2EMS, Best: a.Replica(g.bestReplica)}
	}
	return e
}

func (a *Analyzer) actualQueue(r *request) ActualQueue {
	c := &r.contention
	return ActualQueue{Own: int64(c.queue), Shortest: int64(c.shortest), ShortestAt: a.Replica(c.shortestAt),
		TokensAhead: c.ahead.total}
}

func (a *Analyzer) latency(r *request) Latency {
	t := &r.times
	l := Latency{TTFTMS: -1, TPOTMS: -1, E2EMS: -1, Targets: a.classes[a.names.list[r.labels.class]].Targets}
	for p, us := range t.split() {
		l.PartsMS[p] = float64(us) / 1000
	}
	if t.firstToken != never {
		l.TTFTMS = latencyMS(t.arrival, t.firstToken)
	}
	if a.completed(r) {
		l.E2EMS = latencyMS(t.arrival, t.ended)
		if r.tokens.output > 1 {
			l.TPOTMS = stream.TPOT(int64(t.ended-t.firstToken), int64(r.tokens.output))
		}
	}
	return l
}

// replicaView is v for readers, nil if there is none.
func (a *Analyzer) replicaView(v *view) *ReplicaView {
	if v.replica == missing {
		return nil
	}
	signal := func(x int32) *int64 {
		if x < 0 {
			return nil
		}
		n := int64(x)
		return &n
	}
	s := &ReplicaView{Replica: a.Replica(v.replica), Inflight: int64(v.inflight), Queue: signal(v.queue),
		Running: signal(v.running), AgeMS: float64(v.ageUS) / 1000}
	if s.Prefix = signal(max(v.matched, v.cached)); s.Prefix != nil {
		*s.Prefix *= a.topology.blockSize(v.replica)
	}
	if kv := v.kv; kv >= 0 {
		s.KV = &kv
	}
	if score := v.score; score == score { // not NaN
		s.Score = &score
	}
	return s
}
