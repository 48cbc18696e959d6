package calibrate

import (
	"context"
	"strings"
	"testing"
)

// TestContradictionIsTold: data whose slope is not a roofline's are believed and the user
// is told; data whose slope is, are not remarked on.
func TestContradictionIsTold(t *testing.T) {
	for _, c := range []struct {
		beta2 float64
		told  bool
	}{{25, false}, {120, true}} {
		load := made{"one high rate", "{max_num_seqs: 256}", []float64{9}, [2]int64{100, 600}, [2]int64{50, 400}, 500}
		s, recorded := load.record(t, 1, Coefficients{Alpha: [4]float64{3000}, Beta: [4]float64{8000, 25, c.beta2, 0.1565}})
		recorded.otherwise = recorded.player
		r := &Report{setup: s}
		if err := r.fromClients(context.Background(), []*run{recorded}, nil); err != nil {
			t.Fatal(err)
		}
		told := false
		for _, w := range s.warnings {
			told = told || strings.Contains(w, "standard deviations off")
		}
		if told != c.told {
			t.Errorf("beta[2] of %g us: told %v of a contradiction, want %v: %q", c.beta2, told, c.told, s.warnings)
		}
		if got := r.fit.Beta[2]; got < c.beta2-12 || got > c.beta2+12 {
			t.Errorf("made with beta[2] of %g us, fitted %.4g", c.beta2, got)
		}
	}
}
