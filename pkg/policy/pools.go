package policy

import (
	"cmp"
	"math"
	"slices"
	"strconv"
)

var poolsParams = []Param{
	{Name: "by", Kind: Choose, Choices: []string{"input_tokens", "slo_class", "tenant"}, Default: "input_tokens",
		Doc: "what decides the pool of a request"},
	{Name: "shares", Kind: Table, Keys: "least number of prompt tokens, SLO class or tenant", Min: 1e-6, Max: 1,
		Search: [2]float64{0.1, 0.9}, Default: map[string]float64{"4096": 0.25},
		Doc: "share of the replicas that is the pool of each; other requests use the other replicas, or all if" +
			" there are none"},
	{Name: "spill_at", Kind: Number, Unit: "requests", Min: 1, Max: 1e9, Search: [2]float64{4, 256}, Default: auto,
		Auto: true,
		Doc:  "requests in flight at each replica of a pool from which its requests use all replicas; auto: never"},
	tieParam,
}

// pools divides the replicas into consecutive ranges, one for each share in the order of names (of tokens: of numbers),
// and one for all other requests. A request goes to the replica of its pool with the fewest requests in flight.
type pools struct {
	needs
	by    string
	list  []pool
	total float64 // of all shares
	spill float64 // NaN for never
	ties  ties
}

// pool has the replicas between two shares of all.
type pool struct {
	name     string
	tokens   int64 // of the shortest prompt; only by input_tokens
	from, to float64
}

func newPools(b *builder, s *Spec) Router {
	v := b.params(s, poolsParams)
	p := &pools{needs: needs(NeedRequest), by: v.choice("by"), spill: v.number("spill_at"), ties: b.ties(v)}
	shares := v.table("shares")
	for _, name := range sortedKeys(shares) {
		x := pool{name: name}
		if p.by == "input_tokens" {
			var err error
			if x.tokens, err = strconv.ParseInt(name, 10, 64); err != nil || x.tokens < 1 {
				b.fail("params.shares."+name, "the key must be a number of prompt tokens, at least 1")
			}
		}
		p.list = append(p.list, x)
	}
	slices.SortStableFunc(p.list, func(x, y pool) int { return cmp.Compare(x.tokens, y.tokens) })
	for i := range p.list {
		p.list[i].from = p.total
		p.total += shares[p.list[i].name]
		p.list[i].to = p.total
	}
	if len(p.list) == 0 || p.total > 1+1e-9 {
		b.fail("params.shares", "must have at least one share, and at most 1 in sum")
	}
	return p
}

func (p *pools) Route(v *View) Choice {
	from, to, name := p.rangeOf(v)
	c := p.least(v, from, to)
	if c.Score >= p.spill {
		name = "all replicas: the pool is full"
		c = p.least(v, 0, len(v.Replicas))
	}
	c.Reason = name
	return c
}

// rangeOf is the range of candidates of a request's pool.
func (p *pools) rangeOf(v *View) (from, to int, name string) {
	r, n := v.Request, len(v.Replicas)
	at := -1
	for i := range p.list {
		x := &p.list[i]
		isIn := p.by == "input_tokens" && r.InputTokens >= x.tokens ||
			p.by == "slo_class" && r.Class == x.name || p.by == "tenant" && r.Tenant == x.name
		if isIn {
			at = i
		}
	}
	if at >= 0 {
		from, to = boundary(p.list[at].from, n), boundary(p.list[at].to, n)
		if from == to { // the pools are more than the replicas
			from = min(from, n-1)
			to = from + 1
		}
		return from, to, "pool"
	}
	if from = boundary(p.total, n); from >= n {
		return 0, n, "no pool"
	}
	return from, n, "no pool"
}

// boundary is how many of n replicas a share is, rounded.
func boundary(x float64, n int) int { return min(n, int(math.Round(x*float64(n)))) }

// least is the candidate of a range with the fewest requests in flight.
func (p *pools) least(v *View, from, to int) Choice {
	best, least, n := from, v.Replicas[from].Inflight, 0
	for i := from; i < to; i++ {
		x := v.Replicas[i].Inflight
		if x < least {
			best, least, n = i, x, 0
		}
		if x == least {
			n++
		}
		v.Trace.RecordLoad(i, float64(x))
	}
	c, lowest := Choice{Candidate: best, Score: float64(least)}, least
	p.ties.settle(&c, v, n, func(i int) bool { return i < to && v.Replicas[i].Inflight == lowest })
	return c
}

func (p *pools) Clone() Router {
	c := *p
	return &c
}
