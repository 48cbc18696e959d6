package engine

import (
	"testing"

	"blis/pkg/latency"
)

// TestEvenBatch counts the tokens of a batch one by one.
func TestEvenBatch(t *testing.T) {
	for _, size := range []int{0, 3, 10, 1000} {
		for _, prefill := range []int64{0, 1, 3, 25} {
			for _, decode := range []int64{0, 1, 4} {
				const context = 17
				want := latency.Batch{Decode: decode, Context: decode * context}
				for range decode {
					want.LongestContext = context
					want.WindowContext += int64(min(size, context))
				}
				for token := range prefill {
					want.Prefill, want.Chunks = want.Prefill+1, 1
					want.Pairs += token + 1
					want.WindowPairs += min(int64(size), token+1)
				}
				if got := EvenBatch(prefill, decode, context, size); got != want {
					t.Errorf("window %d: %+v, want %+v", size, got, want)
				}
			}
		}
	}
}
