package sim

import (
	"math"

	"blis/pkg/cluster"
	"blis/pkg/des"
	"blis/pkg/latency"
	"blis/pkg/stream"
)

// Requests wait for each other at least as long as a Lagrangian relaxation says. Time is divided into intervals, and in
// each of them every µs of a replica has a price. A request costs its E2E latency, and the prices of its shares of the
// steps that it is in. In the relaxation each request chooses by itself in which interval it ends and, for each token,
// with how many others it shares a step: with more of them the step is longer and the share smaller. The sum of the
// lowest costs is not above the sum of the costs in any schedule, in which the shares in an interval are at most the
// number of replicas times the interval. So that sum, minus the prices of these, is a lower bound of the sum of E2E
// latencies, for any prices and any intervals. A request that ends in an interval has waited until it begins, and one
// that ends after the last interval pays nothing.

// workItem is a request, or a session of them, as the bound sees it. Times are in µs.
type workItem struct {
	arrival float64
	// least is the shortest time from arrival to end, with tool calls and think times; decoding is the time alone from
	// first tokens to last tokens.
	least, decoding float64
	// Tokens to compute: those of prompts that cannot be cached, and steps after the first token.
	prefill, decode float64
}

// The prices that are tried: 0, and from a half to 16384 E2E µs for a µs of a replica.
const (
	firstPrice = 0.5
	nextPrice  = 1.189207115 // the fourth root of 2
	prices     = 62
	priceOne   = 5 // the index of about 1
)

// stepPrices are what the tokens of a step cost at each price. In a step with n requests that decode and p prompt
// tokens, of any n and p, what these cost is at most the time of the step for each of the n, plus its price. A request
// pays decode for a token, with its time, or share, without it; prefill is for each token of a prompt. No cost falls
// with the price.
type stepPrices struct{ price, prefill, decode, share [prices]float64 }

// stepCosts returns prices of the steps of deployment d with m, of which any may be used. In those of a linear model,
// a part of what does not depend on the tokens is divided among the slots, the rest among the tokens of the largest
// prompt. Of other models a step takes at least any mean of what its decoding sequences and what its prompt tokens take
// alone.
func stepCosts(d *cluster.Deployment, m latency.Model) (all []*stepPrices) {
	parts := [...]float64{0, 0.25, 0.5, 0.75, 1}
	slots := d.Engine.ActiveSeqs()
	if d.Latency.Model == "linear" {
		for _, part := range parts {
			all = append(all, linearPrices(d.Latency.BetaUS, float64(slots),
				float64(d.Engine.MaxNumBatchedTokens), part))
		}
		return all
	}
	time := make([]float64, slots)
	for n := range slots {
		k := int64(n + 1)
		time[n] = float64(m.Step(latency.Batch{Decode: k, Context: k}) - 1) // it is rounded
	}
	prefill := math.Inf(1)
	for k := int64(1); k <= int64(d.Engine.MaxNumBatchedTokens); k++ {
		us := float64(m.Step(latency.Batch{Prefill: k, Chunks: 1, Pairs: k}) - 1)
		prefill = min(prefill, us/float64(k))
	}
	for _, part := range parts {
		all = append(all, meanPrices(time, prefill, part))
	}
	return all
}

// linearPrices are those of steps that take beta[0] + beta[1]·p + beta[2]·n µs, of which the part of beta[0] is paid by
// prompt tokens.
func linearPrices(beta []float64, slots, budget, part float64) *stepPrices {
	s := newStepPrices()
	for k, price := range s.price {
		s.prefill[k] = float64(price * (beta[1] + float64(part*beta[0])/budget))
		s.share[k] = float64(price * (beta[2] + float64((1-part)*beta[0])/slots))
		s.decode[k] = math.Inf(1)
		// What is left for a token is least for no or all other slots without their time, and for no or all tokens.
		for n := 1.0; n <= slots; n++ {
			for _, others := range [...]float64{0, slots - n} {
				for _, p := range [...]float64{0, budget} {
					us := beta[0] + float64(beta[1]*p) + float64(beta[2]*(n+others))
					left := float64(price*us) - float64(others*s.share[k]) - float64(p*s.prefill[k])
					s.decode[k] = min(s.decode[k], us+left/n)
				}
			}
		}
	}
	return s
}

// meanPrices are those of steps that take at least time[n-1] with n sequences that decode, and prefill for each token
// of prompts; the prices are those of part of the latter and the rest of the former.
func meanPrices(time []float64, prefill, part float64) *stepPrices {
	s := newStepPrices()
	for k, price := range s.price {
		s.prefill[k] = float64(price * float64(part*prefill))
		s.decode[k], s.share[k] = math.Inf(1), math.Inf(1)
		for i, us := range time {
			share := float64(price*float64((1-part)*us)) / float64(i+1)
			s.decode[k], s.share[k] = min(s.decode[k], us+share), min(s.share[k], share)
		}
	}
	return s
}

func newStepPrices() *stepPrices {
	s := &stepPrices{}
	price := firstPrice
	for k := 1; k < prices; k++ {
		s.price[k] = price
		price = float64(price * nextPrice)
	}
	return s
}

// merge has the lower prices of two deployments.
func (s *stepPrices) merge(other *stepPrices) *stepPrices {
	all := *s
	for k := range all.price {
		all.prefill[k] = min(s.prefill[k], other.prefill[k])
		all.decode[k] = min(s.decode[k], other.decode[k])
		all.share[k] = min(s.share[k], other.share[k])
	}
	return &all
}

// intervals is the number of intervals with a price each.
const intervals = 16

// pricedTime are intervals, from edges[i] to edges[i+1], with indexes of prices.
type pricedTime struct {
	edges [intervals + 1]float64
	at    [intervals]int
}

// waiting is what items cost beyond their times alone if that many replicas are paid.
func (s *stepPrices) waiting(items []workItem, replicas float64, t *pricedTime) (sum float64) {
	for i, k := range t.at {
		sum -= float64(s.price[k] * float64(replicas*(t.edges[i+1]-t.edges[i])))
	}
	for i := range items {
		sum += s.extra(&items[i], t)
	}
	return sum
}

// extra is what an item costs beyond its time alone: the least over the intervals in which it may end.
func (s *stepPrices) extra(o *workItem, t *pricedTime) float64 {
	soonest := o.arrival + o.least
	least := max(0, t.edges[intervals]-soonest)
	lowest := prices
	for i, k := range t.at {
		waited := t.edges[i] - soonest
		if waited >= least {
			break
		}
		if t.edges[i+1] <= o.arrival {
			continue
		}
		lowest = min(lowest, k)
		if t.edges[i+1] <= soonest {
			continue
		}
		prompt, share := float64(s.prefill[lowest]*o.prefill), float64(o.decode*s.share[lowest])
		cost := prompt + max(share, float64(o.decode*s.decode[lowest])-o.decoding)
		least = min(least, max(cost, waited+prompt+share))
	}
	return least
}

// best is the highest waiting that a search finds, over ends of the intervals and prices that first are the same and
// then fall to zero.
func (s *stepPrices) best(items []workItem, replicas float64) (most float64) {
	first, last, work := items[0].arrival, items[len(items)-1].arrival, 0.0
	for i := range items {
		work += (float64(items[i].prefill*s.prefill[priceOne]) + float64(items[i].decode*s.share[priceOne])) / replicas
	}
	span := max(last-first, work)
	best := &pricedTime{}
	for _, more := range [...]float64{0, 1.0 / 8, 1.0 / 4, 1.0 / 2, 1} {
		for _, falls := range [...]int{0, intervals / 4, intervals / 2, intervals} {
			t := &pricedTime{}
			for i := range t.edges {
				t.edges[i] = first + float64((last-first+float64(more*span))*float64(i)/intervals)
			}
			if us := s.highest(items, replicas, t, falls); us > most {
				most, best = us, t
			}
		}
	}
	if most > 0 {
		most = s.climb(items, replicas, best, most)
	}
	return most
}

// highest finds the first price for which waiting is highest, if prices fall to zero in the last intervals; it is
// concave in the price.
func (s *stepPrices) highest(items []workItem, replicas float64, t *pricedTime, falls int) float64 {
	at := func(first int) float64 {
		for i := range t.at {
			t.at[i] = first
			if left := intervals - i; left <= falls {
				t.at[i] = s.below(float64(s.price[first]*(float64(left)-0.5)) / float64(falls))
			}
		}
		return s.waiting(items, replicas, t)
	}
	lo, hi := 0, prices-1
	for lo < hi {
		if mid := (lo + hi) / 2; at(mid) < at(mid+1) {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return at(lo)
}

// below is the index of the highest price that is not above another one.
func (s *stepPrices) below(price float64) int {
	k := 0
	for k+1 < prices && s.price[k+1] <= price {
		k++
	}
	return k
}

// climb changes the price of one interval, or those of all up to it, as long as that raises waiting.
func (s *stepPrices) climb(items []workItem, replicas float64, t *pricedTime, most float64) float64 {
	for _, step := range [...]int{4, 1} {
		for improved := true; improved; {
			improved = false
			for i := range 2 * intervals {
				for _, by := range [...]int{step, -step} {
					next := *t
					from, to := i%intervals, i%intervals
					if i >= intervals {
						from = 0
					}
					for k := from; k <= to; k++ {
						next.at[k] = min(prices-1, max(0, next.at[k]+by))
					}
					if us := s.waiting(items, replicas, &next); us > most+1 {
						*t, most, improved = next, us, true
					}
				}
			}
		}
	}
	return most
}

// Items are divided in halves so often at most, and as long as a half has as many.
const (
	maxHalvings = 3
	minItems    = 64
)

// total is the highest sum of waiting over a division of the items, which are in the order of arrival.
func (s *stepPrices) total(items []workItem, replicas float64, halvings int) float64 {
	if len(items) == 0 {
		return 0
	}
	whole, half := s.best(items, replicas), len(items)/2
	if halvings == 0 || half < minItems {
		return whole
	}
	return max(whole, s.total(items[:half], replicas, halvings-1)+s.total(items[half:], replicas, halvings-1))
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
