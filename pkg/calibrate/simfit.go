package calibrate

import (
	"context"
	"math"
	"slices"

	"blis/pkg/leastsq"
)

// simFit is a fit with the simulator in the loop to client timings.
type simFit struct {
	value    coefficients
	problem  *leastsq.Problem
	solution *leastsq.Solution
	replays  []*replay
	shape    shape
	load     load // the mean batch is at its mean number of sequences
	prior    coefficients
	// known has the time before the queue where server timings give it; nil: it is fitted.
	known *coefficients
	// dataOnly is the solution without the estimate of beta[2], which is slope; free is the parameter without it.
	dataOnly *leastsq.Solution
	free     leastsq.Parameter
	slope    slope
}

// The parameters of the search. The time of a step at the mean batch is known far more
// precisely than β0, that of an empty one, and hardly depends on β2.
const (
	atAlpha0 = iota
	atStep
	atBeta1
	atBeta2
	atAlpha3 // only where alpha[3] lowers the prediction error
)

// fittedAt are the coefficients at the parameters; at atStep it is β0, and what the mean number
// of sequences takes.
var fittedAt = [...]int{alpha0, beta0, beta1, beta2, alpha3}

// changes are those of coefficients where parameters change.
func (f *simFit) changes(x []float64) (c coefficients) {
	for k, v := range x {
		c[fittedAt[k]] = v
	}
	c[beta0] -= f.load.sequences * x[atBeta2]
	return c
}

// coefficientsAt are the coefficients at some parameters.
func (f *simFit) coefficientsAt(x []float64) coefficients {
	c := f.changes(x)
	c[beta0], c[beta3] = max(0, c[beta0]), f.prior[beta3]
	if f.known != nil {
		c[alpha1] = f.known[alpha1]
	}
	return c
}

// parametersAt is the inverse, without alpha[3].
func (f *simFit) parametersAt(c coefficients) []float64 {
	return []float64{c[alpha0], c[beta0] + f.load.sequences*c[beta2], c[beta1], c[beta2]}
}

// newSimFit sets up the search.
func newSimFit(replays []*replay, of shape, p coefficients, l load, known *coefficients) *simFit {
	f := &simFit{replays: replays, shape: of, prior: p, load: l, known: known}
	step := max(1, p[beta0]+l.sequences*(p[beta2]+p[beta3]*l.context))
	token := of.perToken(l.context)
	prefillSD := p[beta1]
	if of.kernels != nil {
		_, prefillSD = meanAndSD(prefillFactor)
	}
	f.problem = &leastsq.Problem{
		Kinds: features * len(replays), Pool: features,
		Parameters: []leastsq.Parameter{
			atAlpha0: {Max: 1e6, Step: 300, MaxStep: step},
			atStep:   {Min: 1, Max: 1e8, Step: step / 100, MaxStep: step / 10},
			atBeta1: {Max: 1e5, Step: max(1/token, p[beta1]/6), MaxStep: p[beta1] + 1/token,
				Prior: p[beta1], PriorSD: prefillSD},
			atBeta2: {Max: 1e5, Step: max(1, p[beta2]/8), MaxStep: 2*p[beta2] + 20,
				Prior: p[beta2], PriorSD: 10*p[beta2] + 100},
		},
		Residuals: func(ctx context.Context, x []float64) ([]float64, error) {
			_, residuals, err := f.simulate(ctx, f.coefficientsAt(x))
			return residuals, err
		},
	}
	if known != nil {
		q := &f.problem.Parameters[atAlpha0]
		q.Prior, q.PriorSD = known[alpha0], 1+known[alpha0]/1000
	}
	for i, r := range replays {
		requests := 0.0
		for _, b := range r.blocks {
			requests += float64(len(b)) / float64(len(r.blocks))
		}
		for _, b := range r.blocks {
			// Noise alone would weight a block by its requests; the error of the model does not
			// shrink with them.
			weight := math.Sqrt(math.Sqrt(float64(len(b)) / requests))
			for k := range features {
				f.problem.Kind = append(f.problem.Kind, features*i+k)
				f.problem.Weight = append(f.problem.Weight, weight)
			}
		}
	}
	return f
}

// simulate replays all runs and compares them with what was measured.
func (f *simFit) simulate(ctx context.Context, c coefficients) (all [][]timing, residuals []float64, err error) {
	m, err := f.shape.model(c, nil)
	if err != nil {
		return nil, nil, err
	}
	for _, r := range f.replays {
		simulated, err := r.simulate(ctx, m)
		if err != nil {
			return nil, nil, err
		}
		all, residuals = append(all, simulated), append(residuals, r.residuals(simulated)...)
	}
	return all, residuals, nil
}

// worseFactor is how many times the loss of a later initial guess an earlier one may have:
// earlier ones are likelier, and a little loss is noise.
const worseFactor = 1.5

// fitReplays fits α0, α3 and β to replays, as a draft. Initial guesses are added to those that the
// concurrency of the recordings and the prior suggest.
func fitReplays(ctx context.Context, replays []*replay, of shape, p coefficients, known *coefficients,
	guesses ...coefficients) (*simFit, error) {
	for _, r := range replays {
		r.makeBlocks()
	}
	f := newSimFit(replays, of, p, loadOf(replays), known)
	return f, f.draft(ctx, append(guesses, f.initialGuesses()...))
}

// draft finds which coefficients to fit, and their values as precisely as that takes, from the best of
// some initial guesses.
func (f *simFit) draft(ctx context.Context, guesses []coefficients) error {
	var best *leastsq.Solution
	for _, c := range guesses {
		s, err := f.problem.Explore(ctx, f.parametersAt(c), 2, best)
		if err != nil {
			return err
		}
		if f.problem.Scale == nil { // of the likeliest guess
			f.problem.Scale = s.Scale
		}
		if best == nil || s.Loss < best.Loss/worseFactor {
			best = s
		}
	}
	return f.draftFrom(ctx, best)
}

// draftFrom is a draft from near a solution.
func (f *simFit) draftFrom(ctx context.Context, s *leastsq.Solution) (err error) {
	// The scale of residuals is known better near the solution than at a guess.
	f.problem.Scale = f.problem.NoiseScale(s)
	s.Scale = f.problem.Scale
	f.solution, err = f.problem.Approach(ctx, f.problem.Relinearize(s))
	for _, next := range []func(context.Context) error{f.tryWithoutBeta3, f.tryAlpha3, f.weightSlope} {
		if err == nil {
			err = next(ctx)
		}
	}
	return err
}

// finish makes a draft precise.
func (f *simFit) finish(ctx context.Context) (err error) {
	f.problem.Parameters[atBeta2] = f.free
	if f.solution, err = f.problem.Polish(ctx, f.dataOnly); err != nil {
		return err
	}
	return f.weightSlope(ctx)
}

// initialGuesses are a line through token times over concurrency, the same with the prior's
// slope, and a regression on concurrency and prompts.
func (f *simFit) initialGuesses() []coefficients {
	c := f.prior
	if line, ok := tokenTimes(f.replays, false, 0); ok {
		c[beta0] = line[beta0]
		c[beta2] = max(0, line[beta2]-c[beta3]*f.load.context)
	}
	// A request waits for the rest of a step and takes one; with asynchronous scheduling, one
	// more.
	step := c[beta0] + f.load.sequences*(c[beta2]+c[beta3]*f.load.context)
	steps := 1.5
	if f.replays[0].engine.async {
		steps = 2.5
	}
	c[alpha0] = f.alphaGuess(2, func(*replay, int) float64 { return steps * step })
	withPrior := c
	withPrior[beta0] = max(0, c[beta0]+f.load.sequences*(c[beta2]-f.prior[beta2]))
	withPrior[beta2] = f.prior[beta2]
	if f.known == nil {
		withPrior[alpha0] /= 2
	}
	p, ok := tokenTimes(f.replays, true, f.prior[beta3])
	if !ok {
		return []coefficients{c, withPrior}
	}
	// Where requests queue, the soonest first tokens show what is before the queue.
	p[alpha0] = f.alphaGuess(10, func(r *replay, i int) float64 {
		if r.isRepeat(i) {
			return math.NaN()
		}
		return steps*(p[beta0]+p[beta2]) + p[beta1]*float64(r.requests[i].InputTokens)
	})
	p[beta1] /= f.shape.perToken(f.load.context)
	return []coefficients{c, withPrior, p}
}

// alphaGuess is alpha[0] if it is known, else the TTFT beyond a time that one request of n stays
// below, of the fitted ones for which the time is no NaN.
func (f *simFit) alphaGuess(n int, time func(r *replay, i int) float64) float64 {
	if f.known != nil {
		return f.known[alpha0]
	}
	var beyond []float64
	for _, r := range f.replays {
		for i, t := range r.measured {
			if r.fitted[i] {
				beyond = appendKnown(beyond, t.ttft-time(r, i))
			}
		}
	}
	if len(beyond) == 0 {
		return 0
	}
	slices.Sort(beyond)
	return max(0, beyond[len(beyond)/n])
}

// folds is how many segments of a recording are predicted from the others.
const folds = 5

// predictionError is the loss of a solution's cross-validation over segments of time.
func (f *simFit) predictionError(p *leastsq.Problem, s *leastsq.Solution) float64 {
	fold, _ := f.segments(func(int) int { return folds })
	for i := range fold {
		fold[i] %= folds
	}
	return p.CrossValidate(s, fold, folds)
}

// clearlyLower reports whether residuals prefer one loss to another by more than noise:
// three standard deviations, where residuals scatter as the lower loss implies.
func clearlyLower(loss, than float64, residuals int) bool {
	return than-loss > 9*max(1, loss/float64(max(1, residuals)))
}

// minContextRatio is by how much the middle 80 % of contexts must differ for the data to
// separate β3 from β2.
const minContextRatio = 1.5

// tryWithoutBeta3 sets β3 to 0 if that lowers the prediction error. It stays physics where
// contexts are nearly constant: such data do not separate it from β2.
func (f *simFit) tryWithoutBeta3(ctx context.Context) error {
	perSequence := f.prior[beta3] * f.load.context
	if perSequence == 0 || f.load.contextRatio <= minContextRatio {
		return nil
	}
	p := f.prior
	p[beta2], p[beta3] = p[beta2]+perSequence, 0
	without := newSimFit(f.replays, f.shape, p, f.load, f.known)
	without.problem.Scale = f.problem.Scale
	moved := *f.solution
	moved.X = slices.Clone(f.solution.X)
	moved.X[atStep] += f.load.sequences * perSequence
	moved.X[atBeta2] += perSequence
	s, err := without.problem.Approach(ctx, &moved)
	if err != nil {
		return err
	}
	without.problem.Rescale(s, f.solution.Scale) // one scale for both
	if f.predictionError(without.problem, s) < f.predictionError(f.problem, f.solution) {
		f.prior, f.problem, f.solution = without.prior, without.problem, s
	}
	return nil
}

// minAlpha3Errors is how many standard errors alpha[3] must be above 0.
const minAlpha3Errors = 2

// tryAlpha3 adds alpha[3], a frontend's time for each decoding sequence, if it clearly lowers
// the prediction error and the fit finds it clearly above 0.
func (f *simFit) tryAlpha3(ctx context.Context) error {
	with, s, err := f.problem.Extend(ctx, f.solution, leastsq.Parameter{Max: 1e6, Step: 10,
		MaxStep: f.solution.X[atStep] / max(1, f.load.sequences)})
	if err != nil {
		return err
	}
	lower := f.predictionError(with, s)
	with.Parameters[atAlpha3].Max = 0
	if !clearlyLower(lower, f.predictionError(with, s), len(with.Kind)) {
		return nil
	}
	with.Parameters[atAlpha3].Max = 1e6
	if s, err = with.Approach(ctx, with.Relinearize(s)); err != nil {
		return err
	}
	influences, _ := f.influences(with, s)
	if s.X[atAlpha3] >= minAlpha3Errors*leastsq.StandardError(influences, atAlpha3) {
		f.problem, f.solution = with, s
	}
	return nil
}
