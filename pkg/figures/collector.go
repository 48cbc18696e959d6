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
	ID string
	// class is its number in Collector.classes.
	class uint32
}

// stay is the time of a request on a replica: in its queue from enqueued to scheduled, and in batches until end. A
// request that never entered a batch is in the queue until end.
type stay struct {
	// replica is its position in Collector.replicas.
	replica                  int32
	enqueued, scheduled, end stream.Micros
}

// Collector takes the records of one run and keeps what its figures show.
type Collector struct {
	header   *stream.Header
	rows     []Row
	replicas []string
	position map[replicaKey]int32
	// classes are those of all requests, numbered in order of appearance.
	classes     []string
	classNumber map[string]uint32
	// waiting and running are the requests in all queues and batches, loads those of each replica.
	waiting, running integral
	loads            []replicaLoad
	anyQueue         bool // a request says when it left its queue
	// blocks are the used KV blocks by replica and time, steps says that the run has them.
	blocks map[int32]*integral
	steps  bool
	last   stream.Micros // the last time of a request or a step
	// notIssued are the calls that were not issued, by the request that broke their session.
	notIssued map[string]int32
	// signals are the KV utilizations that routing saw, where it reads them.
	signals  map[int32]*integral
	pending  map[string]*decided
	spare    []*decided // not in pending any more
	worst    worstRequests
	regrets  worstRequests
	sequence int64
	decision stream.Decision // a buffer
	regret   stream.Regret   // a buffer
	step     stream.Step     // a buffer
}

// NewCollector returns a Collector for the run with this header, which it keeps.
func NewCollector(h *stream.Header) *Collector {
	return &Collector{header: h, position: map[replicaKey]int32{}, classNumber: map[string]uint32{},
		blocks: map[int32]*integral{}, signals: map[int32]*integral{},
		notIssued: map[string]int32{}, pending: map[string]*decided{},
		worst: worstRequests{limit: worstShown, all: []request{}}, regrets: worstRequests{limit: worstShown}}
}

// Record takes the current record of r unless it is an outcome.
func (c *Collector) Record(r *stream.Reader) (err error) {
	switch r.Kind() {
	case stream.KindDecision:
		if err = r.Decision(&c.decision); err == nil {
			c.Decision(&c.decision)
		}
	case stream.KindRegret:
		if err = r.Regret(&c.regret); err == nil {
			c.Regret(&c.regret)
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

// replicaKey is a replica; a server without replicas has no index.
type replicaKey struct {
	deployment string
	index      stream.Index
}

// replicaLoad is the requests in the queue and the batches of one replica.
type replicaLoad struct{ waiting, running integral }

// replica returns the position of a replica in c.replicas.
func (c *Collector) replica(deployment string, index stream.Index) int32 {
	key := replicaKey{deployment, index}
	at, known := c.position[key]
	if !known {
		at = int32(len(c.replicas))
		name := strings.Clone(deployment)
		c.position[replicaKey{name, index}] = at
		if !index.IsZero() {
			name = replicaName(name, index)
		}
		c.replicas, c.loads = append(c.replicas, name), append(c.loads, replicaLoad{})
	}
	return at
}

// Outcome takes an outcome. met says whether it met its targets, nil if it has none. Attempts that are not the last
// only count as time on replicas.
func (c *Collector) Outcome(o *stream.Outcome, met *bool) {
	r := Row{Request: resample.NewRequest(o, met), ID: strings.Clone(o.Original()), class: c.class(o.SLOClass)}
	c.last = max(c.last, stream.Micros(r.Arrival)+1)
	c.addStays(o)
	if o.Retried {
		r.State, r.TTFT, r.E2E, r.Queue = 0, resample.Missing, resample.Missing, resample.Missing
	} else {
		c.keep(o, &r, met)
	}
	c.anyQueue = c.anyQueue || r.Queue >= 0
	c.forget(o.ID)
	c.rows = append(c.rows, r)
}

// addStays adds the times of a request on replicas: on a prefill replica, and on the one that decodes.
func (c *Collector) addStays(o *stream.Outcome) {
	end := endOf(o)
	if !o.PrefillEnqueuedUS.IsZero() && !o.PrefillReplica.IsZero() {
		at := c.replica(stream.PrefillPool(o.Deployment), o.PrefillReplica)
		c.addStay(stay{at, o.PrefillEnqueuedUS, o.PrefillScheduledUS, cmp.Or(max(o.PrefilledUS, 0), end)})
	}
	switch {
	case !o.EnqueuedUS.IsZero() && !o.Replica.IsZero():
		c.addStay(stay{c.replica(o.Deployment, o.Replica), o.EnqueuedUS, o.ScheduledUS, end})
	case c.header.Recording != nil: // without replicas
		c.addStay(stay{c.replica("server", stream.NoIndex), o.ArrivalUS,
			cmp.Or(max(o.ScheduledUS, 0), o.ArrivalUS), end})
	default:
		return
	}
	c.last = max(c.last, end)
}

// addStay adds the times of a request in the queue and in the batches of a replica. Their sums are of whole µs, which
// are exact in any order.
func (c *Collector) addStay(x stay) {
	l, running := &c.loads[x.replica], x.scheduled
	if x.scheduled.IsZero() {
		running = x.end
	}
	for _, waiting := range []*integral{&c.waiting, &l.waiting} {
		waiting.add(x.enqueued, running, 1)
	}
	for _, batches := range []*integral{&c.running, &l.running} {
		batches.add(running, x.end, 1)
	}
}

// class returns the number of a class.
func (c *Collector) class(name string) uint32 {
	n, known := c.classNumber[name]
	if !known {
		n = uint32(len(c.classes))
		name = strings.Clone(name)
		c.classNumber[name], c.classes = n, append(c.classes, name)
	}
	return n
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
