package calibrate

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"blis/pkg/stream"
)

// shortRun is a run of n requests, one each second, of 10 tokens in and out.
func shortRun(n int) *run {
	r := &run{}
	for i := range n {
		r.requests = append(r.requests, stream.Request{ID: fmt.Sprint(i), ArrivalUS: stream.Micros(1e6 * i), InputTokens: 10, OutputTokens: 10})
		r.measured, r.used = append(r.measured, seen{1e4, 1e5, 0}), append(r.used, true)
	}
	return r
}

// TestShortRunsHaveBlocks: a run of 48 requests has eight blocks of six, one of 12 two
// of five and none of what is left; a long one has blocks of fifty.
func TestShortRunsHaveBlocks(t *testing.T) {
	for _, c := range []struct{ requests, blocks, first int }{{48, 8, 6}, {12, 3, 5}, {11, 2, 5}, {3, 1, 3}, {400, 8, 50}, {1000, 20, 50}} {
		r := shortRun(c.requests)
		r.divide()
		if len(r.blocks) != c.blocks || len(r.blocks[0]) != c.first {
			t.Errorf("%d requests: %d blocks, the first of %d; want %d of %d", c.requests, len(r.blocks), len(r.blocks[0]), c.blocks, c.first)
		}
	}
}

// TestFewRequestsAreToldOf: of 12 requests nothing is fitted, of 48 with a warning, and
// of 400 without.
func TestFewRequestsAreToldOf(t *testing.T) {
	for _, c := range []struct {
		requests int
		fault    bool
		warnings int
	}{{12, true, 0}, {48, false, 1}, {400, false, 0}} {
		s := &setup{}
		err := s.enough([]*run{shortRun(c.requests)})
		if (err != nil) != c.fault || len(s.warnings) != c.warnings {
			t.Errorf("%d requests: %v, warnings %v", c.requests, err, s.warnings)
		}
	}
	s := &setup{}
	if err := s.enough([]*run{shortRun(5), shortRun(5), shortRun(5), shortRun(5)}); err == nil || !strings.Contains(err.Error(), "at least one run 10") {
		t.Errorf("four runs of one block: %v", err)
	}
}

// TestShortRunsHaveASpread: a run of two blocks counts with the scatter of the same
// feature in others, and none is left out.
func TestShortRunsHaveASpread(t *testing.T) {
	var kinds []int
	var r []float64
	for b, run := range []int{0, 0, 0, 0, 0, 1, 1} {
		for k := range features {
			kinds, r = append(kinds, features*run+k), append(r, 0.1*float64(b%2)*float64(k+1))
		}
	}
	p := &problem{kinds: 2 * features, kind: func(i int) int { return kinds[i] }}
	for k, s := range p.scatter(r) {
		if want := 0.1 * float64(k%features+1) / meanOfSmall / math.Sqrt2; math.Abs(s-want) > 1e-12 {
			t.Errorf("kind %d: spread %g, want %g", k, s, want)
		}
	}
}
