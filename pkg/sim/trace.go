package sim

import (
	"math"
	"slices"
	"strconv"

	"blis/pkg/des"
	"blis/pkg/policy"
	"blis/pkg/stream"
)

// Trace levels, as indices into stream.TraceLevels.
const (
	traceDecisions = 1
	traceFull      = 2
)

// traceWriter writes the records of a trace level.
type traceWriter struct {
	w     *stream.Writer
	level int
	// routingTrace is where routers record how they choose. The rest is scratch.
	routingTrace policy.Trace
	id, reason   []byte
	order        []int
	considered   []stream.Candidate
	terms        []float64
}

func (o *traceWriter) outcome(r *stream.Outcome) error {
	if o.level < traceDecisions {
		return nil
	}
	return o.w.Outcome(r)
}

func (o *traceWriter) session(r *stream.SessionOutcome) error {
	if o.level < traceDecisions {
		return nil
	}
	return o.w.Any(r)
}

// verdict records a decision about r other than routing. candidates is the number of replicas that
// could serve r.
func (o *traceWriter) verdict(s *simulation, r *request, stage, verdict string, v policy.Verdict,
	candidates int) error {
	id := s.decisionCount
	s.decisionCount++
	if o.level < traceDecisions {
		return nil
	}
	o.reason = v.Reason.Append(o.reason[:0])
	return o.w.Decision(&stream.Decision{ID: o.decisionID(id), Stage: stage, AtUS: stream.Micros(s.now), Request: r.out.ID,
		Verdict: verdict, Reason: string(o.reason), Rule: v.DecidedBy, DelayUS: v.DelayUS, Replica: stream.Nowhere,
		Candidates: int64(candidates)})
}

// priority records the priority that r was given, and the rule that gave it.
func (o *traceWriter) priority(s *simulation, r *request, rule string) error {
	id := s.decisionCount
	s.decisionCount++
	if o.level < traceDecisions {
		return nil
	}
	return o.w.Decision(&stream.Decision{ID: o.decisionID(id), Stage: stream.StagePriority, AtUS: stream.Micros(s.now),
		Request: r.out.ID,
		Replica: stream.Nowhere, Score: r.out.Priority, Rule: rule})
}

// routing records the choice of r's replica among the candidates in the view.
func (o *traceWriter) routing(s *simulation, r *request, v *policy.View, c policy.Choice) error {
	id := s.decisionCount
	s.decisionCount++
	if o.level < traceDecisions {
		return nil
	}
	r.out.Decision = o.decisionID(id)
	score := finite(c.Score)
	return o.w.Decision(&stream.Decision{ID: r.out.Decision, Stage: stream.StageRouting, AtUS: stream.Micros(s.now),
		Request:    r.out.ID,
		Deployment: r.out.Deployment, Replica: r.out.Replica, Score: score, Candidates: int64(len(v.Replicas)),
		Reason: c.Reason, Rule: c.Rule, ExpectedCachedTokens: r.out.ExpectedCachedTokens,
		Scorers: o.routingTrace.Scorers, Considered: o.consideredCandidates(s, v, c)})
}

// beginRouting returns the record of how a router chooses, nil if the trace level does not include
// it.
func (o *traceWriter) beginRouting(candidates int) *policy.Trace {
	if o.level < traceDecisions {
		return nil
	}
	o.routingTrace.Reset(candidates)
	return &o.routingTrace
}

// maxConsidered is the number of candidates in a routing decision below trace level full.
const maxConsidered = 4

// consideredCandidates returns the best candidates of a routing decision as the policy saw them.
func (o *traceWriter) consideredCandidates(s *simulation, v *policy.View, c policy.Choice) []stream.Candidate {
	a, n := &o.routingTrace, len(v.Replicas)
	o.order, o.considered, o.terms = o.order[:0], o.considered[:0], o.terms[:0]
	limit := maxConsidered
	if o.level >= traceFull {
		limit = n
	}
	for i := range n {
		rank := len(o.order) // rank among the best so far
		for rank > 0 && ranksBefore(a, v, i, o.order[rank-1], c.Candidate) {
			rank--
		}
		if rank < limit {
			o.order = slices.Insert(o.order[:min(len(o.order), limit-1)], rank, i)
		}
	}
	for _, i := range o.order {
		o.considered = append(o.considered, o.candidate(s, v, i))
	}
	return o.considered
}

// ranksBefore reports whether candidate i is listed before candidate k: the choice comes first, then
// the higher score or, without scores, fewer requests in flight.
func ranksBefore(a *policy.Trace, v *policy.View, i, k, chosen int) bool {
	switch {
	case i == chosen || k == chosen:
		return i == chosen
	case a.Filtered[i] != a.Filtered[k]:
		return a.Filtered[k]
	case a.Scores == nil:
		return v.Replicas[i].Inflight < v.Replicas[k].Inflight
	}
	x, y := a.Scores[i], a.Scores[k]
	if a.LowerIsBetter {
		x, y = -x, -y
	}
	return x > y || x == x && y != y
}

// candidate is a replica as the routing policy saw it.
func (o *traceWriter) candidate(s *simulation, v *policy.View, i int) stream.Candidate {
	a, r, n := &o.routingTrace, &v.Replicas[i], len(v.Replicas)
	at := &s.replicas[r.Index]
	c := stream.NewCandidate(s.deployments[at.deployment].id, at.index)
	c.Filtered, c.Inflight = a.Filtered[i], stream.Index(r.Inflight)
	if a.Scores != nil {
		c.Score = stream.Number(a.Scores[i])
		if !c.Score.IsZero() {
			c.Score = stream.Number(finite(a.Scores[i]))
		}
	}
	from := len(o.terms)
	for k := range a.Scorers {
		o.terms = append(o.terms, a.Terms[k*n+i])
	}
	c.Terms = o.terms[from:len(o.terms):len(o.terms)]
	s.fillViewed(&c, r)
	return c
}

// fillViewed fills in the signals that the routing policy read.
func (s *simulation) fillViewed(c *stream.Candidate, r *policy.Replica) {
	needs := s.router.routing
	if needs&policy.NeedQueueDepth != 0 {
		c.QueueDepth = stream.Index(r.QueueDepth)
	}
	if needs&policy.NeedRunning != 0 {
		c.Running = stream.Index(r.Running)
	}
	if needs&policy.NeedKVUtil != 0 {
		c.KVUtil = stream.Number(r.KVUtil)
	}
	const statistics = policy.NeedHitRate | policy.NeedRecentTTFT | policy.NeedRecentTPOT | policy.NeedEstWait
	if needs&statistics != 0 {
		fillStatistics(c, r.Stats, needs)
	}
	if needs&policy.NeedShadow != 0 {
		c.Matched = stream.Index(r.Matched)
	}
	if needs&policy.NeedCache != 0 {
		c.Cached = stream.Index(r.Cached)
	}
	for _, list := range [...][]refreshInterval{s.telemetry.periodic, s.telemetry.onDemand} {
		for _, t := range list {
			if needs.Has(t.field) {
				c.AgeUS = max(c.AgeUS, s.now-max(0, r.Stats.TakenUS[t.field]))
			}
		}
	}
}

// fillStatistics fills in the statistics that the routing policy read.
func fillStatistics(c *stream.Candidate, stats *policy.Stats, needs policy.Needs) {
	if needs&policy.NeedHitRate != 0 {
		c.HitRate = stream.Number(stats.HitRate)
	}
	if needs&policy.NeedRecentTTFT != 0 {
		c.RecentTTFTMS = stream.Number(stats.RecentTTFTMS)
	}
	if needs&policy.NeedRecentTPOT != 0 {
		c.RecentTPOTMS = stream.Number(stats.RecentTPOTMS)
	}
	if needs&policy.NeedEstWait != 0 {
		c.EstWaitMS = stream.Number(stats.EstWaitMS)
	}
}

// preemptions records the requests preempted by a replica.
func (o *traceWriter) preemptions(s *simulation, r *replica, tags []int32) error {
	if o.level < traceFull {
		return nil
	}
	for _, tag := range tags {
		err := o.w.Any(&stream.Preemption{Kind: stream.KindPreemption, AtUS: stream.Micros(s.now),
			Deployment: s.deployments[r.deployment].id, Replica: r.index, Request: s.slots[tag].out.ID})
		if err != nil {
			return err
		}
	}
	return nil
}

// snapshot records the fields of replica i that were read at a time. Errors are sticky in the
// writer: its next call returns them.
func (o *traceWriter) snapshot(s *simulation, i int32, at des.Time, fields []policy.Field) {
	r, state, stats := &s.replicas[i], &s.telemetry.states[i], &s.telemetry.stats[i]
	x := stream.NewSnapshot(stream.Micros(at), s.deployments[r.deployment].id, r.index)
	for _, f := range fields {
		switch f {
		case policy.FieldQueueDepth:
			x.QueueDepth = stream.Index(state.QueueDepth)
		case policy.FieldRunning:
			x.Running = stream.Index(state.Running)
		case policy.FieldKVUtil:
			x.KVUtil = stream.Number(state.KVUtil)
		case policy.FieldHitRate:
			x.HitRate = stream.Number(stats.HitRate)
		case policy.FieldRecentTTFT:
			x.RecentTTFTMS = stream.Number(stats.RecentTTFTMS)
		case policy.FieldRecentTPOT:
			x.RecentTPOTMS = stream.Number(stats.RecentTPOTMS)
		case policy.FieldEstWait:
			x.EstWaitMS = stream.Number(stats.EstWaitMS)
		case policy.FieldCache:
			x.Cache = true
		}
	}
	_ = o.w.Any(&x)
}

// finite clamps x to finite numbers, since JSON has no infinity.
func finite(x float64) float64 { return min(max(x, -math.MaxFloat64), math.MaxFloat64) }

// decisionID is the id of a decision.
func (o *traceWriter) decisionID(n int64) string {
	o.id = appendDecisionID(o.id[:0], n)
	return string(o.id)
}

const decisionPrefix = "dec-"

// appendDecisionID appends an id with at least six digits: dec-000042.
func appendDecisionID(b []byte, n int64) []byte {
	b = append(b, decisionPrefix...)
	for limit := int64(100000); n < limit && limit > 1; limit /= 10 {
		b = append(b, '0')
	}
	return strconv.AppendInt(b, n, 10)
}

// estimatedRegret records the estimates for the candidates of the last decision, best first.
func (o *traceWriter) estimatedRegret(s *simulation, r *request, all []estimate, top, chosen int, hindsightUS,
	avoidableUS des.Time) error {
	if o.level < traceDecisions {
		return nil
	}
	ms := func(us des.Time) *float64 { x := float64(us) / 1000; return &x }
	g := stream.Regret{Kind: stream.KindRegret, Decision: r.out.Decision, Request: r.out.ID, Stage: stream.StageRouting,
		Method: stream.MethodEstimated, HindsightMS: ms(hindsightUS), AvoidableMS: ms(avoidableUS)}
	for i, e := range all {
		if i >= top && e.candidate != chosen {
			continue
		}
		at := &s.replicas[e.replica]
		g.Alternatives = append(g.Alternatives, stream.Alternative{Deployment: s.deployments[at.deployment].id,
			Replica: at.index,
			Chosen:  e.candidate == chosen, TTFTMS: ms(e.ttft), E2EMS: ms(e.e2e), ViewMS: ms(e.viewedE2E)})
	}
	return o.w.Any(&g)
}

// exactRegret records what the alternatives of a decision change.
func (o *traceWriter) exactRegret(d *decision, alternatives []stream.Alternative) error {
	return o.w.Any(&stream.Regret{Kind: stream.KindRegret, Decision: o.decisionID(d.number), Request: d.request,
		Stage:  d.stage,
		Method: stream.MethodExact, Alternatives: alternatives})
}

// step records the step of a replica that has just ended.
func (o *traceWriter) step(s *simulation, r *replica) error {
	if o.level < traceFull {
		return nil
	}
	step := r.engine.Step()
	return o.w.Step(&stream.Step{Deployment: s.deployments[r.deployment].id, Replica: r.index,
		StartUS: stream.Micros(step.Start), EndUS: stream.Micros(step.End), PrefillTokens: step.Prefill,
		DecodeTokens: step.Decode,
		Running:      int64(step.Running), Waiting: int64(step.Waiting), UsedBlocks: int64(step.UsedBlocks),
		Preempted: int64(len(step.Preempted))})
}
