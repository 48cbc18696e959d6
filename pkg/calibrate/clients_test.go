package calibrate

import (
	"math"
	"testing"
)

// TestFitOfClientTimings: the report of a fit to client timings says of each coefficient where it comes from. The
// uncertainty of alpha[0], the frontend's time, includes the trend of TTFT errors over decoding sequences, which could
// be due to an alpha[3] that is not fitted.
func TestFitOfClientTimings(t *testing.T) {
	s, run := synthetic(t, 1, coefficients{5000, 0, 0, 0, 6200, 16, 22, 0.1565}, 120)
	runs := []*replay{run}
	r := &report{setup: s}
	if err := r.fitClients(t.Context(), runs, nil); err != nil {
		t.Fatal(err)
	}
	want := [len(names)]string{alpha0: "fitted", alpha1: "0: clients hardly distinguish it from beta[1]",
		alpha2: "0: clients do not distinguish it from alpha[0]",
		alpha3: "0: held-out segments are not predicted clearly better with it", beta0: "fitted", beta1: "fitted",
		beta2: "fitted", beta3: "physics: KV bytes of a token on one GPU over its memory bandwidth; clients hardly " +
			"distinguish it from beta[2]"}
	if r.fit.source != want {
		t.Errorf("sources %q, want %q", r.fit.source, want)
	}
	f, err := s.fitShape(t.Context(), runs, loadOf(runs), nil, nil)
	if err == nil {
		err = f.finish(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	if f.value != r.fit.value || r.Trend == nil {
		t.Fatalf("the fits are %v and %v, with a trend %v", f.value, r.fit.value, r.Trend)
	}
	_, uncertainty := f.intervals()
	early, late := r.Trend.errorRange(f.load.sequences)
	lo, hi := uncertainty[alpha0].Lo-1000*late, uncertainty[alpha0].Hi-1000*early
	got := r.fit.uncertainty[alpha0]
	if !(early < 0 && late > 0 && lo > 0) || math.Abs(got.Lo-lo) > 1e-6 || math.Abs(got.Hi-hi) > 1e-6 {
		t.Errorf("alpha[0] is between %g and %g us, want %g and %g with errors of TTFT from %g to %g ms", got.Lo,
			got.Hi, lo, hi, early, late)
	}
}
