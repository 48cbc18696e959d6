package policy

// roundRobin counts turns for each model by itself.
type roundRobin struct{ next []int }

func newRoundRobin(s Spec) (Router, error) { return &roundRobin{}, s.Check() }

func (r *roundRobin) Route(v *View) Choice {
	for len(r.next) <= v.Group {
		r.next = append(r.next, 0)
	}
	c := r.next[v.Group] % len(v.Replicas)
	r.next[v.Group] = c + 1
	return Choice{Candidate: c}
}

func (r *roundRobin) Prefix() bool { return false }
