package figures

import (
	"slices"

	"blis/pkg/stat"
	"blis/pkg/stream"
)

// timeSeries are numbers of the run in bins of time, which are WidthS long and begin at the workload's origin.
type timeSeries struct {
	WidthS float64 `json:"width_s"`
	// Arrived, Completed and Missed count requests by arrival, completion, and arrival.
	Arrived   []int `json:"arrived"`
	Completed []int `json:"completed"`
	Missed    []int `json:"missed"`
	// Waiting and Running are mean numbers of requests in all queues and batches. Waiting is nil if the run does not
	// say when requests left their queues.
	Waiting []float64 `json:"waiting"`
	Running []float64 `json:"running"`
	// Percentiles are those of requests that arrived in the bin; nil where there are none.
	Percentiles []percentiles `json:"percentiles"`

	width stream.Micros
}

// percentiles are the median and the 99th percentile of a latency by bin of time, in ms.
type percentiles struct {
	Latency string     `json:"latency"`
	P50     []*float64 `json:"p50"`
	P99     []*float64 `json:"p99"`
}

func (c *Collector) timeSeries(until stream.Micros) timeSeries {
	width := binWidth(until)
	n := int((until + width - 1) / width)
	s := timeSeries{WidthS: float64(width) / 1e6, width: width, Arrived: make([]int, n), Completed: make([]int, n),
		Percentiles: []percentiles{},
		Missed:      make([]int, n)}
	for i := range c.rows {
		q := &c.rows[i]
		if q.State == 0 {
			continue
		}
		at := q.Arrival / int64(width)
		s.Arrived[at]++
		if q.HasTargets() && !q.MetTargets() {
			s.Missed[at]++
		}
		if q.E2E >= 0 {
			s.Completed[min(int((q.Arrival+q.E2E)/int64(width)), n-1)]++
		}
	}
	s.Running = rounded(c.running.perBin(width, until))
	if c.hasQueues() {
		s.Waiting = rounded(c.waiting.perBin(width, until))
	}
	return s
}

// hasQueues reports whether the run says when requests left their queues, as not all recordings do.
func (c *Collector) hasQueues() bool { return !c.Measured() || c.anyQueue }

// percentiles returns those of a latency, whose times are sorted.
func (c *Collector) percentiles(latency string, sorted []stat.Keyed, width stream.Micros, n int) percentiles {
	p := percentiles{Latency: latency, P50: make([]*float64, n), P99: make([]*float64, n)}
	for i, t := range c.groups(sorted, n, func(q *Row) int { return int(q.Arrival / int64(width)) }) {
		if len(t) > 0 {
			p.P50[i], p.P99[i] = pointer(round(quantileAt(t, 500))), pointer(round(quantileAt(t, 990)))
		}
	}
	return p
}

// replicaSeries are numbers of replicas in bins of time, which are WidthS long.
type replicaSeries struct {
	WidthS float64  `json:"width_s"`
	Names  []string `json:"names"`
	// Waiting and Running are mean numbers of requests: a row for each replica. Waiting is nil if the run does not say
	// when requests left their queues.
	Waiting [][]float64 `json:"waiting"`
	Running [][]float64 `json:"running"`
	// KV is the mean number of used KV blocks or, if KVShare, the mean share of used blocks that routing saw.
	// It is empty if the run has neither.
	KV      [][]*float64 `json:"kv,omitempty"`
	KVShare bool         `json:"kv_share,omitempty"`
	// Of is the number of replicas. Those with the longest queues are shown if it is more than ReplicasShown.
	Of int `json:"of"`
}

// ReplicasShown is how many replicas have rows.
const ReplicasShown = 32

func (c *Collector) replicaSeries(until, width stream.Micros) replicaSeries {
	width *= 2
	s := replicaSeries{WidthS: float64(width) / 1e6, Of: len(c.replicas), Names: []string{}}
	kv := c.signals
	s.KVShare = true
	if c.steps {
		kv, s.KVShare = c.blocks, false
	}
	for _, r := range c.busiest() {
		s.Names = append(s.Names, c.replicas[r])
		if c.hasQueues() {
			s.Waiting = append(s.Waiting, rounded(c.loads[r].waiting.perBin(width, until)))
		}
		s.Running = append(s.Running, rounded(c.loads[r].running.perBin(width, until)))
		if len(kv) == 0 {
			continue
		}
		row := make([]*float64, (until+width-1)/width)
		if x := kv[r]; x != nil {
			row = x.means(width, until)
		}
		for _, v := range row {
			if v != nil {
				*v = round(*v)
			}
		}
		s.KV = append(s.KV, row)
	}
	return s
}

// busiest returns the replicas that have rows, by name.
func (c *Collector) busiest() []int32 {
	all := c.sortedReplicas()
	if len(all) <= ReplicasShown {
		return all
	}
	total := func(r int32) (sum float64) {
		for _, x := range c.loads[r].waiting.sum {
			sum += x
		}
		return sum
	}
	ranked := slices.Clone(all)
	slices.SortStableFunc(ranked, func(a, b int32) int {
		switch x, y := total(a), total(b); {
		case x > y:
			return -1
		case x < y:
			return 1
		}
		return 0
	})
	ranked = ranked[:ReplicasShown]
	return slices.DeleteFunc(all, func(r int32) bool { return !slices.Contains(ranked, r) })
}

func rounded(x []float64) []float64 {
	for i := range x {
		x[i] = round(x[i])
	}
	return x
}
