package policy

var saturationParams = []Param{
	{Name: "threshold", Kind: Number, Min: 0, Max: 1e6, Search: [2]float64{0.2, 5}, Default: 1.0, Doc: "of cluster.saturation, from which on the sheddable tier is rejected"},
}

type saturation struct {
	reads
	threshold float64
}

func newSaturation(b *builder, s *Spec) Admitter {
	return saturation{reads(NeedRequest | NeedQueueDepth | NeedKVUtil), b.params(s, saturationParams).number("threshold")}
}

func (s saturation) Admit(v *View) Verdict {
	if v.Request.Tier != Sheddable {
		return exempt("not of the sheddable tier")
	}
	return below("saturation", v.Saturation(), s.threshold)
}

func (s saturation) Clone() Admitter { return s }
