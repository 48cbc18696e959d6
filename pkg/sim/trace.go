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
	records *recorder
	full    bool
	// routing is where routers record how they choose. The rest is scratch.
	routing policy.Trace
	reason  []byte
	order   []int
	ranked  []rankedCandidate
	all     []int32      // 0, 1, 2 and so on
	needs   policy.Needs // of the policy that decided
	// batches are those of each replica that have not ended: the one in flight and one formed ahead.
	batches [][][]stream.BatchEntry
}

func (o *traceWriter) hooks() []hook {
	at := []hook{onRouting, onDecision, onFinal, onSessionEnd, onScale, onPlace, onPhase}
	if o.full {
		at = append(at, onStep, onWait, onTokens, onTransfer, onEmbeddings, onSnapshot)
	}
	return at
}

func (o *traceWriter) observe(s *simulation, h hook, i int32) error {
	switch h {
	case onRouting:
		if !o.full {
			o.routing.Most = maxConsidered
		}
		o.routing.Reset(len(s.router.views.current.Replicas))
		s.router.views.current.Trace = &o.routing
	case onDecision:
		return o.decision(s, s.request(i), &s.decisions.last)
	case onFinal:
		return o.records.Outcome(&s.request(i).out)
	case onSessionEnd:
		return o.records.Any(&s.sessions.open[i].out)
	case onStep:
		o.batchesFormed(s, i)
		return o.preemptions(s, &s.replicas[i])
	case onWait:
		return o.preemptions(s, &s.replicas[i])
	case onTokens:
		return o.step(s, i)
	case onTransfer:
		return o.transfer(s, &s.transfers.slots[i])
	case onEmbeddings:
		return o.embeddings(s, &s.encoding.transfers[i])
	case onScale:
		return o.scaling(s)
	case onPlace:
		return o.placement(s, i)
	case onPhase:
		if s.fleet.members[i].phase == failed && int(i) < len(o.batches) { // its steps do not end
			o.batches[i] = nil
		}
		return o.replicaState(s, i)
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
	case stream.StageRouting, stream.StagePrefillRouting:
		x.Score, o.needs = finite(d.choice.Score), s.router.needs.routing
		if d.stage == stream.StageRouting {
			r.out.Decision = x.ID
			x.Deployment, x.Replica = r.out.Deployment, r.out.Replica
		} else {
			o.needs = s.router.needs.prefill
			target := &s.replicas[r.handoff.replica]
			x.Deployment, x.Replica = s.deployments[target.deployment].id, target.index
		}
		x.Candidates, x.ExpectedCachedTokens = int64(len(d.view.Replicas)), r.out.ExpectedCachedTokens
		x.Tied, x.Reason, x.Rule = int64(d.choice.Tied), d.choice.Reason, d.choice.Rule
		x.Scorers, x.Considered = o.routing.Scorers, o.consideredCandidates(s, d.view, d.choice)
	default:
		o.reason = d.given.Reason.Append(o.reason[:0])
		x.Verdict, x.Reason, x.Rule, x.DelayUS = d.verdict, string(o.reason), d.given.DecidedBy, d.given.DelayUS
		x.Candidates = int64(d.candidates)
	}
	return o.records.Decision(&x)
}

// maxConsidered is the number of candidates in a routing decision below trace level full.
const maxConsidered = 4

// consideredCandidates returns the best candidates of a routing decision as the policy saw them.
func (o *traceWriter) consideredCandidates(s *simulation, v *policy.View, c policy.Choice) []stream.Candidate {
	o.order = o.order[:0]
	if o.full {
		o.rankAll(v, c.Candidate)
	} else {
		o.rankBest(v, c.Candidate)
	}
	considered := o.records.candidates(len(o.order))
	for rank, i := range o.order {
		o.candidate(s, v, i, &considered[rank])
	}
	return considered
}

// rankedCandidate is what candidates are sorted by, the best first: its group, then the higher score, then its index.
type rankedCandidate struct {
	score float64
	group candidateGroup
	index int32
}

// candidateGroup orders candidates before their scores do.
type candidateGroup int32

const (
	groupChosen candidateGroup = iota
	groupScored
	groupUnscored
	groupFiltered
	groupFilteredUnscored
)

func (x rankedCandidate) compare(y rankedCandidate) int {
	switch {
	case x.group != y.group:
		return int(x.group - y.group)
	case x.score > y.score:
		return -1
	case x.score < y.score:
		return 1
	}
	return int(x.index - y.index)
}

// score is that of candidate i, higher if it is better; NaN if it has none.
func (o *traceWriter) score(v *policy.View, i int) float64 {
	switch a := &o.routing; {
	case a.Scores == nil:
		return -float64(v.Replicas[i].Inflight)
	case a.LowerIsBetter:
		return -a.Scores[i]
	default:
		return a.Scores[i]
	}
}

// rank returns what candidate i is sorted by.
func (o *traceWriter) rank(v *policy.View, i, chosen int) rankedCandidate {
	x := rankedCandidate{score: o.score(v, i), group: groupScored, index: int32(i)}
	if o.routing.Filtered[i] {
		x.group = groupFiltered
	}
	if math.IsNaN(x.score) {
		x.score = 0
		x.group++
	}
	if i == chosen {
		x.group = groupChosen
	}
	return x
}

// rankAll lists all candidates, best first.
func (o *traceWriter) rankAll(v *policy.View, chosen int) {
	o.ranked = slices.Grow(o.ranked[:0], len(v.Replicas))
	for i := range v.Replicas {
		o.ranked = append(o.ranked, o.rank(v, i, chosen))
	}
	slices.SortFunc(o.ranked, rankedCandidate.compare)
	for _, x := range o.ranked {
		o.order = append(o.order, int(x.index))
	}
}

// rankBest lists the best few candidates.
func (o *traceWriter) rankBest(v *policy.View, chosen int) {
	var best [maxConsidered + 1]rankedCandidate
	n := 0
	insert := func(x rankedCandidate) {
		k := n
		for ; k > 0 && x.compare(best[k-1]) < 0; k-- {
			best[k] = best[k-1]
		}
		best[k] = x
		n = min(n+1, maxConsidered)
	}
	insert(o.rank(v, chosen, chosen))
	limit := math.NaN() // once it is a number, further candidates must have a higher score
	for _, i := range o.recorded(len(v.Replicas)) {
		if int(i) == chosen || o.score(v, int(i)) <= limit {
			continue
		}
		insert(o.rank(v, int(i), chosen))
		if n == maxConsidered && best[n-1].group == groupScored {
			limit = best[n-1].score
		}
	}
	for _, x := range best[:n] {
		o.order = append(o.order, int(x.index))
	}
}

// recorded are the candidates that the router recorded: all, or the best ones.
func (o *traceWriter) recorded(n int) []int32 {
	if o.routing.Best != nil {
		return o.routing.Best
	}
	for len(o.all) < n {
		o.all = append(o.all, int32(len(o.all)))
	}
	return o.all[:n]
}

// candidate makes c a replica as the routing policy saw it.
func (o *traceWriter) candidate(s *simulation, v *policy.View, i int, c *stream.Candidate) {
	a, r, n := &o.routing, &v.Replicas[i], len(v.Replicas)
	at := &s.replicas[r.Index]
	*c = stream.NewCandidate(s.deployments[at.deployment].id, at.index)
	c.Filtered, c.Inflight = a.Filtered[i], stream.Index(r.Inflight)
	if a.Scores != nil {
		c.Score = stream.Number(finite(a.Scores[i])) // NaN stays
	}
	c.Terms = o.records.terms(len(a.Scorers))
	for k := range c.Terms {
		c.Terms[k] = a.Terms[k*n+i]
	}
	needs := o.needs
	fillSignals(c, r, needs)
	if needs&policy.NeedShadow != 0 {
		c.Matched = stream.Index(r.Matched)
	} else if needs&policy.NeedBlockIndex != 0 {
		c.Matched = stream.Index(r.Stats.Prefix.Matched)
	}
	for _, list := range [...][]refreshInterval{s.telemetry.periodic, s.telemetry.onDemand} {
		for _, t := range list {
			if needs.Has(t.field) {
				c.AgeUS = max(c.AgeUS, s.now-max(0, r.Stats.TakenUS[t.field]))
			}
		}
	}
}

// fillSignals fills in the snapshot fields of a replica that are in needs.
func fillSignals(c *stream.Candidate, r *policy.Replica, needs policy.Needs) {
	if needs.Has(policy.FieldQueueDepth) {
		c.QueueDepth = stream.Index(r.QueueDepth)
	}
	if needs.Has(policy.FieldRunning) {
		c.Running = stream.Index(r.Running)
	}
	if needs.Has(policy.FieldKVUtil) {
		c.KVUtil = stream.Number(r.KVUtil)
	}
	if needs.Has(policy.FieldHitRate) {
		c.HitRate = stream.Number(r.Stats.HitRate)
	}
	if needs.Has(policy.FieldRecentTTFT) {
		c.RecentTTFTMS = stream.Number(r.Stats.RecentTTFTMS)
	}
	if needs.Has(policy.FieldRecentTPOT) {
		c.RecentTPOTMS = stream.Number(r.Stats.RecentTPOTMS)
	}
	if needs.Has(policy.FieldEstWait) {
		c.EstWaitMS = stream.Number(r.Stats.EstWaitMS)
	}
	if needs.Has(policy.FieldTier) {
		c.KVUtilCPU, c.Loading = stream.Number(r.Stats.KVUtilCPU), stream.Index(r.Stats.Loading)
	}
	if needs.Has(policy.FieldCache) {
		c.Cached = stream.Index(r.Cached)
	}
}

// preemptions records the requests preempted by a replica that has just started a step.
func (o *traceWriter) preemptions(s *simulation, r *replica) error {
	for _, step := range r.engine.Formed() {
		for _, tag := range step.Preempted {
			err := o.records.Any(&stream.Preemption{Kind: stream.KindPreemption, AtUS: stream.Micros(s.now),
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
	var needs policy.Needs
	for _, f := range read.fields {
		needs |= 1 << f
	}
	r := &s.replicas[read.replica]
	x := stream.NewSnapshot(stream.Micros(read.at), s.deployments[r.deployment].id, r.index)
	c := stream.NewCandidate(x.Deployment, x.Replica)
	fillSignals(&c, &s.telemetry.states[read.replica], needs)
	x.QueueDepth, x.Running, x.KVUtil, x.HitRate = c.QueueDepth, c.Running, c.KVUtil, c.HitRate
	x.RecentTTFTMS, x.RecentTPOTMS, x.EstWaitMS = c.RecentTTFTMS, c.RecentTPOTMS, c.EstWaitMS
	x.KVUtilCPU, x.Loading = c.KVUtilCPU, c.Loading
	x.Cache = needs.Has(policy.FieldCache)
	_ = o.records.Any(&x)
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

// batchesFormed notes the requests of the batches that replica i has just formed. When their steps end,
// some may have been aborted and forgotten.
func (o *traceWriter) batchesFormed(s *simulation, i int32) {
	for int(i) >= len(o.batches) {
		o.batches = append(o.batches, nil)
	}
	for _, step := range s.replicas[i].engine.Formed() {
		if len(step.Entries) == 0 { // it is no step
			continue
		}
		batch := o.records.list()
		for _, x := range step.Entries {
			batch = append(batch, stream.BatchEntry{Request: s.request(x.Tag).out.ID, Tokens: int64(x.Tokens)})
		}
		o.batches[i] = append(o.batches[i], batch)
	}
}

// step records the step of a replica that has just ended.
func (o *traceWriter) step(s *simulation, i int32) error {
	r := &s.replicas[i]
	step := r.engine.Step()
	batch := o.batches[i][0]
	o.batches[i] = slices.Delete(o.batches[i], 0, 1)
	return o.records.Step(&stream.Step{Deployment: s.deployments[r.deployment].id, Replica: r.index,
		StartUS: stream.Micros(step.Start), EndUS: stream.Micros(step.End), PrefillTokens: step.Prefill,
		DecodeTokens: step.Decode, DraftTokens: step.Drafts,
		Adapters: step.Adapters, AdapterLoadUS: step.AdapterUS,
		Masks: int64(step.Masks), MaskUS: step.MaskUS, MaskWaitUS: step.MaskWaitUS,
		EncodedItems: int64(step.EncodedItems), EncodedTokens: step.EncodedTokens, EncoderUS: step.EncoderUS,
		Running: int64(step.Running), Waiting: int64(step.Waiting),
		UsedBlocks: int64(step.UsedBlocks), Preempted: int64(len(step.Preempted) + step.EarlierVictims), Batch: batch})
}
