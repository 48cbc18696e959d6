package sim

import (
	"math"
	"strconv"

	"blis/pkg/des"
	"blis/pkg/policy"
	"blis/pkg/record"
)

// Trace levels, as places in record.TraceLevels.
const (
	traceDecisions = 1
	traceFull      = 2
)

// output writes what a trace level asks for.
type output struct {
	w     *record.Writer
	level int
	id    []byte // scratch
}

func (o *output) outcome(r *record.Outcome) error {
	if o.level < traceDecisions {
		return nil
	}
	return o.w.Outcome(r)
}

func (o *output) session(r *record.SessionOutcome) error {
	if o.level < traceDecisions {
		return nil
	}
	return o.w.Any(r)
}

// verdict records a decision about r, which has so many candidates, that is not
// where to send it.
func (o *output) verdict(s *simulation, r *request, stage, verdict string, delayUS int64, candidates int) error {
	id := s.decisions
	s.decisions++
	if o.level < traceDecisions {
		return nil
	}
	return o.w.Decision(&record.Decision{ID: o.decisionID(id), Stage: stage, AtUS: record.Micros(s.now), Request: r.out.ID,
		Verdict: verdict, DelayUS: delayUS, Replica: record.Nowhere, Candidates: int64(candidates)})
}

// routing records that r was sent to its replica, one of so many candidates.
func (o *output) routing(s *simulation, r *request, c policy.Choice, candidates int) error {
	id := s.decisions
	s.decisions++
	if o.level < traceDecisions {
		return nil
	}
	r.out.Decision = o.decisionID(id)
	score := finite(c.Score)
	return o.w.Decision(&record.Decision{ID: r.out.Decision, Stage: record.StageRouting, AtUS: record.Micros(s.now), Request: r.out.ID,
		Deployment: r.out.Deployment, Replica: r.out.Replica, Score: score, Candidates: int64(candidates)})
}

// finite is x, or the largest number in the place of an infinite one, which has
// no place in JSON.
func finite(x float64) float64 { return min(max(x, -math.MaxFloat64), math.MaxFloat64) }

// decisionID names a decision by its number.
func (o *output) decisionID(n int64) string {
	o.id = appendDecisionID(o.id[:0], n)
	return string(o.id)
}

const decisionPrefix = "dec-"

// appendDecisionID numbers decisions with at least six digits: dec-000042.
func appendDecisionID(b []byte, n int64) []byte {
	b = append(b, decisionPrefix...)
	for limit := int64(100000); n < limit && limit > 1; limit /= 10 {
		b = append(b, '0')
	}
	return strconv.AppendInt(b, n, 10)
}

// estimated records what the candidates of the last decision would have been, the
// best first.
func (o *output) estimated(s *simulation, r *request, all []estimate, top, chosen int, hindsightUS, avoidableUS des.Time) error {
	if o.level < traceDecisions {
		return nil
	}
	ms := func(us des.Time) *float64 { x := float64(us) / 1000; return &x }
	g := record.Regret{Kind: record.KindRegret, Decision: r.out.Decision, Request: r.out.ID, Stage: record.StageRouting,
		Method: record.MethodEstimated, HindsightMS: ms(hindsightUS), AvoidableMS: ms(avoidableUS)}
	for i, e := range all {
		if i >= top && e.candidate != chosen {
			continue
		}
		at := &s.replicas[e.replica]
		g.Alternatives = append(g.Alternatives, record.Alternative{Deployment: s.deployments[at.deployment].id, Replica: at.index,
			Chosen: e.candidate == chosen, TTFTMS: ms(e.first), E2EMS: ms(e.last), ViewMS: ms(e.viewed)})
	}
	return o.w.Any(&g)
}

// exact records what other choices would have changed.
func (o *output) exact(d *decision, alternatives []record.Alternative) error {
	return o.w.Any(&record.Regret{Kind: record.KindRegret, Decision: o.decisionID(d.number), Request: d.request, Stage: d.stage,
		Method: record.MethodExact, Alternatives: alternatives})
}

// step records a replica's step that has just ended.
func (o *output) step(s *simulation, r *replica) error {
	if o.level < traceFull {
		return nil
	}
	step := r.engine.Step()
	return o.w.Step(&record.Step{Deployment: s.deployments[r.deployment].id, Replica: r.index,
		StartUS: record.Micros(step.Start), EndUS: record.Micros(step.End), PrefillTokens: step.Prefill, DecodeTokens: step.Decode,
		Running: int64(step.Running), Waiting: int64(step.Waiting), UsedBlocks: int64(step.UsedBlocks), Preempted: int64(len(step.Preempted))})
}
