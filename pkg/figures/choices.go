package figures

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"blis/pkg/stream"
)

// worstShown is how many requests with the longest latencies, and how many with the largest regrets, have details. With
// several runs, the number of all of them is at most worstOfAll.
const (
	worstShown = 60
	worstOfAll = 120
)

// choice is the routing decision about a request and what was known about its alternatives.
type choice struct {
	Decision   string      `json:"decision"`
	AtMS       float64     `json:"at_ms"`
	Replica    string      `json:"replica"`
	Reason     string      `json:"reason,omitempty"`
	Rule       string      `json:"rule,omitempty"`
	Of         int64       `json:"of"`
	Tied       int64       `json:"tied,omitempty"`
	Scorers    []string    `json:"scorers,omitempty"`
	Candidates []candidate `json:"candidates"`
	// HindsightMS is the estimated E2E of the choice minus that of the best candidate; nil if not estimated.
	HindsightMS *float64 `json:"hindsight_ms,omitempty"`
	AvoidableMS *float64 `json:"avoidable_ms,omitempty"`
	Method      string   `json:"method,omitempty"`
}

// candidate is a replica as the router saw it, and its estimated latency.
type candidate struct {
	Replica  string    `json:"replica"`
	Chosen   bool      `json:"chosen,omitempty"`
	Filtered bool      `json:"filtered,omitempty"`
	Score    *float64  `json:"score,omitempty"`
	Terms    []float64 `json:"terms,omitempty"`
	Inflight *int64    `json:"inflight,omitempty"`
	Queue    *int64    `json:"queue,omitempty"`
	Running  *int64    `json:"running,omitempty"`
	KV       *float64  `json:"kv,omitempty"`
	Matched  *int64    `json:"matched,omitempty"`
	TTFTMS   *float64  `json:"ttft_ms,omitempty"`
	E2EMS    *float64  `json:"e2e_ms,omitempty"`
	// OwnE2EMS is how much less the E2E would have been, by simulation; nil without one.
	OwnE2EMS *float64 `json:"own_e2e_ms,omitempty"`
}

// decided is a routing decision about a request without outcome. Few decisions are shown, so its choice is made when
// something needs it.
type decided struct {
	stream.Decision
	terms  []float64 // of all candidates
	choice *choice
}

// Decision takes a decision.
func (c *Collector) Decision(d *stream.Decision) {
	if d.Stage != stream.StageRouting && d.Stage != stream.StagePrefillRouting || d.Replica.IsZero() {
		return
	}
	for i := range d.Considered {
		if s := &d.Considered[i]; !s.KVUtil.IsZero() {
			c.addSignal(s, d.AtUS)
		}
	}
	if d.Stage == stream.StagePrefillRouting {
		return
	}
	c.forget(d.Request) // an earlier decision
	var x *decided
	if n := len(c.spare); n > 0 {
		x, c.spare = c.spare[n-1], c.spare[:n-1]
	} else {
		x = &decided{}
	}
	considered, scorers := x.Considered[:0], x.Scorers[:0]
	x.Decision, x.terms, x.choice = *d, x.terms[:0], nil
	x.Scorers, x.Considered = append(scorers, d.Scorers...), append(considered, d.Considered...)
	for i := range x.Considered {
		s := &x.Considered[i]
		if n := len(s.Terms); n > 0 {
			x.terms = append(x.terms, s.Terms...)
			s.Terms = x.terms[len(x.terms)-n:]
		}
	}
	c.pending[d.Request] = x
}

// forget ends what is pending about a request.
func (c *Collector) forget(request string) {
	if x := c.pending[request]; x != nil {
		delete(c.pending, request)
		c.spare = append(c.spare, x)
	}
}

// made returns the choice of a decision.
func (x *decided) made() *choice {
	if x.choice != nil {
		return x.choice
	}
	k := &choice{Decision: strings.Clone(x.ID), AtMS: ms(x.AtUS), Replica: replicaName(x.Deployment, x.Replica),
		Reason: strings.Clone(x.Reason), Rule: strings.Clone(x.Rule), Of: x.Candidates, Tied: x.Tied,
		Candidates: []candidate{}}
	for _, s := range x.Scorers {
		k.Scorers = append(k.Scorers, strings.Clone(s))
	}
	for i := range x.Considered {
		s := &x.Considered[i]
		name := replicaName(s.Deployment, s.Replica)
		k.Candidates = append(k.Candidates, candidate{Replica: name, Chosen: name == k.Replica, Filtered: s.Filtered,
			Score: number(s.Score), Terms: rounded(slices.Clone(s.Terms)), Inflight: index(s.Inflight),
			Queue:   index(s.QueueDepth),
			Running: index(s.Running), KV: number(s.KVUtil), Matched: index(s.Matched)})
	}
	x.choice = k
	return k
}

// addSignal adds the KV utilization that routing saw of a replica. Each reading has the same weight.
func (c *Collector) addSignal(s *stream.Candidate, at stream.Micros) {
	r := c.replica(s.Deployment, s.Replica)
	if c.signals[r] == nil {
		c.signals[r] = &integral{}
	}
	c.signals[r].add(at, at+1, float64(s.KVUtil))
}

// Regret takes the counterfactuals of a decision.
func (c *Collector) Regret(g *stream.Regret) {
	d := c.pending[g.Request]
	if d == nil || d.ID != g.Decision {
		return
	}
	x := d.made()
	x.Method = strings.Clone(g.Method)
	if g.HindsightMS != nil {
		x.HindsightMS, x.AvoidableMS = pointer(*g.HindsightMS), nil
	}
	if g.AvoidableMS != nil {
		x.AvoidableMS = pointer(*g.AvoidableMS)
	}
	for i := range g.Alternatives {
		a := &g.Alternatives[i]
		name := replicaName(a.Deployment, a.Replica)
		at := slices.IndexFunc(x.Candidates, func(k candidate) bool { return k.Replica == name })
		if at < 0 {
			at = len(x.Candidates)
			x.Candidates = append(x.Candidates, candidate{Replica: name, Chosen: a.Chosen})
		}
		k := &x.Candidates[at]
		if a.TTFTMS != nil {
			k.TTFTMS = pointer(*a.TTFTMS)
		}
		if a.E2EMS != nil {
			k.E2EMS = pointer(*a.E2EMS)
		}
		if a.Own != nil {
			k.OwnE2EMS = pointer(a.Own.E2EMS)
		}
	}
}

// request is one request with its parts and the decision about it.
type request struct {
	ID      string  `json:"id"`
	Class   string  `json:"class,omitempty"`
	State   string  `json:"state"`
	Reason  string  `json:"reason,omitempty"`
	Arrival float64 `json:"arrival_s"`
	Replica string  `json:"replica,omitempty"`
	Input   int64   `json:"input_tokens"`
	Output  int64   `json:"output_tokens"`
	Cached  int64   `json:"cached_tokens"`
	Met     *bool   `json:"met,omitempty"`
	// TTFTMS and E2EMS are nil if it has none. SpentMS is the time from its arrival to its end.
	TTFTMS  *float64 `json:"ttft_ms,omitempty"`
	E2EMS   *float64 `json:"e2e_ms,omitempty"`
	SpentMS float64  `json:"spent_ms"`
	Parts   []part   `json:"parts"`
	Choice  *choice  `json:"choice,omitempty"`

	key      float64
	sequence int64
}

// part is a part of the time of a request, in ms since its arrival.
type part struct {
	Name string  `json:"name"`
	From float64 `json:"from"`
	To   float64 `json:"to"`
}

// keep keeps a request with its details if it is one of the worst.
func (c *Collector) keep(o *stream.Outcome, r *Row, met *bool) {
	c.sequence++
	d := c.pending[o.ID]
	spent := ms(endOf(o) - o.Began())
	regret := 0.0
	if d != nil && d.choice != nil && d.choice.HindsightMS != nil {
		regret = *d.choice.HindsightMS
	}
	byTime, byRegret := c.worst.wants(spent), regret > 0 && c.regrets.wants(regret)
	if !byTime && !byRegret {
		return
	}
	q := request{ID: r.ID, Class: c.classes[r.class], State: strings.Clone(o.State), Reason: strings.Clone(o.Reason),
		Arrival: float64(o.Began()) / 1e6, Input: o.InputTokens, Output: o.GeneratedTokens, Cached: o.CachedTokens,
		Met: met, SpentMS: spent, Parts: partsOf(o), sequence: c.sequence}
	if d != nil {
		q.Choice = d.made()
	}
	if !o.Replica.IsZero() {
		q.Replica = replicaName(o.Deployment, o.Replica)
	}
	if t := r.TTFT; t >= 0 {
		q.TTFTMS = pointer(float64(t) / 1000)
	}
	if t := r.E2E; t >= 0 {
		q.E2EMS = pointer(float64(t) / 1000)
	}
	if byTime {
		q.key = spent
		c.worst.add(q)
	}
	if byRegret {
		q.key = regret
		c.regrets.add(q)
	}
}

// partsOf divides the time of a request, from its first arrival to its end. The time after preemptions is part of
// decode.
func partsOf(o *stream.Outcome) []part {
	parts := []part{}
	began, at := o.Began(), o.Began()
	until := func(name string, to stream.Micros) {
		if !to.IsZero() && to > at {
			parts = append(parts, part{name, ms(at - began), ms(to - began)})
			at = to
		}
	}
	end := endOf(o)
	until("retries", o.ArrivalUS)
	until("admission and routing", max(o.RoutedUS, o.AdmittedUS))
	until("frontend", o.PrefillEnqueuedUS)
	if !o.PrefillEnqueuedUS.IsZero() {
		until("queue", o.PrefillScheduledUS)
		until("prefill", o.PrefilledUS)
	}
	if !o.PrefilledUS.IsZero() {
		until("transfer wait", o.TransferStartedUS)
		if !o.TransferredUS.IsZero() || !o.TransferStartedUS.IsZero() && o.ScheduledUS.IsZero() {
			until("transfer", cmp.Or(max(o.TransferredUS, 0), end))
		}
		until("transfer wait", cmp.Or(max(o.ScheduledUS, 0), end))
	}
	until("frontend", o.EnqueuedUS)
	switch {
	case o.ScheduledUS.IsZero() && !o.EnqueuedUS.IsZero():
		until("queue", end)
	default:
		until("queue", o.ScheduledUS)
	}
	until("prefill", o.FirstTokenUS)
	if o.FirstTokenUS.IsZero() {
		until("prefill", end)
	}
	until("decode", end)
	return parts
}

// worstRequests are those with the largest keys, of equal ones the first.
type worstRequests struct {
	limit int
	all   []request // sorted
}

func (w *worstRequests) wants(key float64) bool {
	return len(w.all) < w.limit || key > w.all[len(w.all)-1].key
}

func (w *worstRequests) add(q request) {
	at, _ := slices.BinarySearchFunc(w.all, q, func(a, b request) int {
		return cmp.Or(cmp.Compare(b.key, a.key), cmp.Compare(a.sequence, b.sequence))
	})
	w.all = slices.Insert(w.all, at, q)
	w.all = w.all[:min(len(w.all), w.limit)]
}

func replicaName(deployment string, i stream.Index) string {
	return fmt.Sprintf("%s/%d", deployment, i)
}

func ms(us stream.Micros) float64 { return float64(us) / 1000 }

func pointer(x float64) *float64 { return &x }

// number returns x with seven digits after the point; nil if it is missing.
func number(x stream.Number) *float64 {
	if x.IsZero() {
		return nil
	}
	return pointer(round(float64(x)*1e4) / 1e4)
}

func index(x stream.Index) *int64 {
	if x.IsZero() {
		return nil
	}
	n := int64(x)
	return &n
}
