package sim

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"blis/pkg/des"
	"blis/pkg/metrics"
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
	// scaling is the number of changes of the number of replicas to re-simulate.
	scaling int
	// text is the option as given.
	text string
}

// UnmarshalText reads K (estimates for the K best candidates), exact:N, exact:N:all, scaling:N, or
// decision ids.
func (c *Counterfactual) UnmarshalText(option []byte) error {
	text := string(option)
	if number, ok := strings.CutPrefix(text, "scaling:"); ok {
		if n, err := strconv.ParseUint(number, 10, 31); err == nil && n > 0 {
			*c = Counterfactual{scaling: int(n), text: text}
			return nil
		}
	}
	number, exact := strings.CutPrefix(text, "exact:")
	all := false
	if exact {
		number, all = strings.CutSuffix(number, ":all")
	}
	n, err := strconv.ParseUint(number, 10, 31)
	switch {
	case err == nil && n > 0:
		*c = Counterfactual{top: int(n), text: text}
		if exact {
			*c = Counterfactual{top: maxAlternatives + 1, worst: int(n), all: all, text: text}
		}
		return nil
	case strings.HasPrefix(text, decisionPrefix):
		*c = Counterfactual{top: maxAlternatives + 1, text: text}
		for id := range strings.SplitSeq(text, ",") {
			digits, ok := strings.CutPrefix(id, decisionPrefix)
			n, err := strconv.ParseUint(digits, 10, 63)
			if err != nil || !ok {
				return fmt.Errorf("%q is not a decision id such as %s000913", id, decisionPrefix)
			}
			c.named = append(c.named, int64(n))
		}
		return nil
	}
	return fmt.Errorf("is %q; must be a number of candidates (3), exact:N, exact:N:all, scaling:N or decision ids "+
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
	case (c.enabled() || c.scaling > 0) && o.Trace == stream.TraceLevels[0]:
		return errors.New(
			"--counterfactual needs decisions, which --trace minimal does not write; use --trace decisions")
	case o.CounterfactualHorizon != nil && !c.exact():
		return errors.New("--counterfactual-horizon needs --counterfactual exact:N or decision ids")
	}
	return nil
}

// maxAlternatives is the number of alternative candidates that are re-simulated, unless all are.
const maxAlternatives = 3

// regretRecorder observes decisions. It estimates their alternatives and records what is needed to
// re-simulate them.
type regretRecorder struct {
	Counterfactual
	oracle  *oracle
	records *recorder
	totals  *metrics.Accumulator
	// decisions are the named decisions or, without names, the routing decisions of both stages in order. rejections
	// are the admission decisions that left a request unserved.
	decisions, rejections []pastDecision
	// admissions are the last admission decisions by the position of their request.
	admissions map[int64]admissionDecision
	// feed and actual are the workload and the results of the run, if decisions are re-simulated.
	feed   recordingFeed
	actual results
}

// plugIn makes s record what the evaluation of alternatives needs, if there is any.
func (c *Counterfactual) plugIn(s *simulation, records *recorder, totals *metrics.Accumulator) *regretRecorder {
	g := &regretRecorder{Counterfactual: *c, oracle: newOracle(len(s.replicas)), records: records,
		totals: totals, admissions: map[int64]admissionDecision{}}
	if c.enabled() {
		s.observers.add(g)
	}
	if c.exact() {
		g.feed.feed, s.feed = s.feed, &g.feed
		s.observers.add(&g.actual)
	}
	return g
}

func (g *regretRecorder) hooks() []hook { return g.oracle.hooks() }

func (g *regretRecorder) observe(s *simulation, h hook, i int32) error {
	if err := g.oracle.observe(s, h, i); err != nil {
		return err
	}
	r := s.request(i)
	switch h {
	case onDecision:
		switch s.decisions.last.stage {
		case stream.StageAdmission:
			g.recordAdmission(s, r, &s.decisions.last)
		case stream.StagePrefillRouting:
			return g.recordRouting(s, r, &s.decisions.last)
		}
	case onSend:
		return g.recordRouting(s, r, &s.decisions.last)
	case onFinal:
		g.recordEnd(r)
	}
	return nil
}

// pastDecision is a decision that can be re-simulated with alternatives.
type pastDecision struct {
	number, position int64
	// event is the number of the event in which it was taken.
	event          int64
	stage, request string
	// alternatives are the other candidates, best estimate first.
	alternatives []estimate
	chosen       estimate
	regret       int64 // estimated, in µs
	// admission is the last admission decision about the same request; its number is -1 if there was
	// none.
	admission admissionDecision
}

// admissionDecision is the last admission decision about a request.
type admissionDecision struct {
	number, event int64
	verdict       policy.Verdict
	// bestE2E is the estimated E2E latency in µs at the best candidate, if the request was not
	// admitted.
	bestE2E int64
}

// recordRouting estimates the candidates of the decision about r that was just taken, of routing or prefill routing,
// and writes its regret.
func (g *regretRecorder) recordRouting(s *simulation, r *request, d *decision) error {
	all := g.oracle.estimate(s, r, d.view)
	chosen := all[d.choice.Candidate]
	preferred := slices.MinFunc(all, func(a, b estimate) int { return cmp.Compare(a.viewedE2E, b.viewedE2E) })
	slices.SortStableFunc(all, func(a, b estimate) int { return cmp.Compare(a.e2e, b.e2e) })
	hindsight, avoidable := chosen.e2e-all[0].e2e, chosen.e2e-preferred.e2e
	soonest := slices.MinFunc(all, func(a, b estimate) int { return cmp.Compare(a.ttft, b.ttft) })
	g.totals.AddRegret(d.stage == stream.StagePrefillRouting, hindsight, avoidable, chosen.ttft-soonest.ttft)
	if g.worst > 0 || slices.Contains(g.named, d.number) {
		past := pastDecision{number: d.number, position: r.position, event: s.events.count, stage: d.stage,
			request: r.out.ID, chosen: chosen, regret: hindsight, admission: admissionDecision{number: -1}}
		if last, found := g.admissions[r.position]; found && d.stage == stream.StageRouting {
			past.admission = last
		}
		for _, e := range all {
			if e.candidate != d.choice.Candidate && (g.all || len(past.alternatives) < maxAlternatives) {
				past.alternatives = append(past.alternatives, e)
			}
		}
		g.decisions = append(g.decisions, past)
	}
	return g.write(s, r, d, all, hindsight, avoidable)
}

// write writes the estimates for the candidates of a routing decision, best first.
func (g *regretRecorder) write(s *simulation, r *request, d *decision, all []estimate,
	hindsight, avoidable des.Time) error {
	chosen := d.choice.Candidate
	ms := func(us des.Time) *float64 { x := float64(us) / 1000; return &x }
	x := stream.Regret{Kind: stream.KindRegret, Decision: decisionID(d.number), Request: r.out.ID, Stage: d.stage,
		Method: stream.MethodEstimated, HindsightMS: ms(hindsight), AvoidableMS: ms(avoidable)}
	for i, e := range all {
		if i >= g.top && e.candidate != chosen {
			continue
		}
		at := &s.replicas[e.replica]
		x.Alternatives = append(x.Alternatives, stream.Alternative{Deployment: s.deployments[at.deployment].id,
			Replica: at.index, Chosen: e.candidate == chosen, TTFTMS: ms(e.ttft), E2EMS: ms(e.e2e),
			ViewMS: ms(e.viewedE2E)})
	}
	return g.records.Regret(&x)
}

// recordAdmission records an admission decision.
func (g *regretRecorder) recordAdmission(s *simulation, r *request, d *decision) {
	last := admissionDecision{number: d.number, event: s.events.count, verdict: d.given}
	if d.given.Action != policy.Admit && g.worst > 0 {
		all := g.oracle.estimate(s, r, d.view)
		last.bestE2E = slices.MinFunc(all, func(a, b estimate) int { return cmp.Compare(a.e2e, b.e2e) }).e2e
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
func (a admissionDecision) decision(r *request) pastDecision {
	return pastDecision{number: a.number, position: r.position, event: a.event, stage: stream.StageAdmission,
		request: r.out.ID, admission: a}
}

// worstDecisions returns the decisions with the highest estimated regret: routing decisions by ms
// lost and, as up to half of them or what routing leaves, rejections by how soon the request could
// have been served. A rejection has no regret in ms: it lost the request.
func (g *regretRecorder) worstDecisions() []pastDecision {
	slices.SortStableFunc(g.decisions, func(a, b pastDecision) int { return cmp.Compare(b.regret, a.regret) })
	slices.SortStableFunc(g.rejections, func(a, b pastDecision) int {
		return cmp.Compare(a.admission.bestE2E, b.admission.bestE2E)
	})
	n := min(len(g.rejections), max(g.worst/2, g.worst-len(g.decisions)))
	return slices.Concat(g.rejections[:n], g.decisions[:min(len(g.decisions), g.worst-n)])
}

// selectedDecisions returns the decisions to re-simulate in their order.
func (g *regretRecorder) selectedDecisions() []pastDecision {
	selected := g.decisions
	if g.worst > 0 {
		selected = g.worstDecisions()
	}
	slices.SortFunc(selected, func(a, b pastDecision) int { return cmp.Compare(a.number, b.number) })
	return selected
}

// warnUnknown warns about named decisions that the run does not have.
func (g *regretRecorder) warnUnknown(o *Options) {
	for _, n := range g.named {
		if !slices.ContainsFunc(g.decisions, func(d pastDecision) bool { return d.number == n }) {
			o.warn(fmt.Sprintf("--counterfactual: %s is not an admission or routing decision of this run; "+
				"the run is complete without its regret", decisionID(n)))
		}
	}
}
