package sim

import (
	"math"
	"slices"
	"strconv"

	"blis/pkg/policy"
	"blis/pkg/stream"
)

// traceWriter observes what the records of a trace level contain.
type traceWriter struct {
	w    *stream.Writer
	full bool
	// routing is where routers record how they choose. The rest is scratch.
	routing    policy.Trace
	reason     []byte
	order      []int
	considered []stream.Candidate
	terms      []float64
}

func (o *traceWriter) hooks() []hook {
	at := []hook{onRouting, onDecision, onFinal, onSessionEnd}
	if o.full {
		at = append(at, onBatch, onTokens, onSnapshot)
	}
	return at
}

func (o *traceWriter) observe(s *simulation, h hook, i int32) error {
	switch h {
	case onRouting:
		o.routing.Reset(len(s.router.views.current.Replicas))
		s.router.views.current.Trace = &o.routing
	case onDecision:
		return o.decision(s, s.request(i), &s.decisions.last)
	case onFinal:
		return o.w.Outcome(&s.request(i).out)
	case onSessionEnd:
		return o.w.Any(&s.sessions.open[i].out)
	case onBatch:
		return o.preemptions(s, &s.replicas[i])
	case onTokens:
		return o.step(s, &s.replicas[i])
	case onSnapshot:
		o.snapshot(s, &s.telemetry.read)
	}
	return nil
}

// decision records a decision about r. Outcomes refer to the id of the routing decision.
func (o *traceWriter) decision(s *simulation, r *request, d *decision) error {
	x := stream.Decision{ID: decisionID(d.number), Stage: d.stage, AtUS: stream.Micros(s.now), Request: r.out.ID,
		Replica: stream.NoIndex}
	switch d.stage {
	case stream.StagePriority:
		x.Score, x.Rule = r.out.Priority, d.rule
	case stream.StageRouting:
		r.out.Decision = x.ID
		x.Deployment, x.Replica, x.Score = r.out.Deployment, r.out.Replica, finite(d.choice.Score)
		x.Candidates, x.ExpectedCachedTokens = int64(len(d.view.Replicas)), r.out.ExpectedCachedTokens
		x.Reason, x.Rule = d.choice.Reason, d.choice.Rule
		x.Scorers, x.Considered = o.routing.Scorers, o.consideredCandidates(s, d.view, d.choice)
	default:
		o.reason = d.given.Reason.Append(o.reason[:0])
		x.Verdict, x.Reason, x.Rule, x.DelayUS = d.verdict, string(o.reason), d.given.DecidedBy, d.given.DelayUS
		x.Candidates = int64(d.candidates)
	}
	return o.w.Decision(&x)
}

// maxConsidered is the number of candidates in a routing decision below trace level full.
const maxConsidered = 4

// consideredCandidates returns the best candidates of a routing decision as the policy saw them.
func (o *traceWriter) consideredCandidates(s *simulation, v *policy.View, c policy.Choice) []stream.Candidate {
	a, n := &o.routing, len(v.Replicas)
	o.order, o.considered, o.terms = o.order[:0], o.considered[:0], o.terms[:0]
	limit := maxConsidered
	if o.full {
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
	a, r, n := &o.routing, &v.Replicas[i], len(v.Replicas)
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
	fillViewed(s, &c, r)
	return c
}

// fillViewed fills in the signals that the routing policy read.
func fillViewed(s *simulation, c *stream.Candidate, r *policy.Replica) {
	needs := s.router.needs.routing
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

// preemptions records the requests preempted by a replica that has just started a step.
func (o *traceWriter) preemptions(s *simulation, r *replica) error {
	for _, step := range r.engine.Formed() {
		for _, tag := range step.Preempted {
			err := o.w.Any(&stream.Preemption{Kind: stream.KindPreemption, AtUS: stream.Micros(s.now),
				Deployment: s.deployments[r.deployment].id, Replica: r.index, Request: s.request(tag).out.ID})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// snapshot records fields that the router read. Errors are sticky in the
// writer: its next call returns them.
func (o *traceWriter) snapshot(s *simulation, read *fieldReads) {
	r, state, stats := &s.replicas[read.replica], &s.telemetry.states[read.replica], &s.telemetry.stats[read.replica]
	x := stream.NewSnapshot(stream.Micros(read.at), s.deployments[r.deployment].id, r.index)
	for _, f := range read.fields {
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

const decisionPrefix = "dec-"

// decisionID is the id of a decision, with at least six digits: dec-000042.
func decisionID(n int64) string {
	b := append(make([]byte, 0, 24), decisionPrefix...)
	for limit := int64(100000); n < limit && limit > 1; limit /= 10 {
		b = append(b, '0')
	}
	return string(strconv.AppendInt(b, n, 10))
}

// step records the step of a replica that has just ended.
func (o *traceWriter) step(s *simulation, r *replica) error {
	step := r.engine.Step()
	return o.w.Step(&stream.Step{Deployment: s.deployments[r.deployment].id, Replica: r.index,
		StartUS: stream.Micros(step.Start), EndUS: stream.Micros(step.End), PrefillTokens: step.Prefill,
		DecodeTokens: step.Decode,
		Running:      int64(step.Running), Waiting: int64(step.Waiting), UsedBlocks: int64(step.UsedBlocks),
		Preempted: int64(len(step.Preempted))})
}
