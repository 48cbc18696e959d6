package metrics

import (
	"math"

	"blis/pkg/stat"
)

// latency is one kind of latency. Its keys, in a column, order its values: µs, or the bits of a non-negative
// float64, which have the same order.
type latency struct {
	key func(*times) (uint64, bool)
	// mean is the value of a key that the mean adds; nil if it adds keys.
	mean         func(key uint64) float64
	distribution func(*collector) *Distribution
	field        func(*Group) **Distribution
	name         string
	// eligible counts the offered requests that can have this latency.
	eligible func(*totals) int64
	// promised is how it is recorded over the requests that it is promised to.
	promised
}

var latencies = [...]latency{
	{func(r *times) (uint64, bool) { return uint64(r.ttft), r.ttft != missing }, nil, microsDistribution,
		func(g *Group) **Distribution { return &g.TTFT }, "ttft", offeredRequests,
		promised{millisOfMicros, func(o *Targeted) **TargetedLatency { return &o.TTFT }}},
	{func(r *times) (uint64, bool) {
		ms, ok := tpot(r.ttft, r.e2e, r.output)
		return math.Float64bits(ms), ok
	}, math.Float64frombits, millisDistribution, func(g *Group) **Distribution { return &g.TPOT }, "tpot",
		func(t *totals) int64 { return t.multiToken },
		promised{math.Float64frombits, func(o *Targeted) **TargetedLatency { return &o.TPOT }}},
	{func(r *times) (uint64, bool) { return uint64(r.e2e), r.e2e != missing }, nil, microsDistribution,
		func(g *Group) **Distribution { return &g.E2E }, "e2e", offeredRequests,
		promised{millisOfMicros, func(o *Targeted) **TargetedLatency { return &o.E2E }}},
	{func(r *times) (uint64, bool) { return uint64(r.queue), r.queue != missing }, nil, microsDistribution,
		func(g *Group) **Distribution { return &g.Queue }, "queue", offeredRequests, promised{}},
}

func offeredRequests(t *totals) int64 { return t.requests.Offered }

// fillDistributions sets the distributions of the whole run, whose totals are all, and of
// its groups. Each latency is sorted once.
func (a *Accumulator) fillDistributions(whole *Group, all *totals, groupings []*grouping) {
	one := a.wholeRun(whole)
	one.totals = []totals{*all}
	groupings = append(groupings, one)
	for i := range latencies {
		m, c := &latencies[i], &a.columns[i]
		for p, collected := range a.collect(c, groupings, func(_, _ int, n int64) *collector {
			return newCollector(n, n, m.mean)
		}) {
			for g := range collected {
				*m.field(groupings[p].groups[g]) = m.withCoverage(m.distribution(collected[g]), &groupings[p].totals[g])
			}
		}
		if m.at != nil {
			a.fillTargeted(m, c, groupings)
		}
	}
	for _, g := range allGroups(whole, groupings[:len(groupings)-1]) {
		if g.E2E != nil && g.E2E.P50 > 0 {
			blowup := g.E2E.P99 / g.E2E.P50
			g.TailBlowup = &blowup
		}
	}
}

// withCoverage sets the coverage of d, nil if d is.
func (m *latency) withCoverage(d *Distribution, t *totals) *Distribution {
	if d != nil {
		d.Coverage = ratio(d.Count, m.eligible(t)+t.requests.NotIssued)
	}
	return d
}

// collector gathers what a distribution of values in ascending order needs.
type collector struct {
	*stat.Ordered
	// sum is that of the keys; sumOf that of what value makes of them, unless it is nil.
	sum   uint64
	sumOf float64
	value func(key uint64) float64
}

// newCollector returns a collector of the first values of n; nil if there are none.
func newCollector(values, n int64, value func(uint64) float64) *collector {
	if values == 0 {
		return nil
	}
	return &collector{Ordered: stat.NewOrdered(n, 50, 90, 95, 99, 100), value: value}
}

func (c *collector) add(key uint64) {
	c.Ordered.Add(key)
	c.sum += key
	if c.value != nil {
		c.sumOf += c.value(key)
	}
}

// collect adds the values of a column to a collector of each group that has one: that of group g of grouping p,
// which has n values.
func (a *Accumulator) collect(c *column, groupings []*grouping, collectorOf func(p, g int, n int64) *collector,
) [][]*collector {
	all := make([][]*collector, len(groupings))
	for p, of := range groupings {
		counts := make([]int64, len(of.groups))
		for tag, g := range of.groupIndex {
			if g != noGroup {
				counts[g] += c.count(tag)
			}
		}
		all[p] = make([]*collector, len(of.groups))
		for g, n := range counts {
			all[p][g] = collectorOf(p, g, n)
		}
	}
	for x := range c.sorted(a.spill) {
		for p, of := range groupings {
			if g := of.groupIndex[x.Tag]; g != noGroup && all[p][g] != nil {
				all[p][g].add(x.Key)
			}
		}
	}
	return all
}

func microsDistribution(c *collector) *Distribution { return integerDistribution(c, 1000) }

// integerDistribution returns the distribution of integers, in multiples of unit.
func integerDistribution(c *collector, unit int64) *Distribution {
	if c == nil {
		return nil
	}
	return newDistribution(c.Seen(), float64(c.sum)/float64(unit*c.Seen()), func(percent int64) float64 {
		return c.Quantile(percent, unit)
	})
}

// newDistribution has the quantiles q, by percent.
func newDistribution(n int64, mean float64, q func(percent int64) float64) *Distribution {
	return &Distribution{Count: n, Mean: mean, P50: q(50), P90: q(90), P95: q(95), P99: q(99), Max: q(100)}
}

func millisDistribution(c *collector) *Distribution {
	if c == nil {
		return nil
	}
	return newDistribution(c.Seen(), c.sumOf/float64(c.Seen()), func(percent int64) float64 {
		x, _ := c.QuantileAmong(percent, math.Float64frombits)
		return x
	})
}

func gapDistribution(gaps *stat.Histogram) *Distribution {
	if gaps.N() == 0 {
		return nil
	}
	sorted := gaps.Sorted()
	return newDistribution(gaps.N(), float64(gaps.Sum())/(1000*float64(gaps.N())), func(percent int64) float64 {
		return sorted.Quantile(percent, 1000)
	})
}
