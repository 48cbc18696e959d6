package calibrate

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"blis/pkg/latency"
	"blis/pkg/recording"
	"blis/pkg/stat"
)

// fromSteps fits β to measured steps: a line, and where the steps are a grid of
// batches, as profilers measure them, a table, of which the better on half of the
// steps, fitted to the other half, is taken.
func (r *Report) fromSteps() error {
	s := r.setup
	steps, gpuOnly, err := s.usable()
	if err != nil {
		return err
	}
	fit, held := halves(steps)
	n, context := 0.0, 0.0
	var sequences []float64
	for _, x := range steps {
		n, context, sequences = n+float64(x.Decode), context+float64(x.Context), append(sequences, float64(x.Decode))
	}
	r.fit.load = load{sequences: max(1, n/float64(len(steps))), context: context / max(1, n)}
	r.fit.load.least, r.fit.load.most = extent(sequences)
	p := s.prior(r.fit.load)
	all, rest := stepRegression(fit), stepRegression(held)
	r.regress(all, rest, p, fmt.Sprintf("%d of the %d steps", len(held), len(steps)))
	r.fit.from[alpha0], r.fit.from[alpha1], r.fit.from[alpha2] = "unknown, taken as 0: steps have no requests", "unknown, taken as 0", "unknown, taken as 0"
	if !slices.ContainsFunc(s.runs, func(r *run) bool { return r.clock == recording.ServerClock && slices.Contains(r.used, true) }) {
		s.warnf("alpha[0] and alpha[1] cannot be told: steps have no requests; they are taken as 0, and simulated TTFT is too short by what they are")
	}
	r.fit.method = fmt.Sprintf("regression on %d steps; coefficients not negative, relative errors weighed robustly (Huber); judged on the other %d", len(fit), len(held))
	if err := r.tryTable(steps, fit, held); err != nil {
		return err
	}
	m, err := r.slower(0)
	if err != nil {
		return err
	}
	s.warnByKind(steps, m)
	if gpuOnly {
		return r.addHost()
	}
	return nil
}

// usable are the steps that can be fitted to, and whether they are of GPUs alone.
func (s *setup) usable() (steps []recording.Step, gpuOnly bool, err error) {
	unknown, later := 0, 0
	for _, x := range s.steps {
		if x.Context == recording.Unknown {
			unknown++
			x.Context = 0
		}
		if gpuOnly = gpuOnly || x.GPUOnly; x.PrefillContext > 0 {
			later++
			continue
		}
		steps = append(steps, x)
	}
	if len(steps) < 10 {
		return nil, false, fmt.Errorf("only %d steps are of this setup; 10 are the least to fit to", len(steps))
	}
	if later > 0 {
		s.warnf("%d steps with chunks of prompts behind tokens computed before are left out: no coefficient is of those", later)
	}
	if unknown > 0 {
		s.warnf("of %d steps the context is not said: taken as 0", unknown)
	}
	return steps, gpuOnly, nil
}

// tryTable takes a table of the steps in the place of a line where one of those that are
// fitted to is better on those held back.
func (r *Report) tryTable(steps, fit, held []recording.Step) error {
	t := tableOf(fit)
	if t == nil {
		return nil
	}
	m, err := buildTable(r.fit.Alpha, t)
	if err != nil {
		return err
	}
	var off []float64
	for _, x := range held {
		b := latency.Batch{Prefill: x.Prefill, Decode: x.Decode, Context: x.Context}
		off = append(off, float64(m.Step(b))/x.US-1)
	}
	if e := stepScore(r.StepScore.Data, off); e.Percent < r.StepScore.Percent {
		r.setup.warnf("half of the steps that it was not made of are within %.2g %% of a table, and within %.2g %% of a line: the table is taken, and beta only told", e.Percent, r.StepScore.Percent)
		e.Data = fmt.Sprintf("%s, by a table of the other %d alone", e.Data, len(fit))
		r.StepScore, r.fit.table = e, tableOf(steps)
		r.fit.method = fmt.Sprintf("a table of all %d steps, linear between those measured; one of half of them was within %.2g %% of half of the rest", len(steps), e.Percent)
	}
	return nil
}

// kindsOfSteps are what steps compute.
var kindsOfSteps = []string{"decode", "prefill", "both"}

// kindOf is the number of a step's kind in kindsOfSteps.
func kindOf(x recording.Step) int {
	switch {
	case x.Prefill == 0:
		return 0
	case x.Decode == 0:
		return 1
	}
	return 2
}

// halves divides steps into two of like sizes: of each kind, in the order of what is
// computed, every second, whatever order a file has them in. The smallest and the
// largest are in the first, so that the other lies between.
func halves(steps []recording.Step) (fit, held []recording.Step) {
	sorted := slices.Clone(steps)
	slices.SortStableFunc(sorted, func(a, b recording.Step) int {
		return cmp.Or(cmp.Compare(kindOf(a), kindOf(b)), cmp.Compare(a.Prefill, b.Prefill), cmp.Compare(a.Decode, b.Decode), cmp.Compare(a.Context, b.Context), cmp.Compare(a.US, b.US))
	})
	for i, n := 0, 0; i < len(sorted); i, n = i+1, n+1 {
		last := i+1 == len(sorted) || kindOf(sorted[i+1]) != kindOf(sorted[i])
		if n%2 == 0 || last {
			fit = append(fit, sorted[i])
		} else {
			held = append(held, sorted[i])
		}
		if last {
			n = -1
		}
	}
	return fit, held
}

// worstBias is by what part the steps of a kind may be off on the average without a
// warning, and worstEnd the largest steps of a kind.
const (
	worstBias = 0.1
	worstEnd  = 0.2
)

// warnByKind warns where a model is far off on the steps of one kind, or on the largest
// tenth of them, which errors over all steps do not show.
func (s *setup) warnByKind(steps []recording.Step, m latency.Model) {
	for k, name := range kindsOfSteps {
		var own []recording.Step
		for _, x := range steps {
			if kindOf(x) == k {
				own = append(own, x)
			}
		}
		if len(own) < 4 {
			continue
		}
		slices.SortStableFunc(own, func(a, b recording.Step) int { return cmp.Compare(a.US, b.US) })
		off := make([]float64, len(own))
		for i, x := range own {
			b := latency.Batch{Prefill: x.Prefill, Decode: x.Decode, Context: max(0, x.Context)}
			off[i] = float64(m.Step(b))/x.US - 1
		}
		largest := off[len(off)-max(1, len(off)/10):]
		if all, end := stat.Mean(off), stat.Mean(largest); math.Abs(all) > worstBias || math.Abs(end) > worstEnd {
			s.warnf("of %d steps of %s the simulated are %+.2g %% off on the average, and of the longest %d %+.2g %%: the model is no good for them", len(own), name, 100*all, len(largest), 100*end)
		}
	}
}

// stepRegression is that of steps, which are in the order of what they compute: blocks
// take them in turn, so that each has some of all kinds.
func stepRegression(steps []recording.Step) *regression {
	r := &regression{names: []string{names[beta0], names[beta1], names[beta2], names[beta3]}}
	for i, x := range steps {
		r.add(i%min(spanBlocks, len(steps)), x.US, 1, float64(x.Prefill), float64(x.Decode), float64(x.Context))
	}
	return r
}
