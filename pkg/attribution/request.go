package attribution

import (
	"cmp"
	"strings"

	"blis/pkg/metrics"
	"blis/pkg/stream"
)

// request is what the Analyzer keeps of a request.
type request struct {
	id string
	// packed has the id of its routing decision and what the router saw; see pack.
	packed string
	routed *routing // unpacked; nil for most requests, see seen
	choice choice
	times  times
	tokens tokenCounts
	labels *labels // those of all requests with the same ones
	// replica is the number of the replica that it was sent to.
	replica int32
	// excluded, judged and met begin the verdict.
	excluded, judged, met bool
	queuesCurrent         bool // replicas reported their queues at once when it was routed
	*incidents
	*derived // nil until all records are read
}

// incidents are what most requests do not have: these share noIncidents.
type incidents struct {
	preemptions, delays int32
	redirects, loaded   int32 // loaded are prompt tokens from tiers
	promoted            int32 // those of them from storage
	afterTimeout        bool  // it repeats an attempt that timed out
	stopped             stopped
	admission           admission
}

var noIncidents incidents

// setIncidents replaces the incidents of a request.
func (r *request) setIncidents(x incidents) {
	if x == noIncidents {
		r.incidents = &noIncidents
		return
	}
	own := x // x itself would be allocated for every request
	r.incidents = &own
}

// derived is what the Analyzer finds about a request after the last record.
type derived struct {
	verdict    verdict
	contention contention
	evidence   evidence
}

// derive allocates what is derived of the requests that do not have it.
func (a *Analyzer) derive() {
	var rows derivedRows
	for _, r := range a.requests {
		if r.derived == nil {
			r.derived = rows.next(verdict{excluded: r.excluded, judged: r.judged, met: r.met, pattern: -1})
		}
	}
}

// derivedRows allocates rows.
type derivedRows struct{ spare []derived }

// next is a new row of a request with a verdict.
func (x *derivedRows) next(v verdict) *derived {
	if len(x.spare) == 0 {
		x.spare = make([]derived, requestBatch)
	}
	d := &x.spare[0]
	x.spare = x.spare[1:]
	d.verdict, d.evidence.exceptional = v, &noException
	return d
}

// times are in µs, never where they did not come. ended is when the request became final, outputUS how long a token
// needs to the client.
type times struct {
	arrival, admitted, routed, enqueued, scheduled, firstToken, ended stream.Micros
	outputUS                                                          int64
	*detours
}

// detours are times that most requests do not have: these share noDetours. preemptedUS is the total time in the queue
// after preemptions, retryUS that from arrival to that of the last attempt, encodedUS when encode replicas had encoded
// its items or 0, prefill nil without a prefill replica.
type detours struct {
	preemptedUS, retryUS int64
	encodedUS            stream.Micros
	prefill              *prefillTimes
}

var noDetours detours

// encoded is when the items of a request were encoded, never without encode replicas.
func (d *detours) encoded() stream.Micros {
	if d.encodedUS == 0 {
		return never
	}
	return d.encodedUS
}

// prefillTimes are those of a request at the prefill replica of a disaggregated deployment.
type prefillTimes struct {
	enqueued, scheduled, computed, started, transferred stream.Micros
	blocks                                              int64        // that were transferred
	replica                                             stream.Index // of the prefill pool
	cached                                              int32        // tokens at the replica that decodes
	// queue is the number of requests in its queue when it was chosen, shortest the smallest of its pool.
	queue, shortest int32
}

// ignoreOverlap makes what happens before the prompt is computed elsewhere part of the prefill: pieces of it may move
// then, and the request may be in the queue of the replica that decodes.
func (t *times) ignoreOverlap() {
	p := t.prefill
	if p == nil || p.computed == never {
		return
	}
	if t.enqueued != never {
		t.enqueued = max(t.enqueued, p.computed)
	}
	if p.started != never {
		p.started = max(p.started, p.computed)
	}
}

// stopped are the µs in the queue before the first batch in which each limit stopped the queue, or until the grammar
// was compiled.
type stopped struct{ slots, budget, blocks, grammar, adapters, encoder int64 }

// tokenCounts are prompt tokens (input, of them cached and expected to be cached) and output
// tokens (requested and generated).
type tokenCounts struct{ input, output, cached, expected, generated int32 }

// labels are numbers in Analyzer.names; each may be that of "".
type labels struct{ tenant, class, model, state, reason int32 }

var noLabels labels

// shared returns the labels that all requests with these ones share.
func (a *Analyzer) shared(l labels) *labels {
	s, known := a.labels[l]
	if !known {
		own := l
		s = &own
		a.labels[l] = s
	}
	return s
}

// choice is the rule of the last routing decision, and the regret.
type choice struct {
	rule, reason int32     // in Analyzer.names
	estimate     *Estimate // nil where there is none
}

// hindsightMS is the estimated regret, 0 without an estimate.
func (c *choice) hindsightMS() float64 {
	if c.estimate == nil {
		return 0
	}
	return c.estimate.HindsightMS
}

// admission is the last admission decision.
type admission struct {
	id       string
	rejected bool
	// rule is the path of the rule that decided, in Analyzer.names; of a request that was delayed and then
	// admitted, the rule that delayed it.
	rule int32
}

// verdict is what the request lost.
type verdict struct {
	// excluded: it is outside the selection. It cannot lose, but others may have waited for it.
	excluded bool
	judged   bool // it could have lost something
	met      bool // it met all targets
	missed   targetSet
	// dominant is the part of its time with the largest excess over that of met requests.
	dominant Part
	pattern  int8    // the index of the pattern that explains it, -1 for none
	loss     float64 // its part of Loss.Total; 0: it lost nothing
	// conditions are those that it matches, metWithout those without the time of which it would have met its targets.
	conditions, metWithout conditionSet
	// excessMS is how far it was above the target that it missed most; see Loss.ExcessMS.
	excessMS float64
}

func (r *request) lost() bool { return r.verdict.loss > 0 }

// Decision takes a decision. Only those of admission and routing matter here.
func (a *Analyzer) Decision(d *stream.Decision) {
	a.query.collect(d)
	switch d.Stage {
	case stream.StageAdmission:
		a.admissionDecision(d)
	case stream.StageRouting:
		a.routingDecision(d)
	}
}

func (a *Analyzer) admissionDecision(d *stream.Decision) {
	r := a.request(d.Request)
	rule := a.names.number(d.Rule)
	x := *r.incidents
	if d.Verdict == verdictAdmit && x.delays > 0 {
		rule = x.admission.rule
	}
	if d.Verdict == verdictDelay {
		x.delays++
	}
	x.admission = admission{d.ID, d.Verdict == verdictReject, rule}
	r.setIncidents(x)
	a.admissions[d.Verdict]++
}

// Verdicts of admission decisions.
const (
	verdictAdmit  = "admit"
	verdictDelay  = "delay"
	verdictReject = "reject"
)

func (a *Analyzer) routingDecision(d *stream.Decision) {
	r := a.request(d.Request)
	r.choice.rule, r.choice.reason = a.names.number(d.Rule), a.names.number(d.Reason)
	r.times.routed = d.AtUS
	r.replica = a.topology.number(d.Deployment, d.Replica)
	r.queuesCurrent = a.queuesCurrent
	g := noRouting
	g.flipWeight = a.flipWeight(d)
	if r.packed != "" {
		g.cacheAgeUS = r.seen().cacheAgeUS
	}
	for i := range d.Considered {
		c := &d.Considered[i]
		v := a.view(c)
		switch {
		case v.Replica == r.replica:
			g.chosen = v
			g.cacheAgeUS = a.cacheAgeUS(c)
		case g.nextBest.Replica == missing && !c.Filtered:
			g.nextBest = v
		}
	}
	r.packed = a.pack(d.ID, &g)
}

func (a *Analyzer) view(c *stream.Candidate) ReplicaView {
	v := ReplicaView{Replica: a.topology.number(c.Deployment, c.Replica), Inflight: int32(c.Inflight),
		Queue: int32(c.QueueDepth), Running: int32(c.Running), Prefix: int32(max(c.Matched, c.Cached)), KV: -1,
		Score: float64(c.Score), AgeUS: c.AgeUS}
	if !c.KVUtil.IsZero() {
		v.KV = float64(c.KVUtil)
	}
	if a.prefixesUnweighted {
		v.Prefix = -1
	}
	return v
}

// cacheAgeUS is how old at most what the replica had reported about its cache was, 0 if the router did not read that.
func (a *Analyzer) cacheAgeUS(c *stream.Candidate) int64 {
	if c.Cached.IsZero() {
		return 0
	}
	return min(c.AgeUS, a.cacheDelayUS)
}

// requestBatch is how many requests are allocated at a time.
const requestBatch = 1024

// request returns the request with this id, a new one if no pending request has it.
func (a *Analyzer) request(id string) *request {
	if i, ok := a.pending[id]; ok {
		return a.requests[i]
	}
	if len(a.spare) == 0 {
		a.spare = make([]request, requestBatch)
	}
	r := &a.spare[0]
	a.spare = a.spare[1:]
	*r = request{id: a.texts.keep([]byte(id)), replica: missing, incidents: &noIncidents, labels: &noLabels,
		times: times{never, never, never, never, never, never, never, 0, &noDetours}}
	a.pending[r.id] = int32(len(a.requests))
	a.requests = append(a.requests, r)
	return r
}

// Regret takes the counterfactuals of a decision.
func (a *Analyzer) Regret(g *stream.Regret) {
	if q := a.query; q.wants(g.Request) {
		q.regrets = append(q.regrets, *g)
	}
	if g.Method == stream.MethodExact {
		e := &Exact{Alternatives: append([]stream.Alternative{}, g.Alternatives...)}
		if g.Sensitivity != nil {
			e.Sensitivity = *g.Sensitivity
		}
		a.exact[g.Decision] = e
		return
	}
	i, ok := a.pending[g.Request]
	if !ok || g.Stage != stream.StageRouting || g.HindsightMS == nil || g.AvoidableMS == nil {
		return
	}
	e := &Estimate{HindsightMS: *g.HindsightMS, AvoidableMS: *g.AvoidableMS}
	for _, x := range g.Alternatives {
		switch {
		case x.E2EMS == nil:
		case x.Chosen:
			e.ChosenMS = *x.E2EMS
		case e.Best == "":
			e.Best, e.BestMS = a.Replica(a.topology.number(x.Deployment, x.Replica)), *x.E2EMS
		}
	}
	a.requests[i].choice.estimate = e
}

// Outcome takes the outcome of an attempt at a request. An excluded request, or an attempt that is not the last, cannot
// lose anything, but others may have waited for it.
func (a *Analyzer) Outcome(o *stream.Outcome, excluded bool) {
	r := a.request(o.ID)
	delete(a.pending, o.ID)
	r.times = times{o.Began(), o.AdmittedUS, o.RoutedUS, o.EnqueuedUS, o.ScheduledUS, o.FirstTokenUS, o.EndedUS,
		0, &noDetours}
	if o.PreemptedUS != 0 || o.RetryUS != 0 || !o.PrefillReplica.IsZero() || !o.EncodedUS.IsZero() {
		r.times.detours = &detours{preemptedUS: int64(o.PreemptedUS), retryUS: o.RetryUS,
			encodedUS: max(0, o.EncodedUS)}
	}
	if !o.PrefillReplica.IsZero() {
		r.times.prefill = &prefillTimes{o.PrefillEnqueuedUS, o.PrefillScheduledUS, o.PrefilledUS,
			o.TransferStartedUS, o.TransferredUS, o.TransferBlocks, o.PrefillReplica, int32(o.DecodeCachedTokens), 0, 0}
	}
	r.times.ignoreOverlap()
	if !o.CompletedUS.IsZero() {
		r.times.ended = o.CompletedUS
	}
	if o.Decision != "" && o.Decision != r.decision() {
		r.packed = a.pack(o.Decision, r.seen())
	}
	found := o.CachedTokens + o.LoadedTokens.Total() // what is loaded is not computed, either
	r.tokens = tokenCounts{int32(o.InputTokens), int32(o.OutputTokens), int32(found),
		int32(o.ExpectedCachedTokens), int32(o.GeneratedTokens)}
	n := &a.names
	r.labels = a.shared(labels{n.number(o.Tenant), n.number(o.SLOClass), n.number(o.Model), n.number(o.State),
		n.number(o.Reason)})
	r.replica = a.topology.number(o.Deployment, o.Replica)
	r.times.outputUS = a.topology.deploymentOf(r.replica).outputUS(0)
	x := incidents{preemptions: int32(o.Preemptions), delays: int32(o.Delays), redirects: int32(o.Redirects),
		afterTimeout: o.RetryOf != "" && a.timedOut[o.RetryOf], admission: r.admission,
		stopped: stopped{o.SlotWaitUS, o.BudgetWaitUS, o.BlockWaitUS, o.GrammarWaitUS, o.AdapterWaitUS,
			o.EncoderWaitUS}}
	if o.Retried {
		a.timedOut[strings.Clone(cmp.Or(o.RetryOf, o.ID))] = o.State == stream.StateTimedOut
	}
	if o.LoadedTokens != nil {
		x.loaded, x.promoted = int32(o.LoadedTokens.Total()), int32(o.LoadedTokens.Storage)
	}
	r.setIncidents(x)
	a.stats.hasStops = a.stats.hasStops || x.stopped != stopped{}
	if !excluded {
		a.sessionCall(o, r)
	}
	met := metrics.SLOMet(o, a.classes[o.SLOClass].Targets)
	r.excluded, r.judged = excluded, met != nil && !excluded
	r.met = r.judged && *met
}
