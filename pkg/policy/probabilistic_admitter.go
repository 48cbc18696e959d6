package policy

import "blis/pkg/portable"

// probabilisticAdmitter is probabilistic-admitter of llm-d-router v0.10.0
// (pkg/epp/framework/plugins/requestcontrol/admitter/probabilisticadmitter): it rejects a request of
// the sheddable tier with the probability k x saturation^power, at most 1. The saturation is the mean
// over the candidates of max(queue depth / its limit, KV usage / its limit). llm-d calls requests
// with a negative priority sheddable.
type probabilisticAdmitter struct {
	needs
	queue, kv, power, k float64
	draws               draws
}

var probabilisticParams = []Param{
	count("queueDepthThreshold", 5, "requests", "queue depth that saturates a replica"),
	{Name: "kvCacheUtilThreshold", Kind: Number, Min: 1e-6, Max: 1e6, Search: [2]float64{0.5, 1}, Default: 0.8,
		Doc: "KV usage that saturates a replica"},
	{Name: "power", Kind: Number, Min: 1e-6, Max: 1e3, Search: [2]float64{1, 10}, Default: 5.0,
		Doc: "exponent of the saturation"},
	{Name: "k", Kind: Number, Min: 1e-9, Max: 1e9, Search: [2]float64{1, 1000}, Default: 300.0,
		Doc: "factor of the probability"},
}

func newProbabilisticAdmitter(b *builder, s *Spec) Admitter {
	v := b.params(s, probabilisticParams)
	return &probabilisticAdmitter{needs(NeedRequest | NeedQueueDepth | needKVUtil), v.number("queueDepthThreshold"),
		v.number("kvCacheUtilThreshold"), v.number("power"), v.number("k"), b.draws()}
}

func (p *probabilisticAdmitter) Admit(v *View) Verdict {
	if v.Request.Tier != Sheddable {
		return exempt("not sheddable")
	}
	r := p.draws.of(v.Draw)
	return admitUpTo("probability of rejection", p.probability(v), r.float())
}

// probability returns the probability of a rejection.
func (p *probabilisticAdmitter) probability(v *View) float64 {
	return min(portable.Pow(utilization(v, p.queue, p.kv), p.power)*p.k, 1)
}

// utilization is the mean over the replicas of max(queue depth / its limit, KV usage / its limit), 1 without any.
func utilization(v *View, queue, kv float64) float64 {
	if len(v.Replicas) == 0 {
		return 1
	}
	sum := 0.0
	for i := range v.Replicas {
		r := &v.Replicas[i]
		sum += max(float64(r.QueueDepth)/queue, r.KVUtil/kv)
	}
	return sum / float64(len(v.Replicas))
}

func (p *probabilisticAdmitter) Clone() Admitter {
	c := *p
	return &c
}
