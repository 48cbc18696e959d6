package calibrate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"blis/pkg/latency"
	"blis/pkg/leastsq"
	"blis/pkg/stat"
)

// intervals are those of coefficients.
type intervals [len(names)]stat.Interval

// fitResult is what a fit found.
type fitResult struct {
	value coefficients
	table *latency.Table // instead of β; nil: none
	shape shape
	// ci are confidence intervals by the scatter of the data alone. uncertainty is that of the
	// coefficients, with the error of the model and the prior: wider or narrower. It is ci
	// where a regression gives both.
	ci, uncertainty intervals
	prefill         stat.Interval // the uncertainty of beta[1] for the fitted workload
	source          [len(names)]string
	method          string
	id              leastsq.Identifiability
	load            load
	simulated       bool // with the simulator in the loop
}

// newReport fits coefficients, or takes those to evaluate, and scores them: on held-out data, or on
// all.
func (s *setup) newReport(ctx context.Context) (*report, error) {
	r := &report{setup: s, Scores: []*score{}}
	var m latency.Model
	var err error
	if s.options.Evaluate == "" {
		if err = r.fitAll(ctx); err == nil {
			m, err = r.fit.shape.model(r.fit.value, r.fit.table)
		}
	} else {
		r.holdouts, r.Set = s.allStages(), s.given
		if m, err = s.given.Latency.Build(nil, s.shape.operators); err == nil && len(s.steps) > 0 {
			r.StepScore = newStepScore(fmt.Sprintf("%d steps", len(s.steps)), stepErrors(s.steps, m))
			r.stepModel = m
		}
	}
	if err == nil {
		err = r.score(ctx, m)
	}
	if err != nil {
		return nil, err
	}
	r.finish()
	return r, nil
}

// fitAll fits to what the recordings have: β to steps, α and else β to the server's spans, and
// the rest by simulation to client timings.
func (r *report) fitAll(ctx context.Context) (err error) {
	s := r.setup
	r.Scatter = &scatter{minScatter, minScatter}
	if r.holdouts, err = s.holdOut(ctx); err != nil {
		return err
	}
	var spans, clients []*replay
	for _, run := range s.replays {
		switch {
		case !slices.Contains(run.fitted, true):
		case run.serverClock:
			spans = append(spans, run)
		case run.hasArrivals:
			clients = append(clients, run)
		default:
			s.warnf("%s: ignored: without arrivals it cannot be replayed, and it has no server timings", run.name)
		}
	}
	switch {
	case len(s.steps) > 0:
		if err = r.fitSteps(len(spans) > 0); err == nil && len(spans) > 0 {
			r.fitAlpha(newSpanData(spans, s.deployment.Engine.MaxNumBatchedTokens))
		}
	case len(spans) > 0:
		if err = r.fitSpans(spans); err != nil {
			break
		}
		spans = slices.DeleteFunc(spans, func(run *replay) bool { return !run.hasArrivals || run.hiddenPrefixes })
		if len(spans) > 0 {
			known := r.fit.value
			err = r.fitClients(ctx, spans, &known)
		}
	case len(clients) > 0:
		err, clients = r.fitClients(ctx, clients, nil), nil
	default:
		return errors.New("the recordings have nothing to fit to")
	}
	if err == nil && len(s.steps) == 0 {
		r.addWorkloads()
	}
	if err == nil && len(clients) > 0 {
		s.warnf("client timings are ignored when step or server timings are present; " +
			"use --evaluate to compare with them")
	}
	return err
}

// fitClients fits by simulation to client timings; known are coefficients by the server's own
// times, whose α is kept; nil without.
func (r *report) fitClients(ctx context.Context, runs []*replay, known *coefficients) error {
	s := r.setup
	r.fit.simulated = true
	if err := s.checkEnough(runs); err != nil {
		return err
	}
	l := loadOf(runs)
	if math.IsNaN(l.sequences) {
		return errors.New("no request has the times of a first and a later token: " +
			"outputs of one token, or not streamed, do not identify step times")
	}
	var guesses []coefficients
	if known != nil {
		guesses = append(guesses, *known)
	}
	if s.given != nil {
		var c coefficients
		copy(c[:beta0], s.given.Latency.AlphaUS)
		copy(c[beta0:], s.given.Latency.BetaUS)
		if o := s.given.Latency.Factors; o != nil {
			c[beta0], c[beta1], c[beta2], c[beta3] = o.StepUS, o.Prefill, o.SequenceUS, o.ContextUS
		}
		guesses = append(guesses, c)
	}
	s.options.progress("fitting")
	f, err := s.fitShape(ctx, runs, l, known, guesses)
	if err == nil {
		f, err = r.excludeWarmup(ctx, f)
	}
	if err == nil {
		f, err = r.findSharedPrefix(ctx, f)
	}
	if err == nil {
		err = f.finish(ctx)
	}
	if err != nil {
		return err
	}
	bySpans := r.fit
	r.fit.value, r.fit.load, r.fit.shape = f.value, f.load, f.shape
	r.fit.ci, r.fit.uncertainty = f.intervals()
	r.describeSources(f)
	if known != nil {
		copy(r.fit.source[:], bySpans.source[:beta0])
		copy(r.fit.ci[:], bySpans.ci[:beta0])
		copy(r.fit.uncertainty[:], bySpans.ci[:beta0])
	}
	all, residuals, err := f.simulate(ctx, f.value)
	if err != nil {
		return err
	}
	r.Scatter = newScatter(residuals)
	if r.Trend = newTrend(runs, all); r.Trend != nil && known == nil && f.value[alpha3] == 0 {
		// If the loads do not separate them, alpha[0] has what alpha[3] would have.
		early, late := r.Trend.errorRange(f.load.sequences)
		u := &r.fit.uncertainty[alpha0]
		u.Lo, u.Hi = max(0, u.Lo-1e3*late), u.Hi-1e3*early
	}
	r.StepScore = nil
	r.fit.method = fmt.Sprintf("simulator in the loop: replays of %d runs are compared with mean TPOT, E2E and TTFT "+
		"of blocks of time, and TTFT by prompt length and concurrency; Levenberg-Marquardt with Huber weights, "+
		"then response surfaces; intervals from a jackknife over segments of time", len(runs))
	return nil
}

// fitShape fits to client timings with the kernels' time of prefill, or with a line where it is unknown
// or the fit starts from one.
func (s *setup) fitShape(ctx context.Context, runs []*replay, l load, known *coefficients,
	guesses []coefficients) (*simFit, error) {
	prior := s.prior(l)
	if s.shape.kernels == nil || s.given != nil && s.given.Latency.Factors == nil {
		return fitReplays(ctx, runs, shape{}, prior, known, guesses...)
	}
	if known != nil {
		guesses[0][beta1] /= s.shape.perToken(l.context)
	}
	prior = prior.withKernels(s.shape, l, s.deployment.Engine.MaxNumSeqs)
	return fitReplays(ctx, runs, s.shape, prior, known, guesses...)
}

// looseWidth is the relative width of an interval above which a collinear coefficient counts
// as not identifiable: much data may identify it nevertheless.
const looseWidth = 0.25

// describeSources finds which coefficients are identifiable, and describes where each comes
// from.
func (r *report) describeSources(f *simFit) {
	var fitted []string
	t := make([][]float64, len(f.solution.X)) // makes parameters of coefficients
	for k := range t {
		fitted, t[k] = append(fitted, names[fittedAt[k]]), make([]float64, len(t))
		t[k][k] = 1
	}
	t[atStep][atBeta2] = f.load.sequences
	id := f.problem.Identify(f.solution, fitted, t)
	loose := func(k int) bool { return r.fit.ci[k].Hi-r.fit.ci[k].Lo > looseWidth*f.value[k] }
	if r.setup.nearConstantLength() == "" {
		id.Not = slices.DeleteFunc(id.Not, func(name string) bool { return !loose(slices.Index(names[:], name)) })
	}
	r.fit.id = id
	source := [len(names)]string{alpha0: "fitted", alpha1: "0: clients hardly distinguish it from beta[1]",
		alpha2: "0: clients do not distinguish it from alpha[0]", beta0: "fitted", beta1: "fitted", beta2: "fitted",
		beta3: physicsBeta3 + "; clients hardly distinguish it from beta[2]"}
	if f.prior[beta3] == 0 {
		source[beta3] = "0: held-out segments are predicted better without it; it is in beta[2]"
	}
	source[alpha3] = "0: held-out segments are not predicted clearly better with it"
	if f.value[alpha3] > 0 {
		source[alpha3] = "fitted: held-out segments are predicted clearly better with it"
	}
	prior := map[int]string{beta1: "roofline prior", beta2: "roofline prior"}
	if f.shape.kernels != nil {
		prior = map[int]string{beta1: "prior of kernels", beta2: "prior of roofline and kernels"}
	}
	for _, k := range []int{beta1, beta2} {
		if id.Has(names[k]) && loose(k) {
			source[k] = fmt.Sprintf("data and %s %.4g: not identifiable from data alone", prior[k], f.prior[k])
		}
	}
	if w := f.slope.dataWeight; w < 0.9 && !id.Has(names[beta2]) {
		source[beta2] = fmt.Sprintf("%.0f %% data (%.3g), %.0f %% %s (%.3g): batches vary by only %.2g "+
			"sequences", 100*w, f.dataOnly.X[atBeta2], 100*(1-w), prior[beta2], f.prior[beta2], f.load.sd)
	}
	r.fit.source = source
}

const physicsBeta3 = "physics: KV bytes of a token on one GPU over its memory bandwidth"

// A fit by simulation needs minRequests; below fewRequests its intervals are rough.
const (
	minRequests = 20
	fewRequests = 100
)

// checkEnough makes blocks, and returns an error or warns if requests are too few.
func (s *setup) checkEnough(runs []*replay) error {
	requests, blocks, most, heldOut := 0, 0, 0, false
	for _, r := range runs {
		r.makeBlocks()
		for _, b := range r.blocks {
			requests += len(b)
		}
		blocks, most = blocks+len(r.blocks), max(most, len(r.blocks))
		heldOut = heldOut || slices.Contains(r.fitted, false)
	}
	if requests < minRequests || most < 2 {
		hint := ""
		if heldOut {
			hint = "; a smaller --holdout leaves more"
		}
		return fmt.Errorf("too few completed requests to fit to: %d of %d runs; at least %d are needed, %d of them in "+
			"one run%s", requests, len(runs), minRequests, 2*minBlockSize, hint)
	}
	if requests < fewRequests {
		s.warnf("only %d completed requests are fitted, in %d blocks: confidence intervals are rough and too narrow",
			requests, blocks)
	}
	return nil
}
