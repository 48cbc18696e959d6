package attribution

import (
	"strings"

	"blis/pkg/metrics"
	"blis/pkg/stream"
)

const nowhere int32 = -1

// row is what is kept of a request.
type row struct {
	id, decision string
	times
	input, output, cached, expected int32
	made                            int32 // tokens of the answer that came
	// Names have numbers: see Insight.names. tenant, class and rule may be those of "".
	tenant, class, model, state, reason int32
	replica                             int32
	preemptions, delays                 int32
	routing
	verdict
	lost
}

// times are µs, stream.Never where they did not come. ended is when the request was
// final, preempted how long it waited again after it had lost its place.
type times struct {
	arrival, admitted, routed, enqueued, scheduled, first, ended stream.Micros
	preempted                                                    int64
}

// routing is what the last routing decision saw: the replica that it chose, and the
// best of the others that it showed.
type routing struct {
	seen, next   view
	rule, why    int32
	hindsight    float64 // ms; estimated says whether it is known
	avoidable    float64
	estimated    bool
	best         int32 // the replica with the best estimate that was not chosen
	bestMS, ours float64
}

// view is a replica as a router saw it; -1 is what it did not look at.
type view struct {
	replica                                   int32
	inflight, queue, running, matched, cached int32
	kv, score                                 float64
	age                                       int64 // µs
}

// verdict is the last decision of admission.
type verdict struct {
	admission string // its id
	rejected  bool
	gate      int32 // the path of its rule, of the last that did not admit it if there is one
}

// lost is what is found out at the end.
type lost struct {
	apart  bool    // it is not asked about
	loss   float64 // 0: nothing
	judged bool    // it counts among those that could lose
	met    bool    // all its targets
	missed uint8   // which targets: missedTTFT and so on
	blame  int8    // the part that exceeds most what others take
	overMS float64 // by how much it is above the target that it missed most; see Loss
	load
}

// Decision takes a decision. Only those of admission and routing are looked at.
func (in *Analyzer) Decision(d *stream.Decision) {
	in.question.hear(d)
	switch d.Stage {
	case stream.StageAdmission:
		r := in.row(d.Request)
		gate := in.names.of(d.Rule)
		if d.Verdict == "admit" && r.delays > 0 {
			gate = r.gate
		}
		if d.Verdict == "delay" {
			r.delays++
		}
		r.verdict = verdict{d.ID, d.Verdict == "reject", gate}
		in.verdicts[d.Verdict]++
	case stream.StageRouting:
		r := in.row(d.Request)
		r.decision = d.ID
		r.rule, r.why = in.names.of(d.Rule), in.names.of(d.Reason)
		r.routed = d.AtUS
		r.replica = in.plan.number(d.Deployment, d.Replica)
		r.seen, r.next = view{replica: nowhere}, view{replica: nowhere}
		for i := range d.Considered {
			c := &d.Considered[i]
			v := in.view(c)
			switch {
			case v.replica == r.replica:
				r.seen = v
			case r.next.replica == nowhere && !c.Filtered:
				r.next = v
			}
		}
	}
}

// row is that of a request whose outcome has not come.
func (in *Analyzer) row(id string) *row {
	if i, ok := in.open[id]; ok {
		return in.rows[i]
	}
	if len(in.spare) == 0 {
		in.spare = make([]row, rowsAtOnce)
	}
	r := &in.spare[0]
	in.spare = in.spare[1:]
	none := in.names.of("")
	*r = row{id: strings.Clone(id), replica: nowhere, times: times{never, never, never, never, never, never, never, 0}}
	r.seen.replica, r.next.replica, r.best = nowhere, nowhere, nowhere
	r.rule, r.why, r.gate = none, none, none
	in.open[r.id] = int32(len(in.rows))
	in.rows = append(in.rows, r)
	return r
}

// rowsAtOnce are allocated together.
const rowsAtOnce = 1024

const never = stream.Never

func (in *Analyzer) view(c *stream.Candidate) view {
	v := view{replica: in.plan.number(c.Deployment, c.Replica), inflight: int32(c.Inflight), queue: int32(c.QueueDepth),
		running: int32(c.Running), matched: int32(c.Matched), cached: int32(c.Cached), kv: -1, score: float64(c.Score), age: c.AgeUS}
	if !c.KVUtil.IsZero() {
		v.kv = float64(c.KVUtil)
	}
	return v
}

// Regret takes what other choices would have made of a decision.
func (in *Analyzer) Regret(g *stream.Regret) {
	if q := in.question; q.IsSet() && q.request != "" && g.Request == q.request {
		q.regrets = append(q.regrets, *g)
	}
	if g.Method == stream.MethodExact {
		e := &Exact{Decision: g.Decision, Request: g.Request}
		e.Alternatives = append(e.Alternatives, g.Alternatives...)
		in.exact[g.Decision] = e
		return
	}
	i, ok := in.open[g.Request]
	if !ok || g.Stage != stream.StageRouting || g.HindsightMS == nil || g.AvoidableMS == nil {
		return
	}
	r := in.rows[i]
	r.estimated, r.hindsight, r.avoidable, r.best = true, *g.HindsightMS, *g.AvoidableMS, nowhere
	for _, a := range g.Alternatives {
		switch {
		case a.E2EMS == nil:
		case a.Chosen:
			r.ours = *a.E2EMS
		case r.best == nowhere:
			r.best, r.bestMS = in.plan.number(a.Deployment, a.Replica), *a.E2EMS
		}
	}
}

// Exact is what playing a decision otherwise changed.
type Exact struct {
	Decision, Request string
	Alternatives      []stream.Alternative
}

// Outcome takes what became of a request. One that is apart is not itself asked about:
// it loses nothing, and others may have waited for it.
func (in *Analyzer) Outcome(o *stream.Outcome, apart bool) {
	r := in.row(o.ID)
	delete(in.open, o.ID)
	r.times = times{o.ArrivalUS, o.AdmittedUS, o.RoutedUS, o.EnqueuedUS, o.ScheduledUS, o.FirstTokenUS, o.EndedUS, int64(o.PreemptedUS)}
	if !o.CompletedUS.IsZero() {
		r.ended = o.CompletedUS
	}
	if o.Decision != "" {
		r.decision = strings.Clone(o.Decision)
	}
	r.input, r.output, r.cached, r.expected = int32(o.InputTokens), int32(o.OutputTokens), int32(o.CachedTokens), int32(o.ExpectedCachedTokens)
	n := &in.names
	r.tenant, r.class, r.model, r.state, r.reason = n.of(o.Tenant), n.of(o.SLOClass), n.of(o.Model), n.of(o.State), n.of(o.Reason)
	r.replica = in.plan.number(o.Deployment, o.Replica)
	r.made = int32(o.GeneratedTokens)
	r.preemptions, r.delays = int32(o.Preemptions), int32(o.Delays)
	r.apart = apart
	met := metrics.SLOMet(o, in.classes[o.SLOClass].Targets)
	r.judged = met != nil && !apart
	r.met = r.judged && *met
}
