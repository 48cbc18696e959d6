package metrics

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSpecDecode: of 60 drafts in 20 verifications 24 are accepted: 40 %, and 2.2 tokens a verification. Replicas that
// verify nothing add nothing, and without a verification there are no metrics.
func TestSpecDecode(t *testing.T) {
	replicas := []ReplicaTotals{{Verifications: 5, DraftTokens: 15, AcceptedTokens: 9}, {},
		{Verifications: 15, DraftTokens: 45, AcceptedTokens: 15}}
	want := &SpecDecode{DraftTokens: 60, AcceptedTokens: 24, AcceptanceRate: 0.4, MeanAcceptanceLength: 2.2}
	if diff := cmp.Diff(want, specDecode(replicas)); diff != "" {
		t.Error(diff)
	}
	if d := specDecode(make([]ReplicaTotals, 2)); d != nil {
		t.Errorf("without verifications: %+v", d)
	}
}
