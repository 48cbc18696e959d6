package metrics

import (
	"math"

	"blis/pkg/stat"
)

// latency is one kind of latency. key orders its values: µs, or the bits of a
// non-negative float64, which have the same order.
type latency struct {
	key          func(*row) (uint64, bool)
	distribution func(sorted []uint64) *Distribution
	field        func(*Group) **Distribution
	name         string
	// eligible counts the offered requests that can have this latency.
	eligible func(*totals) int64
	// promised is how it is recorded over the requests that it is promised to.
	promised
}

var latencies = []latency{
	{func(r *row) (uint64, bool) { return uint64(r.ttft), r.ttft != missing }, microsDistribution,
		func(g *Group) **Distribution { return &g.TTFT }, "ttft", offeredRequests,
		promised{millisOfMicros, func(o *Targeted) **TargetedLatency { return &o.TTFT }}},
	{func(r *row) (uint64, bool) {
		ms, ok := tpot(r.ttft, r.e2e, int64(r.output))
		return math.Float64bits(ms), ok
	}, millisDistribution, func(g *Group) **Distribution { return &g.TPOT }, "tpot",
		func(t *totals) int64 { return t.multiToken },
		promised{math.Float64frombits, func(o *Targeted) **TargetedLatency { return &o.TPOT }}},
	{func(r *row) (uint64, bool) { return uint64(r.e2e), r.e2e != missing }, microsDistribution,
		func(g *Group) **Distribution { return &g.E2E }, "e2e", offeredRequests,
		promised{millisOfMicros, func(o *Targeted) **TargetedLatency { return &o.E2E }}},
	{func(r *row) (uint64, bool) { return uint64(r.queue), r.queue != missing }, microsDistribution,
		func(g *Group) **Distribution { return &g.Queue }, "queue", offeredRequests, promised{}},
}

func offeredRequests(t *totals) int64 { return t.requests.Offered }

// fillDistributions sets the distributions of the whole run, whose totals are all, and of
// its groups. Each latency is sorted once; the groups receive their values in order.
func (a *Accumulator) fillDistributions(whole *Group, all *totals, groupings []*grouping) {
	n := 0
	for _, chunk := range a.rows {
		n += len(chunk)
	}
	memory, scratch, keys := make([]stat.Keyed, n), make([]stat.Keyed, n), make([]uint64, n)
	for _, m := range latencies {
		samples := memory[:0]
		for _, chunk := range a.rows {
			for i := range chunk {
				if k, ok := m.key(&chunk[i]); ok {
					samples = append(samples, stat.Keyed{Key: k, Tag: chunk[i].group})
				}
			}
		}
		samples = stat.SortKeyed(samples, scratch[:len(samples)])
		keys = keys[:len(samples)]
		for i := range samples {
			keys[i] = samples[i].Key
		}
		*m.field(whole) = m.withCoverage(m.distribution(keys), all)
		for _, p := range groupings {
			p.distribute(samples, keys, nil, func(g int, sorted []uint64) {
				*m.field(p.groups[g]) = m.withCoverage(m.distribution(sorted), &p.totals[g])
			})
		}
		if m.at != nil {
			a.fillTargeted(&m, samples, keys, append(groupings, a.wholeRun(whole)))
		}
	}
	for _, g := range allGroups(whole, groupings) {
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

func microsDistribution(sorted []uint64) *Distribution { return integerDistribution(sorted, 1000) }

// integerDistribution returns the distribution of integers, in multiples of unit.
func integerDistribution(sorted []uint64, unit int64) *Distribution {
	n := len(sorted)
	if n == 0 {
		return nil
	}
	var sum uint64
	for _, x := range sorted {
		sum += x
	}
	return newDistribution(int64(n), float64(sum)/float64(unit*int64(n)), func(percent int64) float64 {
		return stat.Quantile(sorted, percent, unit)
	})
}

// newDistribution has the quantiles q, by percent.
func newDistribution(n int64, mean float64, q func(percent int64) float64) *Distribution {
	return &Distribution{Count: n, Mean: mean, P50: q(50), P90: q(90), P95: q(95), P99: q(99), Max: q(100)}
}

func millisDistribution(sorted []uint64) *Distribution {
	n := len(sorted)
	if n == 0 {
		return nil
	}
	ms := make([]float64, n)
	for i, bits := range sorted {
		ms[i] = math.Float64frombits(bits)
	}
	return newDistribution(int64(n), stat.Mean(ms), func(percent int64) float64 {
		return stat.QuantileFloat(ms, percent)
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
