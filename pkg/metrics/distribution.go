package metrics

import (
	"math"

	"blis/pkg/stat"
)

// measure is one time that requests have. key orders it: µs, or the bits of a
// float64, which for numbers that are not negative are in the same order.
type measure struct {
	key     func(*row) (uint64, bool)
	of      func(sorted []uint64) *Distribution
	branch  func(*Group) **Distribution
	written string
	// could have it of what was offered.
	could func(*totals) int64
}

var measures = []measure{
	{func(r *row) (uint64, bool) { return uint64(r.ttft), r.ttft != absent }, ofMicros,
		func(g *Group) **Distribution { return &g.TTFT }, "ttft", offered},
	{func(r *row) (uint64, bool) {
		ms, ok := tpot(r.ttft, r.e2e, int64(r.output))
		return math.Float64bits(ms), ok
	}, ofMillis, func(g *Group) **Distribution { return &g.TPOT }, "tpot", func(t *totals) int64 { return t.several }},
	{func(r *row) (uint64, bool) { return uint64(r.e2e), r.e2e != absent }, ofMicros,
		func(g *Group) **Distribution { return &g.E2E }, "e2e", offered},
	{func(r *row) (uint64, bool) { return uint64(r.queue), r.queue != absent }, ofMicros,
		func(g *Group) **Distribution { return &g.Queue }, "queue", offered},
}

func offered(t *totals) int64 { return t.requests.Offered }

// distribute fills in the distributions of the whole, whose totals are all, and of its
// parts. Each measure is sorted once, and dealt out sorted.
func (a *Accumulator) distribute(whole *Group, all *totals, parts []*part) {
	n := 0
	for _, chunk := range a.rows {
		n += len(chunk)
	}
	memory, scratch, keys := make([]stat.Tagged, n), make([]stat.Tagged, n), make([]uint64, n)
	for _, m := range measures {
		samples := memory[:0]
		for _, chunk := range a.rows {
			for i := range chunk {
				if k, ok := m.key(&chunk[i]); ok {
					samples = append(samples, stat.Tagged{Key: k, Tag: chunk[i].group})
				}
			}
		}
		samples = stat.SortTagged(samples, scratch[:len(samples)])
		keys = keys[:len(samples)]
		for i := range samples {
			keys[i] = samples[i].Key
		}
		*m.branch(whole) = m.covered(m.of(keys), all)
		for _, p := range parts {
			p.deal(samples, keys, &m)
		}
	}
	for _, g := range groupsOf(whole, parts) {
		if g.E2E != nil && g.E2E.P50 > 0 {
			blowup := g.E2E.P99 / g.E2E.P50
			g.TailBlowup = &blowup
		}
	}
}

// covered says how much of what was offered is in the distribution, nil if there is
// none.
func (m *measure) covered(d *Distribution, t *totals) *Distribution {
	if d != nil {
		d.Coverage = ratio(d.Count, m.could(t)+t.requests.Lost)
	}
	return d
}

func ofMicros(sorted []uint64) *Distribution { return ofWhole(sorted, 1000) }

// ofWhole is the distribution of whole numbers, in units of unit.
func ofWhole(sorted []uint64, unit int64) *Distribution {
	n := len(sorted)
	if n == 0 {
		return nil
	}
	var sum uint64
	for _, x := range sorted {
		sum += x
	}
	q := func(percent int64) float64 { return stat.Quantile(sorted, percent, unit) }
	return &Distribution{Count: int64(n), Mean: float64(sum) / float64(unit*int64(n)), P50: q(50), P90: q(90), P95: q(95), P99: q(99), Max: q(100)}
}

func ofMillis(sorted []uint64) *Distribution {
	n := len(sorted)
	if n == 0 {
		return nil
	}
	ms := make([]float64, n)
	for i, bits := range sorted {
		ms[i] = math.Float64frombits(bits)
	}
	q := func(percent int64) float64 { return stat.QuantileFloat(ms, percent) }
	return &Distribution{Count: int64(n), Mean: stat.Mean(ms), P50: q(50), P90: q(90), P95: q(95), P99: q(99), Max: q(100)}
}

func ofGaps(gaps *stat.Histogram) *Distribution {
	if gaps.N() == 0 {
		return nil
	}
	sorted := gaps.Sorted()
	q := func(percent int64) float64 { return sorted.Quantile(percent, 1000) }
	return &Distribution{Count: gaps.N(), Mean: float64(gaps.Sum()) / (1000 * float64(gaps.N())), P50: q(50), P90: q(90), P95: q(95), P99: q(99), Max: q(100)}
}
