package policy

// powerOfTwo draws two different candidates (Mitzenmacher, "The power of two
// choices in randomized load balancing", 2001).
type powerOfTwo struct {
	load
	dice dice
}

func newPowerOfTwo(b *builder, s *Spec) Router { return &powerOfTwo{newLoad(b, s), b.dice()} }

func (p *powerOfTwo) Route(v *View) Choice {
	n := len(v.Replicas)
	if n == 1 {
		return p.least(v)
	}
	a := p.dice.intN(n)
	b := p.dice.intN(n - 1)
	if b >= a {
		b++
	}
	v.Account.Load(a, float64(p.of(&v.Replicas[a])))
	v.Account.Load(b, float64(p.of(&v.Replicas[b])))
	if la, lb := p.of(&v.Replicas[a]), p.of(&v.Replicas[b]); lb < la || lb == la && b < a {
		a = b
	}
	return Choice{Candidate: a, Score: float64(p.of(&v.Replicas[a])), Why: "less load of two"}
}

func (p *powerOfTwo) Clone() Router {
	c := *p
	return &c
}
