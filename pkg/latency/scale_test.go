package latency

import (
	"testing"

	"blis/pkg/des"
)

func TestScale(t *testing.T) {
	m := constantStep{1001}
	if Scale(m, 1) != Model(m) {
		t.Error("a factor of 1 changes the model")
	}
	for factor, want := range map[float64]des.Time{0.5: 501, 1.1: 1101, 2: 2002, 1e-9: 1} {
		s := Scale(m, factor)
		if got := s.Step(Batch{}); got != want {
			t.Errorf("steps of 1001 us x %v take %d us, want %d", factor, got, want)
		}
		if s.Queueing(3) != m.Queueing(3) || s.Output(3) != m.Output(3) {
			t.Error("times outside of steps are scaled")
		}
	}
}
