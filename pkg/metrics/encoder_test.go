package metrics

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestEncoder: what replicas encoded and found is added. Replicas that had no items have no metrics of them.
func TestEncoder(t *testing.T) {
	replicas := []ReplicaTotals{{EncodedItems: 2, EncodedTokens: 50, EncoderUS: 1500, EncoderHits: 1, EncoderCuts: 4},
		{},
		{EncodedItems: 1, EncodedTokens: 9, EncoderUS: 250, PrefixItems: 7}}
	want := &Encoder{Items: 3, Tokens: 59, CacheHits: 1, CacheHitRatio: 0.25, PrefixHits: 7, Cuts: 4, MS: 1.75}
	if diff := cmp.Diff(want, encoders(replicas)); diff != "" {
		t.Error(diff)
	}
	if got := encoders(replicas[1:2]); got != nil {
		t.Errorf("without items: %+v", got)
	}
	if got := encoders([]ReplicaTotals{{PrefixItems: 2}}); got == nil || got.CacheHitRatio != 0 {
		t.Errorf("items in cached prefixes only: %+v", got)
	}
}
