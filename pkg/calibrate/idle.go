package calibrate

import (
	"slices"
	"strconv"
)

// warnIdle warns of flags that the call names and that had no effect on what was
// recorded. They are about the call, and no part of the report.
func (r *Report) warnIdle() {
	o, steps, runs := r.setup.options, len(r.setup.steps) > 0, len(r.setup.runs) > 0
	_, err := strconv.ParseFloat(o.Holdout, 64)
	fraction := err == nil
	for _, f := range []struct {
		flag string
		idle bool
		why  string
	}{
		{"seed", o.Check != "", "has no effect with --check, which draws no intervals"},
		{"seed", o.Check == "" && !r.fit.regressed, "has no effect on what clients saw: its intervals are a jackknife; those of steps and spans are resampled"},
		{"holdout", steps && fraction, "has no effect on steps: of these every second judges a fit to the others"},
		{"refine", !r.fit.simulated, "has no effect: a regression on steps or spans begins nowhere, and nothing was fitted by simulation"},
		{"output-tokens", !runs, "has no effect: steps have no answers"},
	} {
		if f.idle && slices.Contains(o.Given, f.flag) {
			o.warn("--" + f.flag + " " + f.why)
		}
	}
}
