package latency

import (
	"slices"
	"strings"
	"testing"
)

// TestTableByHand: contexts are 0, 2/1.6 ≈ 1, and 2. Of prefill 0, two times at context 2 have a mean of 40, which one
// sequence takes at any context unless two take less: 20, 40 and 60. Of prefill 8, one sequence takes at least what it
// takes without prefill. Three sequences are measured with one of two prefills and are no row.
func TestTableByHand(t *testing.T) {
	steps := []MeasuredStep{{0, 1, 2, 30}, {0, 1, 2, 50}, {0, 2, 2, 60}, {0, 2, 0, 20}, {0, 3, 0, 7}, {8, 1, 2, 10},
		{8, 2, 0, 100}}
	got := TableOf(steps)
	if got == nil {
		t.Fatal("no table")
	}
	if !slices.Equal(got.PrefillTokens, []int64{0, 8}) || !slices.Equal(got.DecodeSequences, []int64{1, 2}) ||
		!slices.Equal(got.ContextTokens, []int64{0, 1, 2}) ||
		!slices.Equal(got.StepUS, []float64{20, 40, 40, 20, 40, 60, 20, 40, 40, 100, 100, 100}) {
		t.Errorf("%+v", *got)
	}
	if got := TableOf(steps[:5]); got != nil {
		t.Errorf("one number of prefill tokens makes %+v", *got)
	}
}

// TestSmallGrids: between one and three sequences with any context, two take the mean. A grid can be one point.
func TestSmallGrids(t *testing.T) {
	for _, c := range []struct {
		grid Grid
		want float64
	}{{Grid{[]int64{1, 3}, []int64{0}, []float64{10, 30}}, 20}, {Grid{[]int64{1}, []int64{0}, []float64{5}}, 5},
		{Grid{[]int64{1}, []int64{0, 20}, []float64{5, 15}}, 10}} {
		if err := c.grid.check(); err != nil {
			t.Errorf("%+v: %v", c.grid, err)
		}
		if got := newSurface(c.grid).duration(2, 10); got != c.want {
			t.Errorf("%+v: %v, want %v", c.grid, got, c.want)
		}
	}
}

// TestLowestPeaks: a peak is at least 1 a second.
func TestLowestPeaks(t *testing.T) {
	for peak, want := range map[float64]bool{1: false, 0.5: true} {
		err := Machine{FLOPS: peak, AttentionFLOPS: 1, Bandwidth: 1, TensorParallel: 1, PipelineParallel: 1,
			DataParallel: 1}.check()
		if got := err != nil && strings.HasPrefix(err.Error(), "flops must"); got != want {
			t.Errorf("%v FLOP/s: %v", peak, err)
		}
	}
}
