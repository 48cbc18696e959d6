package policy

import (
	"math"
	"slices"
)

// routers are the routing policies.
func routers() table[Router] {
	type kind = policyKind[Router]
	return table[Router]{
		{Name: "round-robin", Doc: "each replica in turn", Value: kind{build: newRoundRobin}},
		{Name: "random", Doc: "a random replica", Value: kind{build: newRandom}},
		{Name: "least-loaded", Doc: "the replica with the fewest requests in flight",
			Value: kind{params: leastLoadedParams, build: newLeastLoaded}},
		{Name: "power-of-two", Doc: "of two random replicas, the one with fewer requests in flight",
			Value: kind{params: leastLoadedParams, build: newPowerOfTwo}},
		{Name: "weighted", Doc: "highest weighted sum of scores; one weight parameter for each scorer",
			Value: kind{params: weightedParams(), build: newWeighted}},
		{Name: "llm-d",
			Doc:   "a scheduling profile of llm-d (of): filters, weighted scorers and a picker",
			Value: kind{composed: true, build: newProfile}},
		{Name: "dynamo-kv",
			Doc:   "Dynamo's KV router: lowest cost of prefills, less what is cached, and of active blocks",
			Value: kind{params: dynamoParams, build: newDynamoKV}},
		{Name: "prefix-affinity",
			Doc:   "the replica that was sent the longest matching prefix, unless it is too busy; else least-loaded",
			Value: kind{params: prefixAffinityParams, build: newPrefixAffinity}},
		{Name: "session-affinity", Doc: "the replica of the session's last request; else least-loaded",
			Value: kind{params: tieParams, build: newSessionAffinity}},
		{Name: "pools",
			Doc:   "least-loaded in the request's pool of replicas, by prompt length, SLO class or tenant",
			Value: kind{params: poolsParams, build: newPools}},
		{Name: "expression", Doc: "CEL: highest score of the candidates that pass filter; of all if none passes",
			Value: kind{params: tieParams, composed: true, build: newRouteExpression}},
		{Name: "starlark", Doc: "program in Starlark: score(…), and filter(…), of a candidate, as of expression",
			Value: kind{params: tieParams, composed: true, build: newRouteProgram}},
		{Name: "tree", Doc: "decision tree (root) whose leaves are policies, or numbers that score each candidate",
			Value: kind{params: tieParams, composed: true, build: newRouteTree}},
		{Name: "filter", Doc: "another policy (use) among the candidates that pass filter; among all if none passes",
			Value: kind{composed: true, passesTie: true, build: newFilter}},
		{Name: "always-busiest",
			Doc:   "the replica with the most requests in flight; of several, the lowest index",
			Value: kind{pathological: true, build: newAlwaysBusiest}},
	}
}

var leastLoadedParams = []Param{
	{Name: "load", Kind: Choose, Choices: []string{"inflight", "snapshot"}, Default: "inflight",
		Doc: "what to compare: the router's count of requests in flight, or the replicas' reported running + queued"},
	tieParam,
}

// loadMetric is the load by which replicas are compared.
type loadMetric struct {
	needs
	snapshot bool
}

func newLoad(v values) loadMetric {
	if v.choice("load") == "snapshot" {
		return loadMetric{needs(NeedQueueDepth | NeedRunning), true}
	}
	return loadMetric{}
}

func (l *loadMetric) value(r *Replica) int32 {
	if l.snapshot {
		return r.Running + r.QueueDepth
	}
	return r.Inflight
}

// leastLoad is the reason of a choice by load.
const leastLoad = "least load"

// leastLoaded returns the candidate with the least load.
func (l *loadMetric) leastLoaded(v *View, t *ties) Choice {
	if x := v.extremes(); x != nil {
		least, tied := l.lowest(x)
		c := Choice{Score: float64(least), Reason: leastLoad}
		if t.choose(&c, v, tied); v.Trace != nil {
			idle := func(r *Replica) float64 { return -float64(l.value(r)) }
			v.Trace.recordBest(x.best(v.Trace.Most, tied, nil, idle), c.Candidate)
			for _, i := range v.Trace.Best {
				v.Trace.RecordLoad(int(i), float64(l.value(&v.Replicas[i])))
			}
		}
		return c
	}
	best, least, n := 0, l.value(&v.Replicas[0]), 0
	for i := range v.Replicas {
		x := l.value(&v.Replicas[i])
		if x < least {
			best, least, n = i, x, 0
		}
		if x == least {
			n++
		}
		v.Trace.RecordLoad(i, float64(x))
	}
	c, lowest := Choice{Candidate: best, Score: float64(least), Reason: leastLoad}, least
	t.settle(&c, v, n, func(i int) bool { return l.value(&v.Replicas[i]) == lowest })
	return c
}

// lowest returns the least load of all replicas, and those that have it.
func (l *loadMetric) lowest(x *Extremes) (least int32, tied []int32) {
	least, tied = math.MaxInt32, x.tied[:0]
	for b := range x.blocks {
		if l.value(&x.blocks[b].low) > least {
			continue
		}
		for i := range x.block(b) {
			load := l.value(&x.replicas[b*blockReplicas+i])
			if load < least {
				least, tied = load, tied[:0]
			}
			if load == least {
				tied = append(tied, int32(b*blockReplicas+i))
			}
		}
	}
	x.tied = tied
	return least, tied
}

// roundRobin chooses the candidate whose last turn is longest ago, so that turns are fair also
// where requests have different candidates.
type roundRobin struct {
	noNeeds
	// lastTurn is the number of each replica's last turn, 0 for none.
	lastTurn []int64
	turn     int64
	// first and n are the candidates of all turns, if these had the same n replicas, from number first on.
	first, n int32
	mixed    bool
}

func newRoundRobin(b *builder, _ *Spec) Router {
	// Replicas that come to one of several deployments have numbers out of the order of candidates.
	return &roundRobin{lastTurn: make([]int64, b.env.Replicas),
		mixed: len(b.env.Models) > 1 && b.env.Candidates > b.env.Replicas}
}

func (r *roundRobin) Route(v *View) Choice {
	r.reserve(v.Replicas)
	next := r.next(v.Replicas)
	r.turn++
	r.lastTurn[v.Replicas[next].Index] = r.turn
	return Choice{Candidate: next, Reason: "its turn"}
}

// reserve makes room for replicas that were added: the last candidate is the newest of its deployment.
func (r *roundRobin) reserve(candidates []Replica) {
	if n := len(candidates); !r.mixed && int(candidates[n-1].Index) < len(r.lastTurn) {
		return
	}
	for i := range candidates {
		for int(candidates[i].Index) >= len(r.lastTurn) {
			r.lastTurn = append(r.lastTurn, 0)
		}
	}
}

// next returns the candidate whose last turn is longest ago. Where all turns had the same candidates, that is the one
// after the last.
func (r *roundRobin) next(candidates []Replica) int {
	n := int32(len(candidates))
	first := candidates[0].Index
	if r.turn == 0 {
		r.first, r.n = first, n
	}
	r.mixed = r.mixed || first != r.first || n != r.n || candidates[n-1].Index != first+n-1
	if !r.mixed {
		return int(r.turn % int64(n))
	}
	next := 0
	for i := range candidates {
		if r.lastTurn[candidates[i].Index] < r.lastTurn[candidates[next].Index] {
			next = i
		}
	}
	return next
}

func (r *roundRobin) Clone() Router {
	c := *r
	c.lastTurn = slices.Clone(r.lastTurn)
	return &c
}

type random struct {
	noNeeds
	draws draws
}

func newRandom(b *builder, _ *Spec) Router { return &random{draws: b.draws()} }

func (r *random) Route(v *View) Choice {
	d := r.draws.of(v.Draw)
	return Choice{Candidate: d.intN(len(v.Replicas)), Reason: "at random"}
}

func (r *random) Clone() Router {
	c := *r
	return &c
}

type leastLoaded struct {
	loadMetric
	ties ties
}

func newLeastLoaded(b *builder, s *Spec) Router {
	v := b.params(s, leastLoadedParams)
	return &leastLoaded{newLoad(v), b.ties(v)}
}

func (l *leastLoaded) Route(v *View) Choice { return l.leastLoaded(v, &l.ties) }

func (l *leastLoaded) Clone() Router {
	c := *l
	return &c
}

// powerOfTwo compares two random candidates (Mitzenmacher, "The power of two choices in randomized
// load balancing", 2001).
type powerOfTwo struct {
	loadMetric
	draws draws
	ties  ties
}

func newPowerOfTwo(b *builder, s *Spec) Router {
	v := b.params(s, leastLoadedParams)
	return &powerOfTwo{newLoad(v), b.draws(), b.ties(v)}
}

func (p *powerOfTwo) Route(v *View) Choice {
	n := len(v.Replicas)
	if n == 1 {
		return p.leastLoaded(v, &p.ties)
	}
	r := p.draws.of(v.Draw)
	a, b := r.intN(n), r.intN(n-1)
	if b >= a {
		b++
	}
	v.Trace.RecordLoad(a, float64(p.value(&v.Replicas[a])))
	v.Trace.RecordLoad(b, float64(p.value(&v.Replicas[b])))
	la, lb := p.value(&v.Replicas[a]), p.value(&v.Replicas[b])
	c := Choice{Candidate: a, Score: float64(min(la, lb)), Reason: "less load of two"}
	switch {
	case lb < la:
		c.Candidate = b
	case lb == la:
		c.Candidate = min(a, b)
		p.ties.settle(&c, v, 2, func(i int) bool { return i == a || i == b })
	}
	return c
}

func (p *powerOfTwo) Clone() Router {
	c := *p
	return &c
}

type alwaysBusiest struct{ noNeeds }

func newAlwaysBusiest(*builder, *Spec) Router { return alwaysBusiest{} }

func (alwaysBusiest) Route(v *View) Choice {
	busiest := 0
	for i := range v.Replicas {
		v.Trace.recordScore(i, float64(v.Replicas[i].Inflight))
		if v.Replicas[i].Inflight > v.Replicas[busiest].Inflight {
			busiest = i
		}
	}
	return Choice{Candidate: busiest, Score: float64(v.Replicas[busiest].Inflight), Reason: "most load"}
}

func (a alwaysBusiest) Clone() Router { return a }
