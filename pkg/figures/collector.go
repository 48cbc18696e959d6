// Package figures computes what the figures of a run show: distributions and heat maps of latencies, numbers over time,
// replicas over time, the slowest requests, and decisions.
//
// A Collector takes the records of a run. Quantiles, bins of time and latency, and the requests with details are chosen
// here, so that equal runs give equal figures and the figures stay small: a distribution has 119 quantiles, a heat map
// at most 160 by 90 cells, a series at most 160 bins.
package figures

import (
	"cmp"
	"slices"
	"strings"

	"blis/pkg/resample"
	"blis/pkg/stream"
)

// Row is what is kept of a request.
type Row struct {
	resample.Request
	ID    string
	class string
	// met is nil if its class has no targets.
	met *bool
	// stays are its times on replicas: on a prefill replica, and on the one that decodes.
	stays [2]stay
}

// stay is the time of a request on a replica: in its queue from enqueued to scheduled, and in batches until end. A
// request that never entered a batch is in the queue until end.
type stay struct {
	// replica is its position in Collector.replicas, -1 for no stay.
	replica                  int32
	enqueued, scheduled, end stream.Micros
}

// Collector takes the records of one run and keeps what its figures show.
type Collector struct {
	header   *stream.Header
	rows     []Row
	replicas []string
	position map[string]int32
	classes  map[string]string
	// blocks are the used KV blocks by replica and time, steps says that the run has them.
	blocks map[int32]*integral
	steps  bool
	last   stream.Micros // end of the last step
	// notIssued are the calls that were not issued, by the request that broke their session.
	notIssued map[string]int32
	// signals are the KV utilizations that routing saw, where it reads them.
	signals  map[int32]*integral
	pending  map[string]*choice
	worst    worstRequests
	regrets  worstRequests
	sequence int64
	decision stream.Decision // a buffer
	regret   stream.Regret   // a buffer
	step     stream.Step     // a buffer
}

// NewCollector returns a Collector for the run with this header, which it keeps.
func NewCollector(h *stream.Header) *Collector {
	return &Collector{header: h, position: map[string]int32{}, classes: map[string]string{},
		blocks: map[int32]*integral{}, signals: map[int32]*integral{},
		notIssued: map[string]int32{}, pending: map[string]*choice{},
		worst: worstRequests{limit: worstShown, all: []request{}}, regrets: worstRequests{limit: worstShown}}
}

// Record takes the current record of r unless it is an outcome.
func (c *Collector) Record(r *stream.Reader) (err error) {
	switch r.Kind() {
	case stream.KindDecision:
		if err = r.Decision(&c.decision); err == nil {
			c.addDecision(&c.decision)
		}
	case stream.KindRegret:
		if err = r.Regret(&c.regret); err == nil {
			c.addRegret(&c.regret)
		}
	case stream.KindStep:
		s := &c.step
		if err = r.Step(s); err == nil {
			c.steps, c.last = true, max(c.last, s.EndUS)
			at := c.replica(s.Deployment, s.Replica)
			if c.blocks[at] == nil {
				c.blocks[at] = &integral{}
			}
			c.blocks[at].add(s.StartUS, s.EndUS, float64(s.UsedBlocks))
		}
	case stream.KindSessionOutcome:
		var s stream.SessionOutcome
		if err = r.SessionOutcome(&s); err == nil && s.NotIssued() > 0 {
			c.notIssued[s.FailedRequest()] += int32(s.NotIssued())
		}
	}
	return err
}

// replica returns the position of a replica in c.replicas.
func (c *Collector) replica(deployment string, index stream.Index) int32 {
	return c.named(replicaName(deployment, index))
}

// named returns the position of the replica with that name.
func (c *Collector) named(name string) int32 {
	at, known := c.position[name]
	if !known {
		at = int32(len(c.replicas))
		c.position[name] = at
		c.replicas = append(c.replicas, name)
	}
	return at
}

// Outcome takes an outcome. met says whether it met its targets, nil if it has none. Attempts that are not the last
// only count as time on replicas.
func (c *Collector) Outcome(o *stream.Outcome, met *bool) {
	r := Row{Request: resample.NewRequest(o, met), ID: strings.Clone(o.Original()), class: c.intern(o.SLOClass),
		met: met, stays: [2]stay{{replica: -1}, {replica: -1}}}
	end := endOf(o)
	if !o.PrefillEnqueuedUS.IsZero() && !o.PrefillReplica.IsZero() {
		r.stays[0] = stay{c.replica(o.Deployment, o.PrefillReplica), o.PrefillEnqueuedUS, o.PrefillScheduledUS,
			cmp.Or(max(o.PrefilledUS, 0), end)}
	}
	switch {
	case !o.EnqueuedUS.IsZero() && !o.Replica.IsZero():
		r.stays[1] = stay{c.replica(o.Deployment, o.Replica), o.EnqueuedUS, o.ScheduledUS, end}
	case c.header.Recording != nil: // without replicas
		r.stays[1] = stay{c.named("server"), o.ArrivalUS, cmp.Or(max(o.ScheduledUS, 0), o.ArrivalUS), end}
	}
	if o.Retried {
		r.State, r.TTFT, r.E2E, r.Queue = 0, resample.Missing, resample.Missing, resample.Missing
	} else {
		c.keep(o, &r)
	}
	delete(c.pending, o.ID)
	c.rows = append(c.rows, r)
}

// intern returns the name of a class without a copy for each request.
func (c *Collector) intern(class string) string {
	name, known := c.classes[class]
	if !known {
		name = strings.Clone(class)
		c.classes[name] = name
	}
	return name
}

// endOf is when a request ended; the last known time where a recording does not say.
func endOf(o *stream.Outcome) stream.Micros {
	if !o.CompletedUS.IsZero() {
		return o.CompletedUS
	}
	return max(o.EndedUS, o.ArrivalUS, o.RoutedUS, o.EnqueuedUS, o.ScheduledUS, o.FirstTokenUS)
}

// sortedReplicas returns the positions of replicas by name, shorter names first.
func (c *Collector) sortedReplicas() []int32 {
	order := make([]int32, len(c.replicas))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int {
		x, y := c.replicas[a], c.replicas[b]
		return cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(x, y))
	})
	return order
}

// Rows returns the requests in the order of their outcomes, after the last record.
func (c *Collector) Rows() []Row {
	if len(c.notIssued) > 0 {
		for i := range c.rows {
			c.rows[i].NotIssued = c.notIssued[c.rows[i].ID]
		}
		clear(c.notIssued)
	}
	return c.rows
}

// Measured reports whether the run is a recording of a real server.
func (c *Collector) Measured() bool { return c.header.Recording != nil }
