package calibrate

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"blis/pkg/catalog"
	"blis/pkg/des"
	"blis/pkg/latency"
	"blis/pkg/recording"
)

// fit fits to what the recordings have: steps tell β, the server's spans α and, if
// there are no steps, β; what is left is fitted by simulation to what clients saw.
func (s *setup) fit(ctx context.Context) (*Report, error) {
	parts, err := s.holdOut(ctx)
	if err != nil {
		return nil, err
	}
	r := &Report{setup: s, parts: parts, Scores: []*Score{}}
	var spans, clients []*run
	for _, run := range s.runs {
		switch {
		case !slices.Contains(run.used, true):
		case run.clock == recording.ServerClock:
			spans = append(spans, run)
		case run.arrivals:
			clients = append(clients, run)
		default:
			s.warnf("%s: without arrivals there is nothing to replay, and no server's times of queue and prefill: nothing is fitted to it", run.name)
		}
	}
	switch {
	case len(s.steps) > 0:
		err = r.fromSteps()
		if err == nil && len(spans) > 0 {
			err = r.alphaFromSpans(spans)
		}
	case len(spans) > 0:
		if err = r.fromSpans(spans); err != nil {
			break
		}
		if replayed := slices.DeleteFunc(slices.Clone(spans), func(r *run) bool { return !r.arrivals || r.cached }); len(replayed) > 0 {
			before := r.fit.Alpha
			err = r.fromClients(ctx, replayed, &before, r.fit.Coefficients)
		}
	case len(clients) > 0:
		err = r.fromClients(ctx, clients, nil)
	default:
		err = fmt.Errorf("nothing in the recordings can be fitted to")
	}
	if err != nil {
		return nil, err
	}
	if len(clients) > 0 && len(spans)+len(s.steps) > 0 {
		s.warnf("what clients saw is not fitted to beside steps or spans; it can be held against them: --holdout FILE, or --check")
	}
	for k, d := range r.fit.doubts {
		if d == (Interval{}) {
			r.fit.doubts[k] = r.fit.intervals[k]
		}
	}
	if err := r.score(ctx, r.slower); err != nil {
		return nil, err
	}
	r.finish()
	return r, nil
}

// check scores coefficients on all that was recorded.
func (s *setup) check(ctx context.Context, set *catalog.Set) (*Report, error) {
	r := &Report{setup: s, parts: s.everything(), Set: set, Scores: []*Score{}}
	m, err := set.Latency.Build()
	if err != nil {
		return nil, err
	}
	if err := r.score(ctx, func(by float64) (latency.Model, error) { return scaledModel{m, 1 + by}, nil }); err != nil {
		return nil, err
	}
	if len(s.steps) > 0 {
		var off []float64
		for _, x := range s.steps {
			off = append(off, float64(m.Step(latency.Batch{Prefill: x.Prefill, Decode: x.Decode, Context: max(0, x.Context)}))/x.US-1)
		}
		r.StepScore = stepScore(fmt.Sprintf("%d steps", len(off)), off)
		s.warnByKind(s.steps, m)
	}
	for _, f := range s.files {
		if slices.ContainsFunc(set.Recordings, func(r catalog.Recording) bool {
			return r.Digest == f.Digest && (len(r.Runs) == 0 || slices.ContainsFunc(f.Names(), func(name string) bool { return slices.Contains(r.Runs, name) }))
		}) {
			s.warnf("%s: the coefficients were fitted to it, at least in part: its errors are no accuracy", f.Path)
		}
	}
	r.warnSetup()
	r.Warnings = append([]string{}, s.warnings...)
	return r, nil
}

// scaledModel has steps longer by a factor.
type scaledModel struct {
	latency.Model
	factor float64
}

func (m scaledModel) Step(b latency.Batch) des.Time {
	return max(1, des.Micros(float64(m.factor*float64(m.Model.Step(b)))))
}

// score judges by all parts that can be replayed.
func (r *Report) score(ctx context.Context, model func(slower float64) (latency.Model, error)) error {
	for i := range r.parts {
		p := &r.parts[i]
		r.setup.options.progress("judging by %s", p.name)
		if !p.run.arrivals {
			r.setup.warnf("%s cannot be replayed to judge by: it has no arrivals", p.name)
			continue
		}
		score, err := p.score(ctx, model, r.doubts)
		if err != nil {
			return err
		}
		r.Scores = append(r.Scores, score)
		r.keep(p.run, p.simulated, p.in)
	}
	return nil
}

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
	if err != nil {
		return err
	}
	r.fit.Coefficients, r.fit.load = f.Coefficients, f.load
	intervals, doubts := f.intervals()
	fitted := []string{names[alpha0], names[beta0], names[beta1], names[beta2]}
	if len(f.problem.parameters) > atAlpha3 {
		fitted = append(fitted, names[alpha3])
	}
	r.fit.id = identify(fitted, f.normal())
	hardly := func(k int) bool { return intervals[k].High-intervals[k].Low > toldWell*f.list()[k] }
	if s.alike() == "" {
		r.fit.id.keep(func(name string) bool { return hardly(slices.Index(names[:], name)) })
	}
	from := []string{"fitted", "0: hardly differs from 0 in any recording, and is not told by prompts of like lengths", "0: a client cannot tell it from alpha[0]", "",
		"fitted", "fitted", "fitted", "physics: the bytes of a token's keys and values on one GPU over its memory's bandwidth; contexts hardly differ inside a recording"}
	if f.Alpha[3] > 0 {
		from[alpha3] = "fitted: with it, stretches of time are foretold clearly better than without"
	}
	for _, k := range []int{beta1, beta2} {
		if r.fit.id.has(names[k]) && hardly(k) {
			from[k] = fmt.Sprintf("the data and a roofline's %.4g together: the data alone cannot tell it from others", f.prior.list()[k])
		}
	}
	r.warnPrior(f, intervals)
	first := 0
	if before != nil {
		first = beta0 // alpha is known from spans
	}
	copy(r.fit.from[first:], from[first:])
	copy(r.fit.intervals[first:], intervals[first:])
	r.fit.doubts = r.fit.intervals
	copy(r.fit.doubts[first:], doubts[first:])
	if f.slope.trust < 0.9 && !r.fit.id.has(names[beta2]) {
		r.fit.from[beta2] = fmt.Sprintf("%.0f %% data (%.3g), %.0f %% a roofline's slope (%.3g): batches scatter by %.2g sequences about %.3g, over which what single requests are off a line may be as large a slope",
			100*f.slope.trust, f.told.x[atBeta2], 100*(1-f.slope.trust), f.prior.Beta[2], f.load.scatter, f.load.sequences)
	}
	if err := r.playFitted(ctx, runs); err != nil {
		return err
	}
	r.Drift = driftOf(r.played)
	if err := r.otherScheduling(ctx, f); err != nil {
		return err
	}
	if err := r.withoutStart(ctx, f); err != nil {
		return err
	}
	r.StepScore = nil
	r.fit.method = fmt.Sprintf("simulation in the loop: %d runs replayed with their arrivals, lengths and repeated prompts; mean TPOT, E2E, TTFT and median TTFT of blocks of time, weighed robustly (Huber), by Levenberg and Marquardt's method, at last on planes through many simulations; intervals by a jackknife over stretches of time", len(runs))
	return nil
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

// otherScheduling fits with asynchronous scheduling the other way round, and says
// which fits.
func (r *Report) otherScheduling(ctx context.Context, f *clientFit) error {
	var others []*run
	for _, run := range f.runs {
		other := *run
		other.player, other.otherwise, other.async = run.otherwise, run.player, !run.async
		others = append(others, &other)
	}
	o, err := f.over(others).problem.search(ctx, f.solution.x, 5)
	if err != nil {
		return err
	}
	was, is := f.problem.loss(f.solution, f.solution.x, f.solution.r), f.problem.loss(f.solution, o.x, o.r)
	r.Scheduling = fmt.Sprintf("async_scheduling %v: misfit %.4g; with %v it would be %.4g", f.runs[0].async, was, !f.runs[0].async, is)
	if is < 0.8*was {
		r.setup.warnf("async_scheduling %v fits better than %v, which the engine is taken to have (misfit %.3g against %.3g): are the engine's settings as they were?", !f.runs[0].async, f.runs[0].async, is, was)
	}
	return nil
}

// startSeconds is the start of a recording in which servers may still warm up.
const startSeconds = 20

// withoutStart fits again without the first seconds, and warns where that matters.
func (r *Report) withoutStart(ctx context.Context, f *clientFit) error {
	var later []*run
	cut := false
	for _, run := range f.runs {
		other := *run
		other.used = slices.Clone(run.used)
		for i, q := range run.requests {
			if q.ArrivalUS < startSeconds*1e6 && other.used[i] {
				other.used[i], cut = false, true
			}
		}
		other.divide()
		later = append(later, &other)
	}
	if !cut || slices.ContainsFunc(later, func(r *run) bool { return len(r.blocks) < 4 }) {
		return nil
	}
	other := f.over(later)
	s, err := other.problem.search(ctx, f.solution.x, 5)
	if err != nil {
		return err
	}
	was, err := other.lossAt(ctx, &solution{x: f.solution.x, spread: s.spread})
	if err != nil {
		return err
	}
	if !clearer(was, s.loss, len(s.r)) {
		return nil
	}
	x, at := f.coefficients(s.x), f.Coefficients
	a, b := x.list(), at.list()
	for k, i := range r.fit.doubts {
		if r.fit.id.has(names[k]) {
			continue // where it ends is chance
		}
		if k == beta1 && slices.ContainsFunc(f.runs, func(r *run) bool { return r.period > 0 }) {
			continue // the prompts that tell it came first
		}
		if a[k] < i.Low-0.05*math.Abs(b[k]) || a[k] > i.High+0.05*math.Abs(b[k]) {
			r.setup.warnf("without its first %d s, %s would be %.4g and not %.4g: did the server stall or warm up then?", startSeconds, names[k], a[k], b[k])
		}
	}
	return nil
}

// clearer reports whether so many residuals prefer one solution to another by more
// than chance: three standard deviations, where residuals scatter as the loss left says.
func clearer(was, is float64, residuals int) bool {
	return was-is > 9*max(1, is/float64(max(1, residuals)))
}

// over is the problem of f over other runs, with its slope and, where it has one, its
// alpha[3].
func (f *clientFit) over(runs []*run) *clientFit {
	other := &clientFit{runs: runs, prior: f.prior, load: f.load, before: f.before}
	other.pose(f.prior)
	other.problem.spread = f.problem.spread
	other.problem.parameters = f.problem.parameters
	return other
}

// slower is the fitted model with steps longer by a part.
func (r *Report) slower(by float64) (latency.Model, error) {
	m, err := r.fit.model()
	if r.fit.table != nil {
		m, err = buildTable(r.fit.Alpha, r.fit.table)
	}
	return scaledModel{m, 1 + by}, err
}
