package attribution

import (
	"cmp"
	"strings"

	"blis/pkg/metrics"
	"blis/pkg/stream"
)

// request is what the Analyzer keeps of a request. There are millions: each byte counts.
type request struct {
	from   stream.Micros // when it arrived; that of its decision while it is pending
	times  times
	tokens tokenCounts
	// replica is the number of the replica that it was sent to.
	replica int32
	// outputUS is how long a token needs to the client, at most 71 minutes.
	outputUS uint32
	pending  bool // its outcome did not come yet
	// excluded, judged and met begin the verdict.
	excluded, judged, met bool
	labels                *labels // those of all requests with the same ones
	// packed has its id, that of its routing decision and what the router saw; see pack.
	packed   string
	estimate *Estimate // nil without an estimated regret
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
	// preemptedUS is the total time in the queue after preemptions, retryUS that from arrival to that of the last
	// attempt, encodedUS when encode replicas had encoded its items or 0.
	preemptedUS, retryUS int64
	encodedUS            stream.Micros
	prefill              *prefillTimes           // nil without a prefill replica
	farTimes             *[moments]stream.Micros // those that do not fit in times
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
	unpacked   *routing // nil for most requests, see seen
	shared     bool     // by requests that lost nothing
	verdict    verdict
	contention contention
	evidence   evidence
}

// derive allocates what is derived of the requests that do not have it.
func (a *Analyzer) derive() {
	var rows derivedRows
	for _, r := range a.requests.all() {
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

// encoded is when the items of a request were encoded, never without encode replicas.
func (x *incidents) encoded() stream.Micros {
	if x.encodedUS == 0 {
		return never
	}
	return x.encodedUS
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
func (r *request) ignoreOverlap() {
	p := r.prefill
	if p == nil || p.computed == never {
		return
	}
	if at := r.enqueued(); at != never {
		r.set(whenEnqueued, max(at, p.computed))
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

// labels are numbers in Analyzer.names, each of which may be that of "".
type labels struct {
	tenant, class, model, state, reason int32
	rule, routingReason                 int32 // of the last routing decision
	queuesCurrent                       bool  // replicas reported their queues at once when it was routed
}

var noLabels labels

// shared returns the labels that all requests with these ones share.
func (a *Analyzer) shared(l labels) *labels {
	recent := &a.recentLabels[uint32(l.tenant+5*l.class+11*l.model+17*l.state+23*l.reason+29*l.routingReason)%64]
	if *recent != nil && **recent == l {
		return *recent
	}
	s, known := a.labels[l]
	if !known {
		own := l
		s = &own
		a.labels[l] = s
	}
	*recent = s
	return s
}

// hindsightMS is the estimated regret, 0 without an estimate.
func (r *request) hindsightMS() float64 {
	if r.estimate == nil {
		return 0
	}
	return r.estimate.HindsightMS
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
	r, known := a.request(d.Request)
	if !known {
		r.packed = a.pack(d.Request, "", &noRouting)
		a.pending.add(r)
	}
	rule := a.names.number(d.Rule)
	x := *r.incidents
	if d.Verdict == verdictAdmit && x.delays > 0 {
		rule = x.admission.rule
	}
	if d.Verdict == verdictDelay {
		x.delays++
	}
	x.admission = admission{strings.Clone(d.ID), d.Verdict == verdictReject, rule}
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
	r, known := a.request(d.Request)
	r.labels = a.shared(labels{rule: a.names.number(d.Rule), routingReason: a.names.number(d.Reason),
		queuesCurrent: a.queuesCurrent})
	r.from = d.AtUS
	r.set(whenRouted, d.AtUS)
	r.replica = a.topology.number(d.Deployment, d.Replica)
	g := noRouting
	g.flipWeight = a.flipWeight(d)
	if known {
		g.cacheAgeUS = r.seen().cacheAgeUS
	}
	for i := range d.Considered {
		c := &d.Considered[i]
		n := a.topology.number(c.Deployment, c.Replica)
		switch {
		case n == r.replica:
			g.chosen = a.view(n, c)
			g.cacheAgeUS = a.cacheAgeUS(c)
		case g.nextBest.Replica == missing && !c.Filtered:
			g.nextBest = a.view(n, c)
		}
	}
	if r.packed = a.pack(d.Request, d.ID, &g); !known {
		a.pending.add(r)
	}
}

// view is what the router saw of the replica with a number.
func (a *Analyzer) view(replica int32, c *stream.Candidate) ReplicaView {
	v := ReplicaView{Replica: replica, Inflight: int32(c.Inflight),
		Queue: int32(c.QueueDepth), Running: int32(c.Running), Prefix: int32(max(c.Matched, c.Cached)), KV: unknownKV,
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

// request returns the pending request with this id, or a new one. What is new is not in pending yet, and has no text.
func (a *Analyzer) request(id string) (r *request, known bool) {
	if r = a.pending.get(id); r != nil {
		return r, true
	}
	return a.newRequest(), false
}

func (a *Analyzer) newRequest() *request {
	return a.requests.add(request{pending: true, replica: missing, incidents: &noIncidents, labels: &noLabels,
		times: noTimes})
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
	r := a.pending.get(g.Request)
	if r == nil || g.Stage != stream.StageRouting || g.HindsightMS == nil || g.AvoidableMS == nil {
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
	r.estimate = e
}

// Outcome takes the outcome of an attempt at a request. An excluded request, or an attempt that is not the last, cannot
// lose anything, but others may have waited for it.
func (a *Analyzer) Outcome(o *stream.Outcome, excluded bool) {
	r := a.pending.take(o.ID)
	if r == nil {
		r = a.newRequest()
		r.packed = a.pack(o.ID, o.Decision, &noRouting)
	} else if begin, end := r.decisionParts(); o.Decision != "" && o.Decision != begin+end {
		r.packed = a.pack(o.ID, o.Decision, r.seen())
	}
	r.pending = false
	a.setIncidentsOf(r, o)
	r.setTimes(o)
	found := o.CachedTokens + o.LoadedTokens.Total() // what is loaded is not computed, either
	r.tokens = tokenCounts{int32(o.InputTokens), int32(o.OutputTokens), int32(found),
		int32(o.ExpectedCachedTokens), int32(o.GeneratedTokens)}
	n := &a.names
	r.labels = a.shared(labels{n.number(o.Tenant), n.number(o.SLOClass), n.number(o.Model), n.number(o.State),
		n.number(o.Reason), r.labels.rule, r.labels.routingReason, r.labels.queuesCurrent})
	r.replica = a.topology.number(o.Deployment, o.Replica)
	r.outputUS = a.topology.deploymentOf(r.replica).outputUS(0)
	if !excluded {
		a.sessionCall(o, r)
	}
	met := metrics.SLOMet(o, a.knownTargets(r))
	r.excluded, r.judged = excluded, met != nil && !excluded
	r.met = r.judged && *met
}

// knownTargets is targets, which it looks up only once for each name.
func (a *Analyzer) knownTargets(r *request) stream.Targets {
	for _, name := range a.names.list[len(a.nameTargets):] {
		a.nameTargets = append(a.nameTargets, a.classes[name].Targets)
	}
	return a.nameTargets[r.labels.class]
}

// setIncidentsOf sets the incidents of the request with an outcome.
func (a *Analyzer) setIncidentsOf(r *request, o *stream.Outcome) {
	x := incidents{preemptions: int32(o.Preemptions), delays: int32(o.Delays), redirects: int32(o.Redirects),
		afterTimeout: o.RetryOf != "" && a.timedOut[o.RetryOf], admission: r.admission,
		stopped: stopped{o.SlotWaitUS, o.BudgetWaitUS, o.BlockWaitUS, o.GrammarWaitUS, o.AdapterWaitUS,
			o.EncoderWaitUS},
		preemptedUS: int64(o.PreemptedUS), retryUS: o.RetryUS, encodedUS: max(0, o.EncodedUS)}
	if o.Retried {
		a.timedOut[strings.Clone(cmp.Or(o.RetryOf, o.ID))] = o.State == stream.StateTimedOut
	}
	if o.LoadedTokens != nil {
		x.loaded, x.promoted = int32(o.LoadedTokens.Total()), int32(o.LoadedTokens.Storage)
	}
	if !o.PrefillReplica.IsZero() {
		x.prefill = &prefillTimes{o.PrefillEnqueuedUS, o.PrefillScheduledUS, o.PrefilledUS,
			o.TransferStartedUS, o.TransferredUS, o.TransferBlocks, o.PrefillReplica, int32(o.DecodeCachedTokens), 0, 0}
	}
	r.setIncidents(x)
	a.stats.hasStops = a.stats.hasStops || x.stopped != stopped{}
}
