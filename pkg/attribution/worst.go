package attribution

import (
	"cmp"
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

// Exact is what the alternatives of a re-simulated decision changed, and how far the run moves by itself:
// without controls, Sensitivity.Controls is 0.
type Exact struct {
	Alternatives []stream.Alternative
	Sensitivity  stream.Sensitivity
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
// queue with its replica; -1 where it was not routed. TokensStarted is the work of others,
// uncached prompt tokens and output tokens, that entered a batch there while it waited for its first token.
type ActualQueue struct {
	Own, Shortest int64
	ShortestAt    string
	TokensStarted int64
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

// ReplicaView is a replica, by its number, as the router saw it; a signal that it did not read is -1, a
// score NaN. Prefix is the number of blocks of the prompt that the router believed to be cached; in an
// Example, of tokens.
type ReplicaView struct {
	Replica                          int32
	Inflight, Queue, Running, Prefix int32
	KV, Score                        float64
	AgeUS                            int64
}

// worstExamples are the worst request of each pattern, in their order, then of the losing requests
// that no pattern explains the worst one for each dominant part.
func (a *Analyzer) worstExamples(f *Findings) (all []Example) {
	for _, p := range f.Patterns {
		if len(p.losing) > 0 {
			all = append(all, a.example(slices.MinFunc(p.losing, compareLoss)))
		}
	}
	var byPart [PartCount]*request
	for _, r := range a.requests.all() {
		if r.lost() && r.verdict.pattern < 0 {
			if w := &byPart[r.verdict.dominant]; *w == nil || compareLoss(r, *w) < 0 {
				*w = r
			}
		}
	}
	unexplained := slices.DeleteFunc(byPart[:], func(r *request) bool { return r == nil })
	slices.SortFunc(unexplained, compareLoss)
	for _, r := range unexplained {
		all = append(all, a.example(r))
	}
	return all
}

func (a *Analyzer) example(r *request) Example {
	n, seen, c, l := a.names.list, r.seen(), &r.contention, r.labels
	return Example{Decision: cmp.Or(r.decision(), r.admission.id), Request: r.id(), Pattern: int(r.verdict.pattern),
		ArrivalUS: r.arrival(), Labels: Labels{n[l.tenant], n[l.class], n[l.rule], n[l.routingReason]},
		Replica: a.Replica(r.replica), Chosen: a.replicaView(seen.chosen), NextBest: a.replicaView(seen.nextBest),
		Queue:   ActualQueue{int64(c.queue), int64(c.shortest), a.Replica(c.shortestAt), c.ahead.total},
		Latency: a.latency(r), Estimate: r.estimate, Exact: a.exact[r.decision()],
		Outcome: Outcome{n[l.state], n[l.reason], int64(r.preemptions), r.lost(), r.verdict.excessMS},
		Tokens: Tokens{int64(r.tokens.input), int64(r.tokens.output), int64(r.tokens.cached),
			int64(r.tokens.expected)}}
}

func (a *Analyzer) latency(r *request) Latency {
	l := Latency{TTFTMS: -1, TPOTMS: -1, E2EMS: -1, Targets: a.classes[a.names.list[r.labels.class]].Targets}
	for p, us := range r.split() {
		l.PartsMS[p] = float64(us) / 1000
	}
	if r.firstToken() != never {
		l.TTFTMS = latencyMS(r.arrival(), r.firstToken())
	}
	if a.completed(r) {
		l.E2EMS = latencyMS(r.arrival(), r.ended())
		if r.tokens.output > 1 {
			l.TPOTMS = stream.TPOT(int64(r.ended()-r.firstToken()), int64(r.tokens.output))
		}
	}
	return l
}

// replicaView is v with its prefix in tokens, nil if there is none.
func (a *Analyzer) replicaView(v ReplicaView) *ReplicaView {
	if v.Replica == missing {
		return nil
	}
	if v.Prefix > 0 {
		v.Prefix *= int32(a.topology.blockSize(v.Replica))
	}
	return &v
}
