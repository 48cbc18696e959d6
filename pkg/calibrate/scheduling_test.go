package calibrate

import (
	"context"
	"fmt"
	"slices"
	"testing"
)

// TestSchedulingsAreSearchedAlike: of a server that does the same whichever way its
// scheduling is said to be, both fit as well, none is warned of, and the fit stays as it
// was.
func TestSchedulingsAreSearchedAlike(t *testing.T) {
	load := usual
	load.perRate = 60
	s, r := load.record(t, 1, Coefficients{Alpha: [4]float64{3000}, Beta: [4]float64{8000, 25, 60, 0.1565}})
	r.otherwise = r.player
	f, err := fitClient(context.Background(), []*run{r}, s.prior(loadOf([]*run{r})), nil)
	if err != nil {
		t.Fatal(err)
	}
	parameters := slices.Clone(f.problem.parameters)
	report := &Report{setup: s}
	if err := report.otherScheduling(context.Background(), f); err != nil {
		t.Fatal(err)
	}
	var is, other bool
	var a, b float64
	if _, err := fmt.Sscanf(report.Scheduling, "async_scheduling %t: misfit %g; with %t it would be %g", &is, &a, &other, &b); err != nil {
		t.Fatal(report.Scheduling, err)
	}
	if is == other || a != b || len(s.warnings) > 0 {
		t.Errorf("%s, warnings %v", report.Scheduling, s.warnings)
	}
	if !slices.Equal(parameters, f.problem.parameters) {
		t.Errorf("the fit's parameters were %v and are %v", parameters, f.problem.parameters)
	}
}

// TestBetterSchedulingIsToldOf: the other way round is told of where it fits better by a
// twentieth, and not where it fits as well or worse.
func TestBetterSchedulingIsToldOf(t *testing.T) {
	for _, c := range []struct {
		other float64
		want  int
	}{{730.6, 1}, {770, 0}, {800, 0}} {
		s := &setup{}
		if s.warnScheduling(true, 777.7, c.other); len(s.warnings) != c.want {
			t.Errorf("misfit 777.7 and %g: %v", c.other, s.warnings)
		}
	}
}
