package calibrate

import (
	"strings"
	"testing"

	"blis/pkg/recording"
)

// TestRecordingsOfTwoServersAreToldOf: of two recordings that are simulated 6 % too slow and
// 6 % too fast it is told; of such as are 4 % off, or both too slow, or of which one only
// judges, it is not.
func TestRecordingsOfTwoServersAreToldOf(t *testing.T) {
	for _, c := range []struct {
		a, b   float64
		judges bool
		told   string
	}{
		{0.94, 1.06, false, "a.csv by -6.0 %, b.csv by +6.0 %"},
		{0.96, 1.04, false, ""},
		{1.02, 1.20, false, ""},
		{0.94, 1.06, true, ""},
	} {
		r := &Report{setup: &setup{}}
		for i, by := range []float64{c.a, c.b} {
			run := shortRun(20)
			run.file = &recording.Recording{Path: []string{"a.csv", "b.csv"}[i]}
			p := part{run: run, in: run.within(5e6, 20e6)}
			for i, m := range run.measured {
				if m.e2e *= by; !p.in[i] {
					m = unseen
				}
				p.simulated = append(p.simulated, m)
			}
			r.parts = append(r.parts, p)
			if i == 0 || !c.judges {
				r.setup.files = append(r.setup.files, run.file)
			}
		}
		r.warnApart()
		if got := strings.Join(r.setup.warnings, "; "); !strings.Contains(got, c.told) || (got == "") != (c.told == "") {
			t.Errorf("%g and %g: %q, want %q", c.a, c.b, got, c.told)
		}
	}
}

// TestUntoldAreNamed: two coefficients cannot be told apart, one cannot be told.
func TestUntoldAreNamed(t *testing.T) {
	for _, c := range []struct {
		confounded []string
		want       string
	}{{[]string{"beta[2]"}, "beta[2]"}, {[]string{"beta[0]", "beta[2]"}, "beta[0], beta[2] apart"}} {
		if got := (&Identifiability{Confounded: c.confounded}).untold(); got != c.want {
			t.Errorf("%v: %q, want %q", c.confounded, got, c.want)
		}
	}
}
