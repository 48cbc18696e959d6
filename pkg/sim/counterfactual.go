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

// Counterfactual says which other choices are looked into. The zero value is none.
type Counterfactual struct {
	// top candidates are shown of an estimate.
	top int
	// worst decisions by estimate are played again, or those named.
	worst int
	named []int64
	// all candidates are played, not only the best three.
	all bool
	// text is how it was written.
	text string
}

// UnmarshalText reads K (estimates for the K best candidates), exact:N or
// exact:N:all, or ids of decisions.
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
		*c = Counterfactual{top: bestOthers + 1, worst: int(n), all: all}
		return nil
	case err == nil && n > 0:
		*c = Counterfactual{top: int(n)}
		return nil
	case strings.HasPrefix(text, decisionPrefix):
		*c = Counterfactual{top: bestOthers + 1}
		for _, id := range strings.Split(text, ",") {
			digits, ok := strings.CutPrefix(id, decisionPrefix)
			n, err := strconv.ParseUint(digits, 10, 63)
			if err != nil || !ok {
				return fmt.Errorf("%q is no id of a decision, such as %s000913", id, decisionPrefix)
			}
			c.named = append(c.named, int64(n))
		}
		return nil
	}
	return fmt.Errorf("must be a number of candidates (3), exact:N, exact:N:all or ids of decisions (%s000913,%[1]s000914), is %q", decisionPrefix, text)
}

// given reports whether anything is asked for.
func (c *Counterfactual) given() bool { return c.top > 0 }

// exact reports whether decisions are to be played again.
func (c *Counterfactual) exact() bool { return c.worst > 0 || len(c.named) > 0 }

// Contradiction reports options about counterfactuals that do not go together.
func (o *Options) Contradiction() error {
	c := &o.Counterfactual
	switch {
	case c.given() && o.Trace == stream.TraceLevels[0]:
		return errors.New("--counterfactual points to decisions, which --trace minimal does not write")
	case o.CounterfactualHorizon != nil && !c.exact():
		return errors.New("--counterfactual-horizon is for --counterfactual exact:N, or ids of decisions")
	}
	return nil
}

// watch lets s remember what is needed; what it returns fills with the workload,
// nil if nothing is to be played again.
func (c *Counterfactual) watch(s *simulation, b *book) *kept {
	if !c.given() {
		return nil
	}
	s.judge = &judge{}
	s.regrets = &regrets{Counterfactual: *c, judge: s.judge, book: b, admissions: map[int64]admissionDecision{}}
	if !c.exact() {
		return nil
	}
	k := &keeping{feed: s.arrivals}
	s.arrivals, b.fates = k, &fates{}
	return &k.kept
}

// replay plays the run that s was again, and from it other choices.
func replay(ctx context.Context, c *cluster.Config, servers []server, k *kept, s *simulation, classes []stream.SLOClass, o *Options) error {
	base, err := newSimulation(c, classes, servers, o)
	if err != nil {
		return err
	}
	base.arrivals, base.ledger, base.out, base.horizon = &again{kept: k}, &fates{}, &output{}, s.horizon
	if err := base.pull(); err != nil {
		return err
	}
	for _, n := range s.regrets.named {
		if s.regrets.find(n) < 0 {
			o.warn(fmt.Sprintf("--counterfactual: %s is no decision of admission or routing in this run, which is whole and has no regret of it", appendDecisionID(nil, n)))
		}
	}
	return s.regrets.play(ctx, base, s.regrets.book.fates, o.CounterfactualHorizon, s.out)
}

// bestOthers is how many candidates beside the choice are played where not all are.
const bestOthers = 3

// regrets estimates what other choices would have been, and remembers what it
// takes to play them.
type regrets struct {
	Counterfactual
	*judge
	book *book
	// decisions are those of routing, in their order, and those of admission that
	// were asked for; refused are those of admission that let a request end unserved.
	decisions, refused []decision
	// admissions are the last admission decisions, by the request's position.
	admissions map[int64]admissionDecision
}

// decision is one that can be taken otherwise.
type decision struct {
	number, position int64
	// event is the place among the events of the one in which it was taken.
	event          int64
	stage, request string
	// others are candidates, the best by estimate first.
	others []other
	regret int64 // estimated, in µs
	// admission is the last decision of admission about the same request; its number is
	// -1 if there was none.
	admission admissionDecision
}

// other is a candidate that was not chosen.
type other struct {
	candidate int
	replica   int32
}

// admissionDecision is the last one about a request.
type admissionDecision struct {
	number, event int64
	verdict       policy.Verdict
	// served is, where it did not admit, the estimated time in µs from the request's
	// arrival to its last token at the candidate where it would have ended first.
	served int64
}

// routed estimates the candidates of a routing decision about r that has just been
// taken, and writes what came out.
func (g *regrets) routed(s *simulation, r *request, v *policy.View, c policy.Choice) error {
	g.estimate(s, r, v)
	chosen := g.estimates[c.Candidate]
	believed := slices.MinFunc(g.estimates, func(a, b estimate) int { return cmp.Compare(a.viewed, b.viewed) })
	slices.SortStableFunc(g.estimates, func(a, b estimate) int { return cmp.Compare(a.last, b.last) })
	best := g.estimates[0]
	hindsight, avoidable := chosen.last-best.last, chosen.last-believed.last
	g.book.Regret(hindsight, avoidable)
	if g.exact() {
		d := decision{number: s.decisions - 1, position: r.position, event: s.happened, stage: stream.StageRouting, request: r.out.ID, regret: hindsight, admission: admissionDecision{number: -1}}
		if last, asked := g.admissions[r.position]; asked {
			d.admission = last
		}
		for _, e := range g.estimates {
			if e.candidate != c.Candidate && (g.all || len(d.others) < bestOthers) {
				d.others = append(d.others, other{e.candidate, e.replica})
			}
		}
		g.decisions = append(g.decisions, d)
	}
	return s.out.estimated(s, r, g.estimates, min(g.top, len(g.estimates)), c.Candidate, hindsight, avoidable)
}

// admitted remembers an admission decision, which was taken about the view.
func (g *regrets) admitted(s *simulation, r *request, view *policy.View, v policy.Verdict) {
	last := admissionDecision{number: s.decisions - 1, event: s.happened, verdict: v}
	if v.Action != policy.Admit && g.worst > 0 {
		g.estimate(s, r, view)
		last.served = slices.MinFunc(g.estimates, func(a, b estimate) int { return cmp.Compare(a.last, b.last) }).last
	}
	g.admissions[r.position] = last
	if slices.Contains(g.named, last.number) {
		g.decisions = append(g.decisions, last.of(r))
	}
}

// ended is told that a request has ended: one that admission has refused could have
// been served.
func (g *regrets) ended(r *request) {
	last, asked := g.admissions[r.position]
	if asked && g.worst > 0 && last.verdict.Action != policy.Admit && (r.out.State == stream.StateRejected || r.out.State == stream.StateTimedOut) {
		g.refused = append(g.refused, last.of(r))
	}
	delete(g.admissions, r.position)
}

// of is the decision, which was about r.
func (a admissionDecision) of(r *request) decision {
	return decision{number: a.number, position: r.position, event: a.event, stage: stream.StageAdmission, request: r.out.ID, admission: a}
}

// most are the decisions that have lost most by estimate: of routing in ms and, up to
// half of them or what routing leaves, of admission those that refused whom the
// cluster would have served soonest. What these lost has no ms: it is the request.
func (g *regrets) most() []decision {
	slices.SortStableFunc(g.decisions, func(a, b decision) int { return cmp.Compare(b.regret, a.regret) })
	slices.SortStableFunc(g.refused, func(a, b decision) int { return cmp.Compare(a.admission.served, b.admission.served) })
	n := min(len(g.refused), max(g.worst/2, g.worst-len(g.decisions)))
	return slices.Concat(g.refused[:n], g.decisions[:min(len(g.decisions), g.worst-n)])
}

// chosen are the decisions that are played again, in their order.
func (g *regrets) chosen() []decision {
	var of []decision
	if len(g.named) > 0 {
		for _, n := range g.named {
			if at := g.find(n); at >= 0 {
				of = append(of, g.decisions[at])
			}
		}
	} else {
		of = g.most()
	}
	slices.SortFunc(of, func(a, b decision) int { return cmp.Compare(a.number, b.number) })
	return slices.CompactFunc(of, func(a, b decision) bool { return a.number == b.number })
}

// find returns where the decision of a number is, -1 if it is none of admission or
// routing.
func (g *regrets) find(number int64) int {
	return slices.IndexFunc(g.decisions, func(d decision) bool { return d.number == number })
}

// play plays the chosen decisions with other choices and writes what came out.
// base is the same simulation from the start, its workload in memory; actual is
// what became of requests.
func (g *regrets) play(ctx context.Context, base *simulation, actual *fates, horizon *Horizon, out *output) error {
	of := g.chosen()
	p := &brancher{ctx: ctx, base: base, actual: actual, horizon: horizon}
	// The base goes on from try to try and never back, so that they are played in the
	// order of their events: a request's admission comes before its routing.
	var tries []try
	for i := range of {
		tries = append(tries, of[i].tries()...)
	}
	order := make([]int, len(tries))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(tries[a].event, tries[b].event) })
	results, err := p.all(tries, order)
	if err != nil {
		return err
	}
	for i, next := 0, 0; i < len(of); i++ {
		first := next
		for next < len(tries) && tries[next].of == &of[i] {
			next++
		}
		if err := out.exact(&of[i], results[first:next]); err != nil {
			return err
		}
	}
	return nil
}

// try is a decision taken otherwise, in the event of that place: for a replica, or
// nowhere for another verdict.
type try struct {
	of      *decision
	event   int64
	forced  forced
	replica int32
}

// tries are the other ways to decide.
func (d *decision) tries() (all []try) {
	for _, c := range d.others {
		all = append(all, try{d, d.event, forced{at: d.number, candidate: c.candidate}, c.replica})
	}
	if a := d.admission; a.number >= 0 {
		opposite := policy.Verdict{Action: policy.Admit}
		if a.verdict.Action == policy.Admit {
			opposite.Action = policy.Reject
		}
		all = append(all, try{d, a.event, forced{at: a.number, verdict: opposite}, nowhere})
	}
	return all
}
