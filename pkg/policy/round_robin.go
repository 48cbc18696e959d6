package policy

import "slices"

// roundRobin sends to the candidate whose last turn is the longest ago: each in
// turn, whoever the candidates of other requests are.
type roundRobin struct {
	plain
	// last is the number of each replica's last turn, 0 for none.
	last []int64
	turn int64
}

func newRoundRobin(b *builder, _ *Spec) Router {
	return &roundRobin{last: make([]int64, b.env.Replicas)}
}

func (r *roundRobin) Route(v *View) Choice {
	first := 0
	for i := range v.Replicas {
		if r.last[v.Replicas[i].Index] < r.last[v.Replicas[first].Index] {
			first = i
		}
	}
	r.turn++
	r.last[v.Replicas[first].Index] = r.turn
	return Choice{Candidate: first, Why: "its turn"}
}

func (r *roundRobin) Clone() Router { return &roundRobin{last: slices.Clone(r.last), turn: r.turn} }
