package policy

import "testing"

// Replicas that start are removed if two looks in a row recommend the same number, with as many replicas that serve and
// as many that start. Random clusters rarely have two such looks that differ only in those that serve.
func TestRemovalOfStartingReplicas(t *testing.T) {
	s := settling{settle: true, cancel: true}
	const held = -1
	for i, look := range []struct{ serve, start, recommended, want int }{
		{5, 1, 3, held}, // the first look
		{5, 1, 3, 3},    // the second agrees
		{4, 1, 3, held}, // fewer serve
		{4, 1, 2, held}, // another number
		{4, 2, 2, held}, // more start
		{4, 2, 2, 2},
		{4, 2, 5, held}, // none is added while others start
		{4, 2, 2, held}, // and the look before does not count any more
		{4, 2, 2, 2},
		{4, 0, 2, 2}, // none starts
		{4, 2, 2, held},
	} {
		f := &Fleet{Replicas: make([]Replica, look.serve), Loading: look.start}
		want := look.want
		if want == held {
			want = f.Current()
		}
		if got := s.settled(f, Recommendation{Replicas: look.recommended}).Replicas; got != want {
			t.Errorf("look %d: %d replicas, want %d", i, got, want)
		}
	}
}
