package policy

type random struct {
	plain
	dice dice
}

func newRandom(b *builder, _ *Spec) Router { return &random{dice: b.dice()} }

func (r *random) Route(v *View) Choice {
	return Choice{Candidate: r.dice.intN(len(v.Replicas)), Why: "at random"}
}

func (r *random) Clone() Router {
	c := *r
	return &c
}
