package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"blis/pkg/cluster"
	"blis/pkg/policy"
	"blis/pkg/stream"
)

// Counterfactual says which alternatives to decisions are evaluated. The zero value is none.
type Counterfactual struct {
	// top is the number of candidates listed in an estimate.
	top int
	// worst is the number of highest-regret decisions to re-simulate; named are the decisions to
	// re-simulate instead.
	worst int
	named []int64
	// all: re-simulate all candidates, not only the best three.
	all bool
	// text is the option as given.
	text string
}

// UnmarshalText reads K (estimates for the K best candidates), exact:N, exact:N:all, or decision
// ids.
func (c *Counterfactual) UnmarshalText(text []byte) error {
	if err := c.parse(string(text)); err != nil {
		return err
	}
	c.text = string(text)
	return nil
}

func (c *Counterfactual) parse(text string) error {
	number, exact := strings.CutPrefix(text, "exact:")
	all := false
	if exact {
		number, all = strings.CutSuffix(number, ":all")
	}
	n, err := strconv.ParseUint(number, 10, 31)
	switch {
	case err == nil && n > 0 && exact:
		*c = Counterfactual{top: maxAlternatives + 1, worst: int(n), all: all}
		return nil
	case err == nil && n > 0:
		*c = Counterfactual{top: int(n)}
		return nil
	case strings.HasPrefix(text, decisionPrefix):
		*c = Counterfactual{top: maxAlternatives + 1}
		for _, id := range strings.Split(text, ",") {
			digits, ok := strings.CutPrefix(id, decisionPrefix)
			n, err := strconv.ParseUint(digits, 10, 63)
			if err != nil || !ok {
				return fmt.Errorf("%q is not a decision id such as %s000913", id, decisionPrefix)
			}
			c.named = append(c.named, int64(n))
		}
		return nil
	}
	return fmt.Errorf("is %q; must be a number of candidates (3), exact:N, exact:N:all or decision ids "+
		"(%[2]s000913,%[2]s000914)", text, decisionPrefix)
}

// enabled reports whether alternatives are evaluated.
func (c *Counterfactual) enabled() bool { return c.top > 0 }

// exact reports whether decisions are re-simulated.
func (c *Counterfactual) exact() bool { return c.worst > 0 || len(c.named) > 0 }

// Contradiction reports counterfactual options that exclude each other.
func (o *Options) Contradiction() error {
	c := &o.Counterfactual
	switch {
	case c.enabled() && o.Trace == stream.TraceLevels[0]:
		return errors.New("--counterfactual needs decisions, which --trace minimal does not write; use --trace decisions")
	case o.CounterfactualHorizon != nil && !c.exact():
		return errors.New("--counterfactual-horizon needs --counterfactual exact:N or decision ids")
	}
	return nil
}

// attach makes s record what the evaluation needs. It returns the workload in memory, which the run
// fills, or nil if nothing is re-simulated.
func (c *Counterfactual) attach(s *simulation, totals *metricsSink) *workload {
	if !c.enabled() {
		return nil
	}
	s.oracle = &oracle{}
	s.regrets = &regretRecorder{Counterfactual: *c, oracle: s.oracle, totals: totals,
		admissions: map[int64]admissionDecision{}}
	if !c.exact() {
		return nil
	}
	recorder := &recordingFeed{feed: s.arrivals}
	s.arrivals, totals.results = recorder, &results{}
	return &recorder.workload
}

// runAlternatives re-simulates the run of s, and its selected decisions with their alternatives.
func runAlternatives(ctx context.Context, c *cluster.Config, specs []replicaSpec, w *workload, s *simulation,
	classes []stream.SLOClass, o *Options) error {
	base, err := newSimulation(c, classes, specs, o)
	if err != nil {
		return err
	}
	base.arrivals, base.sink, base.trace, base.horizon = &replayFeed{workload: w}, &results{}, &traceWriter{}, s.horizon
	if err := base.readNext(); err != nil {
		return err
	}
	for _, n := range s.regrets.named {
		if s.regrets.indexOf(n) < 0 {
			o.warn(fmt.Sprintf("--counterfactual: %s is not an admission or routing decision of this run; "+
				"the run is complete without its regret", appendDecisionID(nil, n)))
		}
	}
	return s.regrets.runSelected(ctx, base, s.regrets.totals.results, o.CounterfactualHorizon, s.trace)
}

// maxAlternatives is the number of alternative candidates that are re-simulated, unless all are.
const maxAlternatives = 3

// regretRecorder estimates the alternatives of each decision and records what is needed to
// re-simulate them.
type regretRecorder struct {
	Counterfactual
	*oracle
	totals *metricsSink
	// decisions are the routing decisions in order, and the named admission decisions. rejections
	// are the admission decisions that left a request unserved.
	decisions, rejections []decision
	// admissions are the last admission decisions by the position of their request.
	admissions map[int64]admissionDecision
}

// decision is a decision that can be changed.
type decision struct {
	number, position int64
	// event is the number of the event in which it was taken.
	event          int64
	stage, request string
	// alternatives are the other candidates, best estimate first.
	alternatives []candidate
	regret       int64 // estimated, in µs
	// admission is the last admission decision about the same request; its number is -1 if there was
	// none.
	admission admissionDecision
}

// candidate is a candidate that was not chosen.
type candidate struct {
	index   int
	replica int32
}

// admissionDecision is the last admission decision about a request.
type admissionDecision struct {
	number, event int64
	verdict       policy.Verdict
	// bestE2E is the estimated E2E latency in µs at the best candidate, if the request was not
	// admitted.
	bestE2E int64
}

// recordRouting estimates the candidates of the routing decision about r that was just taken, and
// writes its regret.
func (g *regretRecorder) recordRouting(s *simulation, r *request, v *policy.View, c policy.Choice) error {
	g.estimate(s, r, v)
	chosen := g.estimates[c.Candidate]
	preferred := slices.MinFunc(g.estimates, func(a, b estimate) int { return cmp.Compare(a.viewedE2E, b.viewedE2E) })
	slices.SortStableFunc(g.estimates, func(a, b estimate) int { return cmp.Compare(a.e2e, b.e2e) })
	best := g.estimates[0]
	hindsight, avoidable := chosen.e2e-best.e2e, chosen.e2e-preferred.e2e
	g.totals.AddRegret(hindsight, avoidable)
	if g.exact() {
		d := decision{number: s.decisionCount - 1, position: r.position, event: s.eventCount, stage: stream.StageRouting,
			request: r.out.ID, regret: hindsight, admission: admissionDecision{number: -1}}
		if admission, found := g.admissions[r.position]; found {
			d.admission = admission
		}
		for _, e := range g.estimates {
			if e.candidate != c.Candidate && (g.all || len(d.alternatives) < maxAlternatives) {
				d.alternatives = append(d.alternatives, candidate{e.candidate, e.replica})
			}
		}
		g.decisions = append(g.decisions, d)
	}
	return s.trace.estimatedRegret(s, r, g.estimates, min(g.top, len(g.estimates)), c.Candidate, hindsight, avoidable)
}

// recordAdmission records an admission decision based on the view.
func (g *regretRecorder) recordAdmission(s *simulation, r *request, view *policy.View, v policy.Verdict) {
	last := admissionDecision{number: s.decisionCount - 1, event: s.eventCount, verdict: v}
	if v.Action != policy.Admit && g.worst > 0 {
		g.estimate(s, r, view)
		last.bestE2E = slices.MinFunc(g.estimates, func(a, b estimate) int { return cmp.Compare(a.e2e, b.e2e) }).e2e
	}
	g.admissions[r.position] = last
	if slices.Contains(g.named, last.number) {
		g.decisions = append(g.decisions, last.decision(r))
	}
}

// recordEnd records a final request. One that admission rejected could have been served.
func (g *regretRecorder) recordEnd(r *request) {
	last, found := g.admissions[r.position]
	if found && g.worst > 0 && last.verdict.Action != policy.Admit && (r.out.State == stream.StateRejected ||
		r.out.State == stream.StateTimedOut) {
		g.rejections = append(g.rejections, last.decision(r))
	}
	delete(g.admissions, r.position)
}

// decision converts a to a decision about r.
func (a admissionDecision) decision(r *request) decision {
	return decision{number: a.number, position: r.position, event: a.event, stage: stream.StageAdmission,
		request: r.out.ID, admission: a}
}

// worstDecisions returns the decisions with the highest estimated regret: routing decisions by ms
// lost and, as up to half of them or what routing leaves, rejections by how soon the request could
// have been served. A rejection has no regret in ms: it lost the request.
func (g *regretRecorder) worstDecisions() []decision {
	slices.SortStableFunc(g.decisions, func(a, b decision) int { return cmp.Compare(b.regret, a.regret) })
	slices.SortStableFunc(g.rejections, func(a, b decision) int {
		return cmp.Compare(a.admission.bestE2E, b.admission.bestE2E)
	})
	n := min(len(g.rejections), max(g.worst/2, g.worst-len(g.decisions)))
	return slices.Concat(g.rejections[:n], g.decisions[:min(len(g.decisions), g.worst-n)])
}

// selectedDecisions returns the decisions to re-simulate in their order.
func (g *regretRecorder) selectedDecisions() []decision {
	var selected []decision
	if len(g.named) > 0 {
		for _, n := range g.named {
			if at := g.indexOf(n); at >= 0 {
				selected = append(selected, g.decisions[at])
			}
		}
	} else {
		selected = g.worstDecisions()
	}
	slices.SortFunc(selected, func(a, b decision) int { return cmp.Compare(a.number, b.number) })
	return slices.CompactFunc(selected, func(a, b decision) bool { return a.number == b.number })
}

// indexOf returns the index of the decision with a number, -1 if it is not a decision of admission
// or routing.
func (g *regretRecorder) indexOf(number int64) int {
	return slices.IndexFunc(g.decisions, func(d decision) bool { return d.number == number })
}

// runSelected re-simulates the selected decisions with their alternatives and writes the
// differences. base is the same simulation from the start with its workload in memory; actual are
// the results of the original run.
func (g *regretRecorder) runSelected(ctx context.Context, base *simulation, actual *results, horizon *Horizon,
	out *traceWriter) error {
	selected := g.selectedDecisions()
	p := &alternativeRunner{ctx: ctx, base: base, actual: actual, horizon: horizon}
	// base only moves forward, so trials start in the order of their events: a request's admission
	// comes before its routing.
	var trials []trial
	for i := range selected {
		trials = append(trials, selected[i].trials()...)
	}
	order := make([]int, len(trials))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(trials[a].event, trials[b].event) })
	results, err := p.runAll(trials, order)
	if err != nil {
		return err
	}
	for i, next := 0, 0; i < len(selected); i++ {
		first := next
		for next < len(trials) && trials[next].of == &selected[i] {
			next++
		}
		if err := out.exactRegret(&selected[i], results[first:next]); err != nil {
			return err
		}
	}
	return nil
}

// trial is one alternative of a decision, at the given event: another replica, or another verdict if
// replica is missing.
type trial struct {
	of       *decision
	event    int64
	override override
	replica  int32
}

// trials returns the alternatives of a decision.
func (d *decision) trials() (all []trial) {
	for _, c := range d.alternatives {
		all = append(all, trial{d, d.event, override{decision: d.number, candidate: c.index}, c.replica})
	}
	if a := d.admission; a.number >= 0 {
		opposite := policy.Verdict{Action: policy.Admit}
		if a.verdict.Action == policy.Admit {
			opposite.Action = policy.Reject
		}
		all = append(all, trial{d, a.event, override{decision: a.number, verdict: opposite}, missing})
	}
	return all
}
