package policy

import "blis/pkg/expr"

// filter lets another policy choose among the candidates for which its
// expression is true, or among all if it fails or is true for none, which counts
// as a failure.
type filter struct {
	scope candidate
	keep  *formula[candidate]
	use   Router
	view  View
	left  []Replica
	place []int // of each one left among all
}

func newFilter(b *builder, s *Spec) Router {
	b.refuse(s, "filter", "use")
	b.want(s.Filter, "filter", "replica.kv_util < 0.9")
	if s.Use == nil {
		b.fail("use", "must name the policy that chooses among what is left")
	}
	f := &filter{keep: formulaAt(b, "filter", s.Filter, candidateSignals(), expr.Flag), use: build(b, s.Use, b.path+".use", "routing policy", Routers())}
	f.room(b.env.Replicas)
	return f
}

func (f *filter) room(n int) { f.left, f.place = make([]Replica, 0, n), make([]int, 0, n) }

func (f *filter) Route(v *View) Choice {
	f.scope.View = v
	f.left, f.place = f.left[:0], f.place[:0]
	for i := range v.Replicas {
		f.scope.replica = &v.Replicas[i]
		yes, ok := f.keep.flag(&f.scope)
		if !ok {
			return f.use.Route(v)
		}
		if yes {
			f.left, f.place = append(f.left, v.Replicas[i]), append(f.place, i)
		} else {
			v.Account.filtered(i)
		}
	}
	if len(f.left) == 0 {
		f.keep.rule.Failed++
		return f.use.Route(v)
	}
	f.view = *v
	f.view.Replicas = f.left
	c := f.use.Route(&f.view)
	c.Candidate = f.place[c.Candidate]
	v.Account.spread(f.place, len(v.Replicas))
	return c
}

func (f *filter) Needs() Needs   { return f.keep.needs | f.use.Needs() }
func (f *filter) Rules() []*Rule { return append([]*Rule{f.keep.rule}, f.use.Rules()...) }

func (f *filter) Clone() Router {
	c := &filter{keep: f.keep.clone(), use: f.use.Clone()}
	c.room(cap(f.left))
	return c
}
