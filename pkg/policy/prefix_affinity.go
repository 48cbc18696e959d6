package policy

var prefixAffinityParams = []Param{
	{Name: "min_match", Kind: Number, Min: 0, Max: 1, Search: [2]float64{0, 0.9}, Default: 0.1,
		Doc: "minimum share of the prompt's full blocks that were sent to the replica"},
	{Name: "max_imbalance", Kind: Number, Min: 0, Max: 1e6, Search: [2]float64{1, 5}, Default: 2.0,
		Doc: "the replica may have at most max_imbalance * mean + 4 requests in flight"},
	tieParam,
}

type prefixAffinityRouter struct {
	needs
	loadMetric             loadMetric
	ties                   ties
	minMatch, maxImbalance float64
}

func newPrefixAffinity(b *builder, s *Spec) Router {
	v := b.params(s, prefixAffinityParams)
	return &prefixAffinityRouter{needs: needs(NeedShadow), ties: b.ties(v), minMatch: v.number("min_match"),
		maxImbalance: v.number("max_imbalance")}
}

func (p *prefixAffinityRouter) Route(v *View) Choice {
	best, longest, n, sum := 0, v.Replicas[0].matchShare(), 0, 0.0
	for i := range v.Replicas {
		r := &v.Replicas[i]
		s := r.matchShare()
		if s > longest {
			best, longest, n = i, s, 0
		}
		if s == longest {
			n++
		}
		v.Trace.recordScore(i, s)
		sum += float64(r.Inflight)
	}
	if longest < p.minMatch || longest == 0 {
		return p.loadMetric.leastLoaded(v, &p.ties)
	}
	c := Choice{Candidate: best, Score: longest, Reason: "longest prefix"}
	p.ties.settle(&c, v, n, func(i int) bool { return v.Replicas[i].matchShare() == longest })
	limit := float64(p.maxImbalance*(sum/float64(len(v.Replicas)))) + 4
	if float64(v.Replicas[c.Candidate].Inflight) > limit {
		return p.loadMetric.leastLoaded(v, &p.ties)
	}
	return c
}

func (p *prefixAffinityRouter) Clone() Router {
	c := *p
	return &c
}

// matchShare is the share of the prompt's full blocks that the router expects to be cached there.
func (r *Replica) matchShare() float64 {
	if r.Matched == 0 {
		return 0
	}
	return float64(r.Matched) / float64(r.Blocks)
}
