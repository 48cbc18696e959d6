package policy

var prefixAffinityParams = []Param{
	{Name: "min_match", Kind: Number, Min: 0, Max: 1, Search: [2]float64{0, 0.9}, Default: 0.1,
		Doc: "minimum share of the prompt's full blocks that were sent to the replica"},
	{Name: "max_imbalance", Kind: Number, Min: 0, Max: 1e6, Search: [2]float64{1, 5}, Default: 2.0,
		Doc: "the replica may have at most max_imbalance * mean + 4 requests in flight"},
}

type prefixAffinityRouter struct {
	needs
	loadMetric             loadMetric
	minMatch, maxImbalance float64
}

func newPrefixAffinity(b *builder, s *Spec) Router {
	v := b.params(s, prefixAffinityParams)
	return &prefixAffinityRouter{needs: needs(NeedShadow), minMatch: v.number("min_match"),
		maxImbalance: v.number("max_imbalance")}
}

func (p *prefixAffinityRouter) Route(v *View) Choice {
	best, longest, sum := 0, v.Replicas[0].matchShare(), 0.0
	for i := range v.Replicas {
		r := &v.Replicas[i]
		s := r.matchShare()
		if s > longest {
			best, longest = i, s
		}
		v.Trace.recordScore(i, s)
		sum += float64(r.Inflight)
	}
	limit := float64(p.maxImbalance*(sum/float64(len(v.Replicas)))) + 4
	if longest < p.minMatch || longest == 0 || float64(v.Replicas[best].Inflight) > limit {
		return p.loadMetric.leastLoaded(v)
	}
	return Choice{Candidate: best, Score: longest, Reason: "longest prefix"}
}

func (p *prefixAffinityRouter) Clone() Router { return p }

// matchShare is the share of the prompt's full blocks that the router expects to be cached there.
func (r *Replica) matchShare() float64 {
	if r.Matched == 0 {
		return 0
	}
	return float64(r.Matched) / float64(r.Blocks)
}
