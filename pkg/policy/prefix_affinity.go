package policy

var prefixAffinityParams = []Param{
	{Name: "min_match", Kind: Number, Min: 0, Max: 1, Search: [2]float64{0, 0.9}, Default: 0.1, Doc: "share of the prompt's full blocks that must have been sent there"},
	{Name: "max_imbalance", Kind: Number, Min: 0, Max: 1e6, Search: [2]float64{1, 5}, Default: 2.0, Doc: "times the mean of requests in flight, and 4, is the most that the replica may have"},
}

type prefixAffinityRouter struct {
	reads
	load         load
	match, times float64
}

func newPrefixAffinity(b *builder, s *Spec) Router {
	v := b.params(s, prefixAffinityParams)
	return &prefixAffinityRouter{reads: reads(NeedShadow), match: v.number("min_match"), times: v.number("max_imbalance")}
}

func (p *prefixAffinityRouter) Route(v *View) Choice {
	best, longest, sum := 0, v.Replicas[0].share(), 0.0
	for i := range v.Replicas {
		r := &v.Replicas[i]
		s := r.share()
		if s > longest {
			best, longest = i, s
		}
		v.Account.score(i, s)
		sum += float64(r.Inflight)
	}
	limit := float64(p.times*(sum/float64(len(v.Replicas)))) + 4
	if longest < p.match || longest == 0 || float64(v.Replicas[best].Inflight) > limit {
		return p.load.least(v)
	}
	return Choice{Candidate: best, Score: longest, Why: "longest prefix"}
}

func (p *prefixAffinityRouter) Clone() Router { return p }

// share is how much of the prompt's full blocks the router believes to be there.
func (r *Replica) share() float64 {
	if r.Matched == 0 {
		return 0
	}
	return float64(r.Matched) / float64(r.Blocks)
}
