package policy

import "fmt"

type chain []member

// member is a policy of a chain and its path.
type member struct {
	Admitter
	path string
}

func newChain(b *builder, s *Spec) Admitter {
	b.allowOnly(s, "of")
	if len(s.Of) == 0 {
		b.fail("of", "a chain needs at least one policy")
	}
	var c chain
	for i := range s.Of {
		path := fmt.Sprintf("%s.of[%d]", b.path, i)
		c = append(c, member{build(b, &s.Of[i], path, "admission policy", admissions()), path})
	}
	return c
}

func (c chain) Admit(v *View) Verdict {
	for _, a := range c {
		if d := a.Admit(v); d.Action != Admit {
			if d.DecidedBy == "" {
				d.DecidedBy = a.path
			}
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
		d[i] = member{c[i].Clone(), c[i].path}
	}
	return d
}
