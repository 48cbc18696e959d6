package calibrate

import (
	"context"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
)

// clientFit is coefficients fitted by simulation in the loop, to what clients saw.
type clientFit struct {
	Coefficients
	problem  *problem
	solution *solution
	runs     []*run
	load     load // the level is at its mean number of sequences
	prior    prior
	// before is what is before the queue, where the server's own times tell it; nil:
	// it is fitted, as alpha[0].
	before *[4]float64
	// told is where the data alone lead, and slope what is believed of their beta[2].
	told  *solution
	slope slope
}

// The parameters of the search. A step's time at the mean batch, the level, is
// known far better than β0 at an empty one, and hardly hangs on β2.
const (
	atAlpha0 = iota
	atLevel
	atBeta1
	atBeta2
	// atAlpha3 is there only where alpha[3] earned its place.
	atAlpha3
)

// coefficients are what the search's parameters stand for.
func (f *clientFit) coefficients(x []float64) Coefficients {
	c := Coefficients{}
	c.Alpha[0] = x[atAlpha0]
	if f.before != nil {
		c.Alpha[1] = f.before[1]
	}
	if len(x) > atAlpha3 {
		c.Alpha[3] = x[atAlpha3]
	}
	c.Beta = [4]float64{max(0, x[atLevel]-f.load.sequences*x[atBeta2]), x[atBeta1], x[atBeta2], f.prior.Beta[3]}
	return c
}

// parametersOf are the reverse, without alpha[3].
func (f *clientFit) parametersOf(c Coefficients) []float64 {
	x := make([]float64, atAlpha3)
	x[atAlpha0], x[atLevel], x[atBeta1], x[atBeta2] = c.Alpha[0], c.Beta[0]+f.load.sequences*c.Beta[2], c.Beta[1], c.Beta[2]
	return x
}

// clearly is by what factor a later start must have less loss.
const clearly = 1.5

// fitClient fits α0, β0, β1 and β2 to runs by playing them. Starts are where the
// search begins, beside where the concurrency of the recordings and the prior say;
// the best after two rounds goes on.
func fitClient(ctx context.Context, runs []*run, p prior, before *[4]float64, starts ...Coefficients) (*clientFit, error) {
	for _, r := range runs {
		r.divide()
	}
	f := posed(runs, p, loadOf(runs), before)
	return f, f.fit(ctx, append(starts, f.starts()...))
}

// fit fits from the best of some starts.
func (f *clientFit) fit(ctx context.Context, starts []Coefficients) error {
	var best *solution
	for _, c := range starts {
		s, err := f.problem.search(ctx, f.parametersOf(c), 2)
		for range planesLeft {
			if err == nil {
				s, _, err = f.problem.surface(ctx, s) // of points, chance is compared
			}
		}
		if err != nil {
			return err
		}
		if f.problem.spread == nil { // of the first start, which is the most likely
			f.problem.spread = s.spread
		}
		// Starts are the likelier the earlier they stand: a little less loss is chance.
		if s.loss = f.problem.loss(s, s.x, s.r); best == nil || s.loss < best.loss/clearly {
			best = s
		}
	}
	// What residuals scatter by is known better near the solution than at a start.
	f.problem.spread = f.problem.scatter(best.r)
	var err error
	if f.solution, err = f.settle(ctx, best, 12); err != nil {
		return err
	}
	if err := f.doubtContext(ctx); err != nil {
		return err
	}
	if err := f.earn(ctx); err != nil {
		return err
	}
	return f.weighSlope(ctx)
}

// A search ends with so many planes; the first few lead to where the others are.
const (
	planesDrawn = 7
	planesLeft  = 3
)

// settle searches on to where nothing is better, and then on planes through boxes. The
// solution is the minimum of the mean of planes, but for the first. What points lie lower
// near it are hollows of chance.
func (f *clientFit) settle(ctx context.Context, s *solution, rounds int) (*solution, error) {
	s, err := f.problem.search(ctx, s.x, rounds)
	if err != nil {
		return nil, err
	}
	var planes []*flat
	for i := range planesDrawn {
		next, l, err := f.problem.surface(ctx, s)
		if err != nil {
			return nil, err
		}
		if s = next; i+1 == planesLeft && f.problem.parameters[atBeta2].spread > 0 {
			s.spread = f.problem.scatter(s.r)
			f.problem.spread = s.spread
		}
		if i >= planesLeft {
			planes = append(planes, l)
		}
	}
	s = f.problem.lowest(meanOf(planes), s.spread)
	s.wander = f.problem.apart(planes, s)
	return s, nil
}

// lossAt is the loss where a solution stands, which planes only come near.
func (f *clientFit) lossAt(ctx context.Context, s *solution) (float64, error) {
	r, err := f.problem.residuals(ctx, s.x)
	if err != nil {
		return 0, err
	}
	return f.problem.loss(s, s.x, r), nil
}

// posed is a fit whose search is set up.
func posed(runs []*run, p prior, l load, before *[4]float64) *clientFit {
	f := &clientFit{runs: runs, prior: p, load: l, before: before}
	level := max(1, p.Beta[0]+f.load.sequences*(p.Beta[2]+p.Beta[3]*f.load.context))
	f.problem = &problem{
		kinds: features * len(f.runs),
		parameters: []parameter{
			{name: "alpha[0]", most: 1e6, step: 300, longest: level},
			{name: "level", least: 1, most: 1e8, step: level / 100, longest: level / 10},
			{name: "beta[1]", most: 1e5, step: max(1, p.Beta[1]/6), longest: p.Beta[1] + 1, prior: p.Beta[1], spread: p.Beta[1]},
			{name: "beta[2]", most: 1e5, step: max(1, p.Beta[2]/8), longest: 2*p.Beta[2] + 20, prior: p.Beta[2], spread: 10*p.Beta[2] + 100},
		},
		residuals: func(ctx context.Context, x []float64) ([]float64, error) { return f.play(ctx, f.coefficients(x)) },
	}
	if f.before != nil {
		q := &f.problem.parameters[atAlpha0]
		q.prior, q.spread = f.before[0], 1+f.before[0]/1000
	}
	var kinds []int
	var worth []float64
	for i, r := range f.runs {
		requests := 0.0
		for _, b := range r.blocks {
			requests += float64(len(b)) / float64(len(r.blocks))
		}
		for _, b := range r.blocks {
			for k := range features {
				kinds = append(kinds, features*i+k)
				// Chance alone would make a block worth as much as it has requests; what
				// the model lacks does not get less with them.
				worth = append(worth, math.Sqrt(math.Sqrt(float64(len(b))/requests)))
			}
		}
	}
	f.problem.kind = func(i int) int { return kinds[i] }
	f.problem.worth = func(i int) float64 { return worth[i] }
	return f
}

// play compares all runs at some coefficients.
func (f *clientFit) play(ctx context.Context, c Coefficients) ([]float64, error) {
	m, err := c.model()
	if err != nil {
		return nil, err
	}
	var all []float64
	for _, r := range f.runs {
		s, err := r.play(ctx, m)
		if err != nil {
			return nil, err
		}
		all = append(all, r.compare(s)...)
	}
	return all, nil
}

// starts are coefficients to begin with: a line through token times over the
// reconstructed concurrency, the prior, and a plane over concurrency and prompts.
func (f *clientFit) starts() []Coefficients {
	one := f.prior.Coefficients
	var ttft []float64
	for _, r := range f.runs {
		for i, s := range r.measured {
			if r.used[i] && !math.IsNaN(s.ttft) {
				ttft = append(ttft, s.ttft)
			}
		}
	}
	slices.Sort(ttft)
	if b0, b2, ok := line(f.runs); ok {
		one.Beta[0] = b0
		one.Beta[2] = max(0, b2-one.Beta[3]*f.load.context)
	}
	// A request waits for the rest of a step and takes one; with asynchronous
	// scheduling for one more.
	step := one.Beta[0] + f.load.sequences*(one.Beta[2]+one.Beta[3]*f.load.context)
	waits := 1.5
	if f.runs[0].async {
		waits = 2.5
	}
	if len(ttft) > 0 {
		one.Alpha[0] = max(0, ttft[len(ttft)/2]-waits*step)
	}
	if f.before != nil {
		one.Alpha[0] = f.before[0]
	}
	two := one
	two.Beta[0], two.Beta[2] = max(0, one.Beta[0]+f.load.sequences*(one.Beta[2]-f.prior.Beta[2])), f.prior.Beta[2]
	if f.before == nil {
		two.Alpha[0] /= 2
	}
	three, ok := plane(f.runs, f.prior.Beta[3])
	if !ok {
		return []Coefficients{one, two}
	}
	// Where requests queue, the soonest first tokens tell what is before the queue.
	var before []float64
	for _, r := range f.runs {
		for i, s := range r.measured {
			if r.used[i] && !math.IsNaN(s.ttft) && !r.repeats(i) {
				before = append(before, s.ttft-waits*(three.Beta[0]+three.Beta[2])-three.Beta[1]*float64(r.requests[i].InputTokens))
			}
		}
	}
	if slices.Sort(before); len(before) > 0 {
		three.Alpha[0] = max(0, before[len(before)/10])
	}
	if f.before != nil {
		three.Alpha[0] = f.before[0]
	}
	return []Coefficients{one, two, three}
}

// normal is the normal matrix of the data alone, in units of the coefficients:
// alpha[0], beta[0], beta[1], beta[2] and, if it was fitted, alpha[3].
func (f *clientFit) normal() mat.Symmetric {
	p := *f.problem
	parameters := len(p.parameters)
	p.parameters = make([]parameter, parameters) // no priors
	h, _ := p.normal(f.solution, always)
	t := mat.NewDense(parameters, parameters, nil)
	for i := range parameters {
		t.Set(i, i, 1)
	}
	t.Set(atLevel, atBeta2, f.load.sequences)
	var a, b mat.Dense
	a.Mul(h, t)
	b.Mul(t.T(), &a)
	out := mat.NewSymDense(parameters, nil)
	for i := range parameters {
		for k := i; k < parameters; k++ {
			out.SetSym(i, k, b.At(i, k))
		}
	}
	return out
}
