package sim

import (
	"cmp"
	"math"
	"slices"
	"testing"

	_ "blis/pkg/internal/fixedseed"
	"blis/pkg/policy"

	"pgregory.net/rapid"
)

// TestRankAll compares rankAll and rankBest with a sort by ranksBefore.
func TestRankAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 40).Draw(t, "replicas")
		v := &policy.View{Replicas: make([]policy.Replica, n)}
		o := &traceWriter{}
		o.routing.Reset(n)
		hasScores := rapid.Bool().Draw(t, "has scores")
		scores := rapid.SampledFrom([]float64{math.NaN(), math.Inf(-1), -1, math.Copysign(0, -1), 0, 0.5, 2,
			math.Inf(1)})
		for i := range n {
			v.Replicas[i].Inflight = rapid.Int32Range(0, 3).Draw(t, "inflight")
			o.routing.Filtered[i] = rapid.Bool().Draw(t, "filtered")
			if hasScores {
				o.routing.Scores = append(o.routing.Scores, scores.Draw(t, "score"))
			}
		}
		o.routing.LowerIsBetter = rapid.Bool().Draw(t, "lower is better")
		chosen := rapid.IntRange(0, n-1).Draw(t, "chosen")
		o.rankAll(v, chosen)
		var want []int
		for i := range n {
			want = append(want, i)
		}
		slices.SortFunc(want, func(i, k int) int {
			switch {
			case ranksBefore(&o.routing, v, i, k, chosen):
				return -1
			case ranksBefore(&o.routing, v, k, i, chosen):
				return 1
			}
			return cmp.Compare(i, k)
		})
		if !slices.Equal(o.order, want) {
			t.Fatalf("order %v, want %v", o.order, want)
		}
		o.order = nil
		o.rankBest(v, chosen)
		if !slices.Equal(o.order, want[:min(n, maxConsidered)]) {
			t.Fatalf("best %v, want those of %v", o.order, want)
		}
	})
}

// ranksBefore reports whether candidate i is listed before candidate k: the choice comes first, then
// the higher score or, without scores, fewer requests in flight.
func ranksBefore(a *policy.Trace, v *policy.View, i, k, chosen int) bool {
	switch {
	case i == chosen || k == chosen:
		return i == chosen
	case a.Filtered[i] != a.Filtered[k]:
		return a.Filtered[k]
	case a.Scores == nil:
		return v.Replicas[i].Inflight < v.Replicas[k].Inflight
	}
	x, y := a.Scores[i], a.Scores[k]
	if a.LowerIsBetter {
		x, y = -x, -y
	}
	return x > y || x == x && y != y
}
