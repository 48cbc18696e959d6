package calibrate

import (
	"strings"
	"testing"

	"blis/pkg/hardware"
	"blis/pkg/leastsq"
	"blis/pkg/stat"
)

// TestFirstIntervalHasTheCoefficient: of a coefficient that a prior moved out of the interval of the data, the first
// interval is that of the coefficient. The other one, and that of the file, are labeled as of the data alone.
func TestFirstIntervalHasTheCoefficient(t *testing.T) {
	data, moved := stat.Interval{Lo: 40.51, Hi: 54.58, Level: level}, stat.Interval{Lo: 24.1, Hi: 45.8, Level: level}
	r := &report{setup: &setup{}, Identifiability: &leastsq.Identifiability{}, Set: &hardware.Set{
		CI:          hardware.Intervals{Level: level, BetaUS: [][]float64{{40.51, 54.58}}},
		Uncertainty: hardware.Intervals{Level: level, BetaUS: [][]float64{{24.1, 45.8}}}},
		Fitted: []fittedCoefficient{
			{Name: "sequence_us", Value: 34.95, CI: &data, Uncertainty: &moved, Source: "43 % data"},
			{Name: "beta[0]", Value: 45, CI: &data, Source: "fitted"}}}
	var b strings.Builder
	if err := r.writeText(&b); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(b.String()) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	got := strings.Join(lines, "\n")
	for _, want := range []string{
		"# 90 % uncertainty CI of data alone\n",
		"# sequence_us 34.95 us 24.1 to 45.8 40.51 to 54.58 43 % data\n",
		"# beta[0] 45 us 40.51 to 54.58 40.51 to 54.58 fitted\n",
		"# of a fit to the data alone: a coefficient that a prior moved may be outside\nci: ",
		"# of the coefficients above\nuncertainty: ",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}
