package metrics

import "blis/pkg/stat"

// Targeted holds the latencies of the offered requests whose class has a target for them, or of all
// requests if no class in the group has one. Each is absent where all requests of the group have such a
// target and were served: it then equals the Distribution.
type Targeted struct {
	TTFT *TargetedLatency `json:"ttft,omitempty"`
	TPOT *TargetedLatency `json:"tpot,omitempty"`
	E2E  *TargetedLatency `json:"e2e,omitempty"`
}

// TargetedLatency summarizes a latency in ms over Count requests, including calls that were not issued;
// Coverage is the share of them that has the latency. In percentiles the others count as infinite:
// a percentile that is infinite is absent. In Mean they count as long as the whole run.
type TargetedLatency struct {
	Count    int64    `json:"count"`
	Coverage float64  `json:"coverage"`
	Mean     float64  `json:"mean"`
	P50      *float64 `json:"p50,omitempty"`
	P90      *float64 `json:"p90,omitempty"`
	P95      *float64 `json:"p95,omitempty"`
	P99      *float64 `json:"p99,omitempty"`
	Max      *float64 `json:"max,omitempty"`
}

// promised is what a latency needs in Targeted; its fields are nil if no class can have a target for it.
type promised struct {
	// ms converts a key to ms.
	ms func(key uint64) float64
	at func(*Targeted) **TargetedLatency
}

func millisOfMicros(us uint64) float64 { return float64(us) / 1000 }

// wholeRun is a grouping with one group, the whole run.
func (a *Accumulator) wholeRun(whole *Group) *grouping {
	return &grouping{groups: []*Group{whole}, groupIndex: make([]int, len(a.totals))}
}

// fillTargeted sets the offered latencies of all groups. samples are sorted by key; keys has the same
// length and is scratch memory.
func (a *Accumulator) fillTargeted(m *latency, samples []stat.Keyed, keys []uint64, groupings []*grouping) {
	runUS := max(0, elapsed(a.from, a.until))
	for _, p := range groupings {
		included, asked, all := a.promisedTo(m, p)
		needed := false
		for g, n := range asked {
			needed = needed || n != all[g] || n != 0 && !(*m.field(p.groups[g])).covers(n)
		}
		if !needed {
			continue
		}
		p.distribute(samples, keys, included, func(g int, sorted []uint64) {
			if n := asked[g]; n > 0 && (n != all[g] || int64(len(sorted)) < n) {
				if p.groups[g].Targeted == nil {
					p.groups[g].Targeted = &Targeted{}
				}
				*m.at(p.groups[g].Targeted) = m.targeted(sorted, n, float64(runUS)/1000)
			}
		})
	}
}

// covers reports whether d has n values.
func (d *Distribution) covers(n int64) bool { return d != nil && d.Count == n }

// promisedTo returns which groups of the accumulator count for a latency, and for each group of p the
// number of offered requests and calls that were not issued that count, and that could have the latency.
func (a *Accumulator) promisedTo(m *latency, p *grouping) (included []bool, asked, all []int64) {
	included, asked, all = make([]bool, len(a.totals)), make([]int64, len(p.groups)), make([]int64, len(p.groups))
	for i := range a.totals {
		if g := p.groupIndex[i]; g != noGroup {
			t := &a.totals[i]
			n := m.eligible(t) + t.requests.NotIssued
			all[g] += n
			if included[i] = t.targets.Of(m.name) > 0; included[i] {
				asked[g] += n
			}
		}
	}
	for i := range a.totals {
		if g := p.groupIndex[i]; g != noGroup && asked[g] == 0 {
			included[i] = true
		}
	}
	for g := range asked {
		if asked[g] == 0 {
			asked[g] = all[g]
		}
	}
	return included, asked, all
}

// targeted summarizes n values of which those that exist are sorted. runMS is the duration of the run.
func (m *latency) targeted(sorted []uint64, n int64, runMS float64) *TargetedLatency {
	sum := float64(float64(n-int64(len(sorted))) * runMS)
	for _, key := range sorted {
		sum += m.ms(key)
	}
	quantile := func(percent int64) *float64 {
		x, ok := stat.QuantileAmong(n, percent, int64(len(sorted)), func(i int64) float64 { return m.ms(sorted[i]) })
		if !ok {
			return nil
		}
		return &x
	}
	return &TargetedLatency{Count: n, Coverage: float64(len(sorted)) / float64(n), Mean: sum / float64(n),
		P50: quantile(50), P90: quantile(90), P95: quantile(95), P99: quantile(99), Max: quantile(100)}
}
