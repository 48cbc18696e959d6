package calibrate

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"blis/pkg/latency"
	"blis/pkg/recording"
)

// fromSteps fits β to measured steps: a line, and where the steps are a grid of
// batches, as profilers measure them, a table, of which the better on half of the
// steps, fitted to the other half, is taken.
func (r *Report) fromSteps() error {
	s := r.setup
	var steps []recording.Step
	unknown := 0
	gpuOnly := false
	for _, x := range s.steps {
		if x.Context == recording.Unknown {
			unknown++
			x.Context = 0
		}
		gpuOnly = gpuOnly || x.GPUOnly
		steps = append(steps, x)
	}
	if len(steps) < 10 {
		return fmt.Errorf("only %d steps are of this setup; 10 are the least to fit to", len(steps))
	}
	if unknown > 0 {
		s.warnf("of %d steps the context is not said: taken as 0", unknown)
	}
	if gpuOnly {
		s.warnf("the steps are of GPUs alone: what the host adds is not in beta, nor anything in alpha")
	}
	var fit, held []recording.Step
	for i, x := range steps {
		if i%2 == 0 {
			fit = append(fit, x)
		} else {
			held = append(held, x)
		}
	}
	n, context := 0.0, 0.0
	for _, x := range steps {
		n, context = n+float64(x.Decode), context+float64(x.Context)
	}
	p := s.prior(load{sequences: max(1, n/float64(len(steps))), context: context / max(1, n)})
	all, rest := stepRegression(fit), stepRegression(held)
	r.regress(all, rest, p)
	r.fit.held = fmt.Sprintf("%d of the %d steps", len(held), len(steps))
	r.fit.from[0], r.fit.from[1], r.fit.from[2] = "unknown, taken as 0: steps have no requests", "unknown, taken as 0", "unknown, taken as 0"
	r.fit.method = fmt.Sprintf("regression on %d steps; coefficients not negative, relative errors weighed robustly (Huber); judged on the other %d", len(fit), len(held))
	if t := tableOf(fit); t != nil {
		m, err := buildTable(r.fit.Alpha, t)
		if err != nil {
			return err
		}
		var off []float64
		for _, x := range held {
			b := latency.Batch{Prefill: x.Prefill, Decode: x.Decode, Context: x.Context}
			off = append(off, float64(m.Step(b))/x.US-1)
		}
		if e := 100 * deviation(off); e < r.fit.heldError {
			s.warnf("a table of steps is %.2g %% off on steps that it was not made of, a line %.2g %%: the table is taken, and beta only told", e, r.fit.heldError)
			r.fit.heldError, r.fit.table = e, t
			r.fit.method = fmt.Sprintf("a table of %d steps, of each cell of prefill and decode a line over context; judged on the other %d", len(fit), len(held))
		}
	}
	return nil
}

func stepRegression(steps []recording.Step) *regression {
	r := &regression{names: []string{names[3], names[4], names[5], names[6]}}
	for i, x := range steps {
		r.add(i*spanBlocks/len(steps), x.US, 1, float64(x.Prefill), float64(x.Decode), float64(x.Context))
	}
	return r
}

// mostPoints is how many points an axis of a grid has at most: more are no grid.
const mostPoints = 40

// tableOf makes a table of steps that are a grid in prefill and decode: of each cell
// a line over context. Of chunks it takes those that begin a prompt. It is nil if
// the steps are no grid.
func tableOf(steps []recording.Step) *latency.Table {
	type cell struct{ prefill, decode int64 }
	cells := map[cell]*regression{}
	prefills, decodes := map[int64]bool{0: true}, map[int64]bool{0: true}
	most := int64(1)
	for _, x := range steps {
		if x.PrefillContext > 0 {
			continue
		}
		at := cell{x.Prefill, x.Decode}
		if cells[at] == nil {
			cells[at] = &regression{names: []string{"", ""}}
		}
		cells[at].add(0, x.US, 1, float64(x.Context))
		prefills[x.Prefill], decodes[x.Decode] = true, true
		most = max(most, x.Context)
	}
	if len(prefills) > mostPoints || len(decodes) > mostPoints || len(cells)*10 < 6*len(prefills)*len(decodes) {
		return nil
	}
	t := &latency.Table{PrefillTokens: slices.Sorted(maps.Keys(prefills)), DecodeSequences: slices.Sorted(maps.Keys(decodes)), ContextTokens: []int64{0, most}}
	width := 2 * len(t.DecodeSequences)
	for i, p := range t.PrefillTokens {
		for k, d := range t.DecodeSequences {
			for j, c := range t.ContextTokens {
				us := math.NaN()
				if at := cells[cell{p, d}]; at != nil {
					x := at.fit(always)
					us = x[0] + x[1]*float64(c)
					if d == 0 {
						us = x[0]
					}
				}
				n := len(t.StepUS)
				// What was not measured is as long as what is less, and nothing
				// takes less time than that.
				least := 0.0
				if i > 0 {
					least = max(least, t.StepUS[n-width])
				}
				if k > 0 {
					least = max(least, t.StepUS[n-2])
				}
				if j > 0 {
					least = max(least, t.StepUS[n-1])
				}
				if !(us >= least) {
					us = least
				}
				t.StepUS = append(t.StepUS, math.Ceil(100*us)/100)
			}
		}
	}
	return t
}

func buildTable(alpha [3]float64, t *latency.Table) (latency.Model, error) {
	build, err := latency.Models.Get("latency model", "table")
	if err != nil {
		return nil, err
	}
	return build(latency.Coefficients{Alpha: alpha[:], Table: t})
}
