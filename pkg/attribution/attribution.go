// Package attribution says where a run lost time and SLOs, and which decisions that
// traces to.
//
// It takes a run's records in their order and keeps about half a kilobyte for each request.
// When all have come, it reconstructs from the outcomes what the routers could not
// know: how long each queue truly was at each decision, and whose work a request waited
// behind. Then it divides what was lost
//
//   - by where the time went (Parts), missed against met requests, and
//   - by which of a fixed list of conditions (Conditions) the losing decisions meet, each
//     with a fixed threshold.
//
// What is lost (see Loss) are requests that missed a target of their SLO class. Where
// no request was promised anything it is the estimated regret of the routing decisions,
// where that was recorded, and else the requests whose first token came late: after more
// than five times the median TTFT, or never.
//
// A condition becomes a Pattern if it holds for at least 5 % of what was lost and if
// its lift is 1.5 or more: the share of losing requests among those for which it holds,
// over that among those for which it does not (see Pattern.Lift). Patterns are found one
// after the other, each among the requests that those before it do not explain, so that
// no loss is counted twice. A run that lost 1 % of its requests or less, or fewer than
// ten, has none.
package attribution

import (
	"strconv"

	"blis/pkg/metrics"
	"blis/pkg/stream"
)

// Thresholds of patterns.
const (
	// MinLost requests, and more than LeastShare of those judged, must have lost
	// something; else no patterns are looked for.
	MinLost      = 10
	MinLossShare = 0.01
	// MinSupport is the part of the loss, LeastLift the lift that a pattern has.
	MinSupport = 0.05
	MinLift    = 1.5
	// mostOfLoss is the part of it that replicas which are too small must explain to be
	// looked at before what went wrong in them.
	mostOfLoss = 0.5
	// mostPatterns are kept.
	mostPatterns = 5
)

// Analyzer gathers a run's records.
type Analyzer struct {
	header   *stream.Header
	classes  map[string]stream.SLOClass
	plan     plan
	rows     []*row
	spare    []row // not in rows yet
	facts    facts
	open     map[string]int32 // requests without outcome, by id
	names    names
	exact    map[string]*Exact // by decision
	metrics  *metrics.Raw
	episodes []stream.Anomaly
	// verdicts counts the decisions of admission.
	verdicts map[string]int64
	question *Query
	// by is which pattern explains each row, -1 none.
	by []int32
}

// New begins with the header of a run.
func New(h *stream.Header) *Analyzer {
	in := &Analyzer{header: h, classes: map[string]stream.SLOClass{}, open: map[string]int32{}, exact: map[string]*Exact{}, verdicts: map[string]int64{}}
	for _, c := range stream.Classes {
		in.classes[c.Name] = c.Value
	}
	for _, c := range h.SLOClasses {
		in.classes[c.Name] = c
	}
	in.plan = newPlan(h)
	return in
}

// Metrics takes the metrics of the run. Nothing is kept of it but the pointer.
func (in *Analyzer) Metrics(m *metrics.Raw) { in.metrics = m }

// Anomaly takes an episode.
func (in *Analyzer) Anomaly(a *stream.Anomaly) { in.episodes = append(in.episodes, *a) }

// names are tenants, classes, rules and reasons, each once, in the order in which they
// came.
type names struct {
	numbers map[string]int32
	list    []string
}

func (n *names) of(name string) int32 {
	if n.numbers == nil {
		n.numbers = map[string]int32{}
	}
	i, ok := n.numbers[name]
	if !ok {
		i = int32(len(n.list))
		n.numbers[name] = i
		n.list = append(n.list, name)
	}
	return i
}

// Replica is a replica as people write it, such as main/0.
func (in *Analyzer) Replica(n int32) string {
	if n == nowhere {
		return ""
	}
	at := in.plan.replicas[n]
	return at.deployment + "/" + strconv.Itoa(int(at.index))
}

// Empty reports whether nothing was said of any request.
func (in *Analyzer) Empty() bool { return len(in.rows) == 0 }
