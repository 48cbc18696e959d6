package policy

import "math"

var sloGatedParams = []Param{
	{Name: "threshold", Kind: Table, Unit: "requests", Keys: "tier", Min: 0, Max: 1e9, Search: [2]float64{0.1, 100},
		Default: map[string]float64{Standard: 20, Sheddable: 5},
		Doc:     "mean queue depth at and above which the tier is rejected; a tier without one is always admitted"},
}

type sloGated struct {
	needs
	thresholds [3]float64 // by tier
}

func newSLOGated(b *builder, s *Spec) Admitter {
	t := b.params(s, sloGatedParams).table("threshold")
	g := sloGated{needs: needs(NeedRequest | NeedQueueDepth)}
	for i, tier := range tiers {
		if x, ok := t[tier]; ok {
			g.thresholds[i] = x
		} else {
			g.thresholds[i] = math.Inf(1)
		}
	}
	b.checkKeys("params.threshold", sortedKeys(t), "tier", tiers)
	return g
}

func (g sloGated) Admit(v *View) Verdict {
	sum := 0.0
	for i := range v.Replicas {
		sum += float64(v.Replicas[i].QueueDepth)
	}
	limit := g.thresholds[tierOf(v.Request)]
	if math.IsInf(limit, 1) {
		return exempt("no threshold for the tier")
	}
	return admitBelow("mean queue depth", sum/float64(max(1, len(v.Replicas))), limit)
}

func (g sloGated) Clone() Admitter { return g }

// tierOf returns the index of a request's tier.
func tierOf(r *Request) int {
	switch r.Tier {
	case Critical:
		return 0
	case Sheddable:
		return 2
	}
	return 1
}
