package metrics

import (
	"math"

	"blis/pkg/stat"
)

// latency is one kind of latency. key orders its values: µs, or the bits of a
// non-negative float64, which have the same order.
type latency struct {
	key          func(*row) (uint64, bool)
	distribution func(*collector) *Distribution
	// toMS converts the keys whose sum depends on the order of additions; nil for µs.
	toMS  func(key uint64) float64
	field func(*Group) **Distribution
	name  string
	// eligible counts the offered requests that can have this latency.
	eligible func(*totals) int64
	// promised is how it is recorded over the requests that it is promised to.
	promised
}

var latencies = []latency{
	{func(r *row) (uint64, bool) { return uint64(r.ttft), r.ttft != missing }, microsDistribution, nil,
		func(g *Group) **Distribution { return &g.TTFT }, "ttft", offeredRequests,
		promised{millisOfMicros, func(o *Targeted) **TargetedLatency { return &o.TTFT }}},
	{func(r *row) (uint64, bool) {
		ms, ok := tpot(r.ttft, r.e2e, int64(r.output))
		return math.Float64bits(ms), ok
	}, millisDistribution, math.Float64frombits, func(g *Group) **Distribution { return &g.TPOT }, "tpot",
		func(t *totals) int64 { return t.multiToken },
		promised{math.Float64frombits, func(o *Targeted) **TargetedLatency { return &o.TPOT }}},
	{func(r *row) (uint64, bool) { return uint64(r.e2e), r.e2e != missing }, microsDistribution, nil,
		func(g *Group) **Distribution { return &g.E2E }, "e2e", offeredRequests,
		promised{millisOfMicros, func(o *Targeted) **TargetedLatency { return &o.E2E }}},
	{func(r *row) (uint64, bool) { return uint64(r.queue), r.queue != missing }, microsDistribution, nil,
		func(g *Group) **Distribution { return &g.Queue }, "queue", offeredRequests, promised{}},
}

func offeredRequests(t *totals) int64 { return t.requests.Offered }

// fillDistributions sets the distributions of the whole run, whose totals are all, and of
// its groups. Each latency is sorted once; the groups receive their values in order.
func (a *Accumulator) fillDistributions(whole *Group, all *totals, groupings []*grouping) {
	groupings = append(groupings, &grouping{groups: []*Group{whole}, totals: []totals{*all},
		groupIndex: make([]int, len(a.totals))})
	p := &a.spilled
	if p.latencies != nil {
		a.spillRows()
	}
	for k := range latencies {
		m := &latencies[k]
		var sorted []stat.Keyed
		var counts []int64
		if p.latencies == nil {
			sorted, counts = a.sortedRows(m)
		} else {
			counts = append(p.counts[k], make([]int64, len(a.totals)-len(p.counts[k]))...)
		}
		c := &collectors{byGroup: make([][]*collector, len(a.totals))}
		for _, g := range groupings {
			a.collect(c, m, g, counts)
			if m.at != nil {
				a.collectTargeted(c, m, g, counts)
			}
		}
		if p.latencies == nil {
			c.add(sorted)
		} else {
			p.merge(&p.latencies[k], c.add)
		}
		for _, set := range c.results {
			set()
		}
	}
	for _, p := range groupings {
		for _, g := range p.groups {
			if g.E2E != nil && g.E2E.P50 > 0 {
				blowup := g.E2E.P99 / g.E2E.P50
				g.TailBlowup = &blowup
			}
		}
	}
}

// collectors receive the values of a latency in ascending order.
type collectors struct {
	// byGroup are those of each group of the Accumulator.
	byGroup [][]*collector
	// results set what the collectors are for, after the last value.
	results []func()
}

func (c *collectors) add(sorted []stat.Keyed) {
	for i := range sorted {
		for _, x := range c.byGroup[sorted[i].Tag] {
			x.add(sorted[i].Key)
		}
	}
}

// addTo makes the collectors, one for each group of p or nil, receive the values of those groups of the Accumulator
// that are included; nil includes all.
func (c *collectors) addTo(p *grouping, included []bool, of []*collector) {
	for tag, g := range p.groupIndex {
		if g != noGroup && of[g] != nil && (included == nil || included[tag]) {
			c.byGroup[tag] = append(c.byGroup[tag], of[g])
		}
	}
}

// collect collects the distributions of the groups of p. counts are the values of each group of the Accumulator.
func (a *Accumulator) collect(c *collectors, m *latency, p *grouping, counts []int64) {
	all := make([]*collector, len(p.groups))
	for g, n := range p.sums(counts, nil) {
		if n == 0 {
			continue
		}
		x := newCollector(n, n)
		x.toMS, all[g] = m.toMS, x
		c.results = append(c.results, func() {
			d := m.distribution(x)
			d.Coverage = ratio(d.Count, m.eligible(&p.totals[g])+p.totals[g].requests.NotIssued)
			*m.field(p.groups[g]) = d
		})
	}
	c.addTo(p, nil, all)
}
