package policy

import "blis/pkg/expr"

// filter lets another policy choose among the candidates for which its expression is true. If the
// expression fails or is true for none, all are candidates, and that counts as a failure.
type filter struct {
	scope   candidate
	keep    *formula[candidate]
	use     Router
	view    View
	kept    []Replica
	indexes []int // of the kept candidates, in the full view
}

func newFilter(b *builder, s *Spec) Router {
	b.allowOnly(s, "filter", "use", "params")
	if s.Use == nil {
		b.fail("use", "must name the policy that chooses among the kept candidates")
	}
	if len(s.Params) > 0 {
		b.params(s, tieParams)
		b.checkInheritedTie(s)
	}
	b.requireText(s.Filter, "filter", "replica.kv_util < 0.9")
	f := &filter{keep: newFormula(b, "filter", s.Filter, candidateSignals(), expr.Flag),
		use: build(b, s.Use, b.path+".use", "routing policy", routers())}
	f.reserve(b.env.Candidates)
	return f
}

func (f *filter) reserve(n int) { f.kept, f.indexes = make([]Replica, 0, n), make([]int, 0, n) }

func (f *filter) Route(v *View) Choice {
	f.scope.View = v
	f.kept, f.indexes = f.kept[:0], f.indexes[:0]
	for i := range v.Replicas {
		f.scope.replica = &v.Replicas[i]
		yes, ok := f.keep.flag(&f.scope)
		if !ok {
			return f.use.Route(v)
		}
		if yes {
			f.kept, f.indexes = append(f.kept, v.Replicas[i]), append(f.indexes, i)
		} else {
			v.Trace.recordFiltered(i)
		}
	}
	if len(f.kept) == 0 {
		f.keep.rule.Failed++
		return f.use.Route(v)
	}
	f.view = *v
	f.view.Replicas = f.kept
	c := f.use.Route(&f.view)
	c.Candidate = f.indexes[c.Candidate]
	v.Trace.expand(f.indexes, len(v.Replicas))
	return c
}

func (f *filter) Needs() Needs   { return f.keep.needs | f.use.Needs() }
func (f *filter) Rules() []*Rule { return append([]*Rule{f.keep.rule}, f.use.Rules()...) }

func (f *filter) Clone() Router {
	c := &filter{keep: f.keep.clone(), use: f.use.Clone()}
	c.reserve(cap(f.kept))
	return c
}
