package policy

import "slices"

// roundRobin counts turns for each model by itself.
type roundRobin struct {
	plain
	next []int
}

func newRoundRobin(*builder, *Spec) Router { return &roundRobin{} }

func (r *roundRobin) Route(v *View) Choice {
	group := int(v.Request.Group)
	for len(r.next) <= group {
		r.next = append(r.next, 0)
	}
	c := r.next[group] % len(v.Replicas)
	r.next[group] = c + 1
	return Choice{Candidate: c}
}

func (r *roundRobin) Clone() Router { return &roundRobin{next: slices.Clone(r.next)} }
