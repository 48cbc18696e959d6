package calibrate

import (
	"context"
	"fmt"
	"math"
	"slices"

	"blis/pkg/des"
	"blis/pkg/hardware"
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
		r.fit.regressed = true
		err = r.fromSteps()
		if err == nil && len(spans) > 0 {
			err = r.alphaFromSpans(spans)
		}
	case len(spans) > 0:
		r.fit.regressed = true
		if err = r.fromSpans(spans); err != nil {
			break
		}
		if replayed := slices.DeleteFunc(slices.Clone(spans), func(r *run) bool { return !r.arrivals || r.cached }); len(replayed) > 0 {
			before := r.fit.Alpha
			r.fit.simulated = true
			err = r.fromClients(ctx, replayed, &before, r.fit.Coefficients)
		}
	case len(clients) > 0:
		r.fit.simulated = true
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
	switch {
	case len(s.steps) > 0:
	case len(spans) > 0:
		s.warnNewPrompts(spans)
	default:
		s.warnNewPrompts(clients)
	}
	for k, d := range r.fit.doubts {
		if d == (Interval{}) {
			r.fit.doubts[k] = r.fit.intervals[k]
		}
	}
	if err := r.score(ctx, r.slower); err != nil {
		return nil, err
	}
	r.warnApart()
	r.finish()
	return r, nil
}

// check scores coefficients on all that was recorded.
func (s *setup) check(ctx context.Context, set *hardware.Set) (*Report, error) {
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
		if slices.ContainsFunc(set.Recordings, func(r hardware.Recording) bool {
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
		r.warnStall(p)
		r.keep(p.run, p.simulated, p.in)
	}
	return nil
}

// clearlyBetter is the part of the misfit below which that of asynchronous scheduling the
// other way round must be for it to be told of.
const clearlyBetter = 0.95

// otherScheduling fits with asynchronous scheduling the other way round, and says
// which fits. Both ways are searched alike, from the solution: a search stops in hollows
// of chance, and the planes that the solution is of do not.
func (r *Report) otherScheduling(ctx context.Context, f *clientFit) error {
	var others []*run
	for _, run := range f.runs {
		other := *run
		other.player, other.otherwise, other.async = run.otherwise, run.player, !run.async
		others = append(others, &other)
	}
	var misfit [2]float64
	for i, runs := range [][]*run{f.runs, others} {
		s, err := f.over(runs).problem.search(ctx, f.solution.x, 5)
		if err != nil {
			return err
		}
		misfit[i] = s.loss
	}
	is, other := f.runs[0].async, !f.runs[0].async
	r.Scheduling = fmt.Sprintf("async_scheduling %v: misfit %.4g; with %v it would be %.4g", is, misfit[0], other, misfit[1])
	r.setup.warnScheduling(is, misfit[0], misfit[1])
	return nil
}

// warnScheduling warns where the other way of scheduling fits better than the one that
// the engine is taken to have.
func (s *setup) warnScheduling(is bool, misfit, other float64) {
	if other < clearlyBetter*misfit {
		s.warnf("async_scheduling %v fits better than %v, which the engine is taken to have (misfit %.4g against %.4g): are the engine's settings as they were?", !is, is, other, misfit)
	}
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
	other := posed(runs, f.prior, f.load, f.before)
	other.problem.spread = f.problem.spread
	other.problem.parameters = slices.Clone(f.problem.parameters) // a search fits its steps
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
