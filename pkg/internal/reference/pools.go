package reference

import (
	"math"
	"math/rand/v2"
)

// Pools divide the replicas by the length of prompts. Prompts of at least Bounds[i] tokens, of the largest such bound,
// go to the replicas from Shares[0]+…+Shares[i-1] to Shares[0]+…+Shares[i] of all, rounded, at least one. Shorter ones
// go to the others, or to all if there are none. A request of a pool whose replicas all have SpillAt requests in
// flight goes to any replica; 0 is never.
type Pools struct {
	Bounds  []int
	Shares  []float64
	SpillAt int
}

// pooled chooses the replica with the fewest requests in flight of the pool of a request.
func (r *router) pooled(q *request) int {
	n, member := len(r.inflight), map[int]bool{}
	first, inAll, inPool := 0.0, 0.0, false
	for i, bound := range r.config.Pools.Bounds {
		if q.Input >= bound {
			first, inPool = inAll, true
			clear(member)
			for k := range n {
				from, to := math.Round(inAll*float64(n)), math.Round((inAll+r.config.Pools.Shares[i])*float64(n))
				member[k] = float64(k) >= from && float64(k) < to
			}
		}
		inAll += r.config.Pools.Shares[i]
	}
	if !inPool {
		first = inAll
		for k := range n {
			member[k] = float64(k) >= math.Round(inAll*float64(n))
		}
	}
	if r.highest(member) == math.Inf(-1) && inPool {
		member[min(int(math.Round(first*float64(n))), n-1)] = true
	}
	limit := r.config.Pools.SpillAt
	if full := limit > 0 && -r.highest(member) >= float64(limit); r.highest(member) == math.Inf(-1) || full {
		return r.best(r.loads(false))
	}
	values := r.loads(false)
	for k := range values {
		if !member[k] {
			values[k] = math.Inf(-1)
		}
	}
	return r.best(values)
}

// highest is the highest value of the members, minus infinity without any.
func (r *router) highest(member map[int]bool) float64 {
	x := math.Inf(-1)
	for k, v := range r.loads(false) {
		if member[k] {
			x = max(x, v)
		}
	}
	return x
}

// RandomPools draws a case like Random with several replicas and pools.
func RandomPools(seed uint64) (Config, []Request) {
	c, requests := Random(seed)
	d := &generator{Rand: rand.New(rand.NewPCG(seed, 0x706f6f6c))}
	c.Replicas, c.Routing, c.Scorers, c.Picker = pick(d, 2, 3, 4, 8), "pools", nil, ""
	c.Tie = pick(d, "random", "random", "first", "least-inflight")
	c.Pools = Pools{SpillAt: pick(d, 0, 0, 1, 2, 4)}
	longest := 1
	for i := range requests {
		longest = max(longest, requests[i].Input)
	}
	bound, left := 0, 1.0
	for range d.between(1, 3) {
		bound += d.between(1, max(1, longest/2))
		share := left * pick(d, 0.02, 0.25, 0.4, 0.75, 1)
		if share <= 0 {
			break
		}
		c.Pools.Bounds, c.Pools.Shares = append(c.Pools.Bounds, bound), append(c.Pools.Shares, share)
		left -= share
	}
	return c, requests
}
