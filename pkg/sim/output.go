package sim

import (
	"math"
	"slices"
	"strconv"

	"blis/pkg/des"
	"blis/pkg/policy"
	"blis/pkg/stream"
)

// Trace levels, as places in stream.TraceLevels.
const (
	traceDecisions = 1
	traceFull      = 2
)

// output writes what a trace level asks for.
type output struct {
	w     *stream.Writer
	level int
	// account is where routers write down how they choose. The rest is scratch.
	account    policy.Account
	id, reason []byte
	order      []int
	considered []stream.Candidate
	terms      []float64
}

func (o *output) outcome(r *stream.Outcome) error {
	if o.level < traceDecisions {
		return nil
	}
	return o.w.Outcome(r)
}

func (o *output) session(r *stream.SessionOutcome) error {
	if o.level < traceDecisions {
		return nil
	}
	return o.w.Any(r)
}

// verdict records a decision about r, which has so many candidates, that is not
// where to send it.
func (o *output) verdict(s *simulation, r *request, stage, verdict string, v policy.Verdict, candidates int) error {
	id := s.decisions
	s.decisions++
	if o.level < traceDecisions {
		return nil
	}
	o.reason = v.Reason.Append(o.reason[:0])
	return o.w.Decision(&stream.Decision{ID: o.decisionID(id), Stage: stage, AtUS: stream.Micros(s.now), Request: r.out.ID,
		Verdict: verdict, Reason: string(o.reason), Rule: v.Why, DelayUS: v.DelayUS, Replica: stream.Nowhere, Candidates: int64(candidates)})
}

// priority records the priority that r was given, and the rule that gave it.
func (o *output) priority(s *simulation, r *request, rule string) error {
	id := s.decisions
	s.decisions++
	if o.level < traceDecisions {
		return nil
	}
	return o.w.Decision(&stream.Decision{ID: o.decisionID(id), Stage: stream.StagePriority, AtUS: stream.Micros(s.now), Request: r.out.ID,
		Replica: stream.Nowhere, Score: r.out.Priority, Rule: rule})
}

// routing records that r was sent to its replica, one of the view's candidates.
func (o *output) routing(s *simulation, r *request, v *policy.View, c policy.Choice) error {
	id := s.decisions
	s.decisions++
	if o.level < traceDecisions {
		return nil
	}
	r.out.Decision = o.decisionID(id)
	score := finite(c.Score)
	return o.w.Decision(&stream.Decision{ID: r.out.Decision, Stage: stream.StageRouting, AtUS: stream.Micros(s.now), Request: r.out.ID,
		Deployment: r.out.Deployment, Replica: r.out.Replica, Score: score, Candidates: int64(len(v.Replicas)),
		Reason: c.Why, Rule: c.Rule, ExpectedCachedTokens: r.out.ExpectedCachedTokens,
		Scorers: o.account.Scorers, Considered: o.consider(s, v, c)})
}

// begin returns where a router writes down how it chooses among so many candidates,
// nil if nobody will read it.
func (o *output) begin(candidates int) *policy.Account {
	if o.level < traceDecisions {
		return nil
	}
	o.account.Begin(candidates)
	return &o.account
}

// mostConsidered is how many candidates a routing decision shows, unless all are
// asked for.
const mostConsidered = 4

// consider is the best candidates of a routing decision as the policy saw them.
func (o *output) consider(s *simulation, v *policy.View, c policy.Choice) []stream.Candidate {
	a, n := &o.account, len(v.Replicas)
	o.order, o.considered, o.terms = o.order[:0], o.considered[:0], o.terms[:0]
	most := mostConsidered
	if o.level >= traceFull {
		most = n
	}
	for i := range n {
		at := len(o.order) // where it stands among the best so far
		for at > 0 && better(a, v, i, o.order[at-1], c.Candidate) {
			at--
		}
		if at < most {
			o.order = slices.Insert(o.order[:min(len(o.order), most-1)], at, i)
		}
	}
	for _, i := range o.order {
		o.considered = append(o.considered, o.candidate(s, v, i))
	}
	return o.considered
}

// better reports whether candidate i is shown before candidate k: the choice is
// before all, then who has the higher score or, without scores, fewer requests in
// flight.
func better(a *policy.Account, v *policy.View, i, k, chosen int) bool {
	switch {
	case i == chosen || k == chosen:
		return i == chosen
	case a.Filtered[i] != a.Filtered[k]:
		return a.Filtered[k]
	case a.Scores == nil:
		return v.Replicas[i].Inflight < v.Replicas[k].Inflight
	}
	x, y := a.Scores[i], a.Scores[k]
	if a.Lower {
		x, y = -x, -y
	}
	return x > y || x == x && y != y
}

// candidate is a replica as the routing policy saw it.
func (o *output) candidate(s *simulation, v *policy.View, i int) stream.Candidate {
	a, r, n := &o.account, &v.Replicas[i], len(v.Replicas)
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
	s.saw(&c, r)
	return c
}

// saw fills in what the routing policy looked at of a replica.
func (s *simulation) saw(c *stream.Candidate, r *policy.Replica) {
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
		sawStatistics(c, r.Stats, needs)
	}
	if needs&policy.NeedShadow != 0 {
		c.Matched = stream.Index(r.Matched)
	}
	if needs&policy.NeedCache != 0 {
		c.Cached = stream.Index(r.Cached)
	}
	for _, list := range [...][]timed{s.seen.periodic, s.seen.demands} {
		for _, t := range list {
			if needs.Of(t.field) {
				c.AgeUS = max(c.AgeUS, s.now-max(0, r.Stats.TakenUS[t.field]))
			}
		}
	}
}

// sawStatistics does so for its statistics.
func sawStatistics(c *stream.Candidate, stats *policy.Stats, needs policy.Needs) {
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

// preempted records that requests lost their places in a replica's batch.
func (o *output) preempted(s *simulation, r *replica, tags []int32) error {
	if o.level < traceFull {
		return nil
	}
	for _, tag := range tags {
		err := o.w.Any(&stream.Preemption{Kind: stream.KindPreemption, AtUS: stream.Micros(s.now), Deployment: s.deployments[r.deployment].id, Replica: r.index, Request: s.slots[tag].out.ID})
		if err != nil {
			return err
		}
	}
	return nil
}

// snapshot records what of replica i was read as of time at. An error stays with the
// writer, whose next call returns it.
func (o *output) snapshot(s *simulation, i int32, at des.Time, fields []policy.Field) {
	r, seen, stats := &s.replicas[i], &s.seen.states[i], &s.seen.stats[i]
	x := stream.NewSnapshot(stream.Micros(at), s.deployments[r.deployment].id, r.index)
	for _, f := range fields {
		switch f {
		case policy.FieldQueueDepth:
			x.QueueDepth = stream.Index(seen.QueueDepth)
		case policy.FieldRunning:
			x.Running = stream.Index(seen.Running)
		case policy.FieldKVUtil:
			x.KVUtil = stream.Number(seen.KVUtil)
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
	g := stream.Regret{Kind: stream.KindRegret, Decision: r.out.Decision, Request: r.out.ID, Stage: stream.StageRouting,
		Method: stream.MethodEstimated, HindsightMS: ms(hindsightUS), AvoidableMS: ms(avoidableUS)}
	for i, e := range all {
		if i >= top && e.candidate != chosen {
			continue
		}
		at := &s.replicas[e.replica]
		g.Alternatives = append(g.Alternatives, stream.Alternative{Deployment: s.deployments[at.deployment].id, Replica: at.index,
			Chosen: e.candidate == chosen, TTFTMS: ms(e.first), E2EMS: ms(e.last), ViewMS: ms(e.viewed)})
	}
	return o.w.Any(&g)
}

// exact records what other choices would have changed.
func (o *output) exact(d *decision, alternatives []stream.Alternative) error {
	return o.w.Any(&stream.Regret{Kind: stream.KindRegret, Decision: o.decisionID(d.number), Request: d.request, Stage: d.stage,
		Method: stream.MethodExact, Alternatives: alternatives})
}

// step records a replica's step that has just ended.
func (o *output) step(s *simulation, r *replica) error {
	if o.level < traceFull {
		return nil
	}
	step := r.engine.Step()
	return o.w.Step(&stream.Step{Deployment: s.deployments[r.deployment].id, Replica: r.index,
		StartUS: stream.Micros(step.Start), EndUS: stream.Micros(step.End), PrefillTokens: step.Prefill, DecodeTokens: step.Decode,
		Running: int64(step.Running), Waiting: int64(step.Waiting), UsedBlocks: int64(step.UsedBlocks), Preempted: int64(len(step.Preempted))})
}
