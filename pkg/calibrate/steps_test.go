package calibrate

import (
	"slices"
	"strings"
	"testing"

	"blis/pkg/latency"
	"blis/pkg/recording"
)

// alternating are steps of prefill and of decode in turn, as some tables have them, of
// a line: 10 ms and 20 µs a prompt token and 50 a sequence.
func alternating() (steps []recording.Step) {
	for i := range int64(20) {
		steps = append(steps, recording.Step{Prefill: 100 * (i + 1), US: 10000 + 20*100*float64(i+1)}, recording.Step{Decode: i + 1, US: 10000 + 50*float64(i+1)})
	}
	return steps
}

// TestHalvesHaveAllKinds: half of each kind is fitted to, with its ends, and the order
// of a file does not count.
func TestHalvesHaveAllKinds(t *testing.T) {
	steps := alternating()
	fit, held := halves(steps)
	count := func(list []recording.Step) (n [3]int) {
		for _, x := range list {
			n[kindOf(x)]++
		}
		return n
	}
	if a, b := count(fit), count(held); a != [3]int{11, 11, 0} || b != [3]int{9, 9, 0} {
		t.Errorf("fit to %v, held %v", a, b)
	}
	if !slices.ContainsFunc(fit, func(x recording.Step) bool { return x.Prefill == 2000 }) {
		t.Error("the largest prefill is not fitted to")
	}
	slices.Reverse(steps)
	if again, _ := halves(steps); !slices.Equal(fit, again) {
		t.Error("another order, another half")
	}
}

// TestBadKindsAreToldOf: a model whose decode steps are half as long again is told of,
// for decode alone.
func TestBadKindsAreToldOf(t *testing.T) {
	for beta, want := range map[float64]int{10000: 0, 15000: 1} {
		m, err := (&Coefficients{Beta: [4]float64{beta, 20, 50, 0}}).model()
		if err != nil {
			t.Fatal(err)
		}
		s := &setup{}
		var decode []recording.Step
		for _, x := range alternating() {
			if x.Prefill == 0 {
				decode = append(decode, x)
			}
		}
		s.warnByKind(decode, latency.Model(m))
		if len(s.warnings) != want || want > 0 && !strings.Contains(s.warnings[0], "20 steps of decode") {
			t.Errorf("beta[0] %g: %v", beta, s.warnings)
		}
	}
}
