package policy

import "fmt"

type chain []Admitter

func newChain(b *builder, s *Spec) Admitter {
	b.refuse(s, "of")
	if len(s.Of) == 0 {
		b.fail("of", "a chain needs policies")
	}
	var c chain
	for i := range s.Of {
		c = append(c, build(b, &s.Of[i], fmt.Sprintf("%s.of[%d]", b.path, i), "admission policy", Admissions()))
	}
	return c
}

func (c chain) Admit(v *View) Verdict {
	for _, a := range c {
		if d := a.Admit(v); d.Action != Admit {
			return d
		}
	}
	return Verdict{}
}

func (c chain) Needs() (n Needs) {
	for _, a := range c {
		n |= a.Needs()
	}
	return n
}

func (c chain) Rules() (all []*Rule) {
	for _, a := range c {
		all = append(all, a.Rules()...)
	}
	return all
}

func (c chain) Clone() Admitter {
	d := make(chain, len(c))
	for i := range c {
		d[i] = c[i].Clone()
	}
	return d
}
