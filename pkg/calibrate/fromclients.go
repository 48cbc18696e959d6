package calibrate

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
)

// fromClients fits by simulation, with what is before the queue given or not.
func (r *Report) fromClients(ctx context.Context, runs []*run, before *[4]float64, starts ...Coefficients) error {
	s := r.setup
	if err := s.enough(runs); err != nil {
		return err
	}
	l := loadOf(runs)
	if math.IsNaN(l.sequences) {
		return fmt.Errorf("no request of the recordings has the times of a first and of a later token: answers of one token, or none streamed, do not tell what steps take")
	}
	p := s.prior(l)
	if s.earlier != nil {
		starts = append(starts, coefficientsOf(s.earlier))
	}
	s.options.progress("fitting")
	f, err := fitClient(ctx, runs, p, before, starts...)
	if err == nil {
		f, err = r.withoutStalls(ctx, f)
	}
	if err != nil {
		return err
	}
	r.fit.Coefficients, r.fit.load = f.Coefficients, f.load
	intervals, doubts := f.intervals()
	from := r.sources(f, intervals)
	r.warnPrior(f, intervals)
	first := 0
	if before != nil {
		first = beta0 // alpha is known from spans
	}
	copy(r.fit.from[first:], from[first:])
	copy(r.fit.intervals[first:], intervals[first:])
	r.fit.doubts = r.fit.intervals
	copy(r.fit.doubts[first:], doubts[first:])
	if err := r.playFitted(ctx, runs); err != nil {
		return err
	}
	if r.Drift = driftOf(r.played); r.Drift != nil && before == nil && len(f.problem.parameters) <= atAlpha3 {
		// What alpha[3] would have is in alpha[0], if the loads do not tell them apart.
		early, late := r.Drift.over(f.load.sequences)
		d := &r.fit.doubts[alpha0]
		d.Low, d.High = max(0, d.Low-1e3*late), d.High-1e3*early
	}
	if err := r.otherScheduling(ctx, f); err != nil {
		return err
	}
	if err := r.withoutStart(ctx, f); err != nil {
		return err
	}
	r.StepScore = nil
	r.fit.method = fmt.Sprintf("simulation in the loop: %d runs replayed with their arrivals, lengths and repeated prompts; mean TPOT, E2E and TTFT of blocks of time, TTFT of their shorter and longer prompts and of those with few and with many sequences beside, weighed robustly (Huber), by Levenberg and Marquardt's method, at last on planes through many simulations; intervals by a jackknife over stretches of time", len(runs))
	return nil
}

// sources finds what the data tell apart, and says where each coefficient comes from.
func (r *Report) sources(f *clientFit, intervals []Interval) []string {
	fitted := []string{names[alpha0], names[beta0], names[beta1], names[beta2]}
	if len(f.problem.parameters) > atAlpha3 {
		fitted = append(fitted, names[alpha3])
	}
	r.fit.id = identify(fitted, f.normal())
	hardly := func(k int) bool { return intervals[k].High-intervals[k].Low > toldWell*f.list()[k] }
	if r.setup.alike() == "" {
		r.fit.id.keep(func(name string) bool { return hardly(slices.Index(names[:], name)) })
	}
	from := []string{"fitted", "0: a client can hardly tell it from beta[1]", "0: a client cannot tell it from alpha[0]", "",
		"fitted", "fitted", "fitted", "physics: the bytes of a token's keys and values on one GPU over its memory's bandwidth; a client can hardly tell it from beta[2]"}
	if f.prior.Beta[3] == 0 {
		from[beta3] = "0: stretches of time are foretold better without what physics says; it is in beta[2]"
	}
	if f.Alpha[3] > 0 {
		from[alpha3] = "fitted: with it, stretches of time are foretold clearly better than without"
	}
	for _, k := range []int{beta1, beta2} {
		if r.fit.id.has(names[k]) && hardly(k) {
			from[k] = fmt.Sprintf("the data and a roofline's %.4g together: the data alone cannot tell it from others", f.prior.list()[k])
		}
	}
	if f.slope.trust < 0.9 && !r.fit.id.has(names[beta2]) {
		from[beta2] = fmt.Sprintf("%.0f %% data (%.3g), %.0f %% a roofline's slope (%.3g): batches scatter by %.2g sequences about %.3g, over which what single requests are off a line may be as large a slope",
			100*f.slope.trust, f.told.x[atBeta2], 100*(1-f.slope.trust), f.prior.Beta[2], f.load.scatter, f.load.sequences)
	}
	return from
}

// farApart is how many standard deviations the data and a roofline are apart where they
// contradict each other.
const farApart = 2.5

// warnPrior warns where the data contradict a roofline, and where coefficients are not
// between what the data alone say.
func (r *Report) warnPrior(f *clientFit, data []Interval) {
	told, got := f.coefficients(f.told.x), f.list()
	if f.slope.conflict > farApart {
		r.setup.warnf("beta[2]: the data say %.4g us (%.4g to %.4g) and a roofline %.4g, which is %.2g standard deviations off: the data are believed to %.0f %%, it is %.4g",
			told.Beta[2], data[beta2].Low, data[beta2].High, f.prior.Beta[2], f.slope.conflict, 100*f.slope.trust, got[beta2])
	}
	var off []string
	for k, i := range data {
		if got[k] < i.Low || got[k] > i.High {
			off = append(off, fmt.Sprintf("%s %.5g, not %.5g (%.4g to %.4g)", names[k], got[k], told.list()[k], i.Low, i.High))
		}
	}
	if off != nil {
		r.setup.warnf("a roofline's beta[2] of %.4g moves coefficients out of the intervals of what the data alone say: %s", f.prior.Beta[2], strings.Join(off, "; "))
	}
}

// leastRequests are the fewest that a fit by simulation is made to, and fewRequests
// those below which its intervals are said to be rough.
const (
	leastRequests = 20
	fewRequests   = 100
)

// enough divides runs into blocks, and faults or warns of too few requests.
func (s *setup) enough(runs []*run) error {
	requests, most, blocks := 0, 0, 0
	for _, r := range runs {
		r.divide()
		for _, b := range r.blocks {
			requests += len(b)
		}
		blocks, most = blocks+len(r.blocks), max(most, len(r.blocks))
	}
	if requests < leastRequests || most < 2 {
		more := "; a smaller --holdout leaves more"
		if !slices.ContainsFunc(runs, func(r *run) bool { return slices.Contains(r.used, false) }) {
			more = ""
		}
		return fmt.Errorf("only %d completed requests of %d runs are there to fit to; %d are the least, of at least one run %d%s", requests, len(runs), leastRequests, 2*leastSize, more)
	}
	if requests < fewRequests {
		s.warnf("only %d completed requests are fitted to: intervals of the scatter of %d blocks of so few are rough, and hold what is true less often than they say", requests, blocks)
	}
	return nil
}
