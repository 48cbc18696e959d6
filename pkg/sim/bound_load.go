package sim

import (
	"math"

	"blis/pkg/cluster"
	"blis/pkg/des"
	"blis/pkg/latency"
	"blis/pkg/stream"
)

// Requests wait for each other at least as long as a Lagrangian relaxation says. In an interval every µs of a replica
// has a price. A request costs its E2E latency, and the price of its share of the steps that it is in. In the
// relaxation each request chooses by itself, for each token, with how many others it shares a step: with more of them
// the step is longer and the share smaller. The sum of the lowest costs is not above the sum of the costs in any
// schedule, in which the shares in the interval are at most the number of replicas times the interval. So that sum,
// minus the price of these, is a lower bound of the sum of E2E latencies, for any price and any interval. A request
// that ends after the interval may pay nothing, but has waited until then.

// workItem is a request, or a session of them, as the bound sees it. Times are in µs.
type workItem struct {
	arrival float64
	// least is the shortest time from arrival to end, with tool calls and think times; decoding is the time alone from
	// first tokens to last tokens.
	least, decoding float64
	// Tokens to compute: those of prompts that cannot be cached, and steps after the first token.
	prefill, decode float64
}

// stepCost bounds steps from below: one with n decoding sequences takes at least time[n-1], and at least share[n-1] for
// each of these and prefill for each token of prompts.
type stepCost struct {
	time, share []float64
	prefill     float64
}

// stepCosts returns bounds of the steps of deployment d with m. Those of a linear model add up; of others a step takes
// at least any mean of what its decoding sequences and what its prompt tokens take alone.
func stepCosts(d *cluster.Deployment, m latency.Model) (all []stepCost) {
	slots := d.Engine.MaxNumSeqs
	alone := stepCost{time: make([]float64, slots)}
	for n := range slots {
		k := int64(n + 1)
		alone.time[n] = float64(m.Step(latency.Batch{Decode: k, Context: k}) - 1) // it is rounded
	}
	prefill, weights := 0.0, []float64{1}
	if d.Latency.Model == "linear" {
		prefill = d.Latency.BetaUS[1]
	} else {
		prefill = math.Inf(1)
		for k := int64(1); k <= int64(d.Engine.MaxNumBatchedTokens); k++ {
			us := float64(m.Step(latency.Batch{Prefill: k, Chunks: 1, Pairs: k}) - 1)
			prefill = min(prefill, us/float64(k))
		}
		weights = []float64{1, 0.75, 0.5, 0.25, 0}
	}
	for _, w := range weights {
		c := stepCost{time: alone.time, share: make([]float64, slots), prefill: prefill}
		if len(weights) > 1 {
			c.prefill = float64(prefill * (1 - w))
		}
		for n := range slots {
			c.share[n] = float64(w*alone.time[n]) / float64(n+1)
		}
		all = append(all, c)
	}
	return all
}

// merge is a bound of the steps of two deployments.
func (c stepCost) merge(other stepCost) stepCost {
	n := max(len(c.time), len(other.time))
	all := stepCost{time: make([]float64, n), share: make([]float64, n), prefill: min(c.prefill, other.prefill)}
	at := func(x []float64, i int) float64 {
		if i < len(x) {
			return x[i]
		}
		return math.Inf(1) // it has fewer batch slots
	}
	for i := range n {
		all.time[i] = min(at(c.time, i), at(other.time, i))
		all.share[i] = min(at(c.share, i), at(other.share, i))
	}
	return all
}

// The prices that are tried, in E2E µs for a µs of a replica: from a half to 16384.
const (
	firstPrice = 0.5
	nextPrice  = 1.189207115 // the fourth root of 2
	prices     = 61
	priceOne   = 4 // the index of about 1
)

// priced is a stepCost at each price: what a prompt token costs, and a decoding step, in all and without its time.
type priced struct{ price, prefill, decode, share [prices]float64 }

func (c stepCost) priced() *priced {
	p := &priced{}
	price := firstPrice
	for k := range prices {
		p.price[k], p.prefill[k] = price, float64(price*c.prefill)
		p.decode[k], p.share[k] = math.Inf(1), math.Inf(1)
		for i := range c.time {
			share := float64(price * c.share[i])
			p.decode[k], p.share[k] = min(p.decode[k], c.time[i]+share), min(p.share[k], share)
		}
		price = float64(price * nextPrice)
	}
	return p
}

// extra is what an item costs at price k beyond its time alone.
func (p *priced) extra(o *workItem, k int) float64 {
	return float64(p.prefill[k]*o.prefill) +
		max(float64(o.decode*p.share[k]), float64(o.decode*p.decode[k])-o.decoding)
}

// waiting is what items, in the order of arrival, cost at price k beyond their times alone if that many replicas are
// paid from the first arrival until a time.
func (p *priced) waiting(items []workItem, replicas float64, until float64, k int) float64 {
	sum := float64(-p.price[k] * float64(replicas*(until-items[0].arrival)))
	for i := range items {
		o := &items[i]
		sum += min(p.extra(o, k), max(0, until-o.arrival-o.least))
	}
	return sum
}

// best is the highest waiting for any price, which is concave in the price, and for some ends of the interval.
func (p *priced) best(items []workItem, replicas float64) (most float64) {
	first, last, work := items[0].arrival, items[len(items)-1].arrival, 0.0
	for i := range items { // at the price 1
		work += (float64(items[i].prefill*p.prefill[priceOne]) + float64(items[i].decode*p.share[priceOne])) / replicas
	}
	span := max(last-first, work)
	for _, more := range [...]float64{0, 1.0 / 16, 1.0 / 8, 1.0 / 4, 1.0 / 2, 1, 2} {
		until := last + float64(more*span)
		lo, hi := 0, prices-1
		for lo < hi {
			mid := (lo + hi) / 2
			if p.waiting(items, replicas, until, mid) < p.waiting(items, replicas, until, mid+1) {
				lo = mid + 1
			} else {
				hi = mid
			}
		}
		most = max(most, p.waiting(items, replicas, until, lo))
	}
	return most
}

// minItems is the number of items below which an interval is not divided.
const minItems = 128

// total is the highest sum of waiting over a division of the items into intervals.
func (p *priced) total(items []workItem, replicas float64) float64 {
	if len(items) == 0 {
		return 0
	}
	whole, half := p.best(items, replicas), len(items)/2
	if len(items) < minItems {
		return whole
	}
	return max(whole, p.total(items[:half], replicas)+p.total(items[half:], replicas))
}

// longestPath is the longest path through a session: model calls, which take these times, tools and think times.
func longestPath(v *stream.Session, calls []des.Time) (most des.Time) {
	ends := make([]des.Time, len(v.Steps))
	for k := range v.Steps {
		step := &v.Steps[k]
		for _, before := range step.After {
			ends[k] = max(ends[k], ends[before])
		}
		ends[k] += step.DelayUS
		if step.Tool != "" {
			ends[k] += step.LatencyUS
		} else {
			ends[k] += calls[k]
		}
		most = max(most, ends[k])
	}
	return most
}
