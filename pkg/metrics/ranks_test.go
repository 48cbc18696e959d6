package metrics

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestLockstep: of 8 steps of two ranks 2 had a dummy batch. In the others ranks waited 150 of 600 µs. The rank with
// most tokens had 90, one of the two 60 on average. Replicas that are no ranks have no such metrics.
func TestLockstep(t *testing.T) {
	replicas := []ReplicaTotals{{Ranks: RankTotals{Steps: 4, StepUS: 400, WaitUS: 50, Tokens: 80, Widest: 90}},
		{Ranks: RankTotals{Steps: 4, Dummies: 2, StepUS: 200, WaitUS: 100, Tokens: 40, Widest: 90}}, {}}
	share := 0.25
	want := &DP{Steps: 8, IdleShare: 0.25, WaitShare: &share, Imbalance: 1.5}
	if diff := cmp.Diff(want, lockstep(replicas)); diff != "" {
		t.Error(diff)
	}
	if got := lockstep(replicas[2:]); got != nil {
		t.Errorf("without ranks: %+v", got)
	}
}
