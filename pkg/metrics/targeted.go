package metrics

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

// collectTargeted collects the offered latencies of the groups of p. counts are the values of each group of the
// Accumulator.
func (a *Accumulator) collectTargeted(c *collectors, m *latency, p *grouping, counts []int64) {
	runMS := float64(max(0, elapsed(a.from, a.until))) / 1000
	included, asked, all := a.promisedTo(m, p)
	needed := false
	for g, n := range p.sums(counts, nil) {
		needed = needed || asked[g] != all[g] || asked[g] != 0 && asked[g] != n
	}
	if !needed {
		return
	}
	of := make([]*collector, len(p.groups))
	for g, known := range p.sums(counts, included) {
		n := asked[g]
		if n == 0 || n == all[g] && known >= n {
			continue
		}
		x := newCollector(n, known)
		x.toMS, x.ms, of[g] = m.ms, float64(float64(n-known)*runMS), x
		c.results = append(c.results, func() {
			if p.groups[g].Targeted == nil {
				p.groups[g].Targeted = &Targeted{}
			}
			*m.at(p.groups[g].Targeted) = x.targeted()
		})
	}
	c.addTo(p, included, of)
}

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

// targeted summarizes the values; ms starts with those that do not exist.
func (c *collector) targeted() *TargetedLatency {
	return &TargetedLatency{Count: c.of, Coverage: float64(c.known) / float64(c.of), Mean: c.ms / float64(c.of),
		P50: c.quantile(50), P90: c.quantile(90), P95: c.quantile(95), P99: c.quantile(99), Max: c.quantile(100)}
}
