package latency_test

import (
	"maps"
	"math"
	"slices"
	"testing"

	"blis/pkg/latency"
)

// TestTableOnMeasuredSteps fits a table and a line to some measured decode steps of a model and
// checks both on the others.
func TestTableOnMeasuredSteps(t *testing.T) {
	m := llmServingSim(t, "Llama-3.1-8B", "RTXPRO6000", "RTX-PRO-6000", &llama8B, 500_000)
	m.steps = slices.DeleteFunc(m.steps, func(s step) bool { return s.kind != "decode" })
	fit, heldOut := m.halves()
	var others, between []step // of 2, 8, 32 and 128 sequences
	for _, s := range m.steps {
		if s.sequences == 2 || s.sequences == 8 || s.sequences == 32 || s.sequences == 128 {
			between = append(between, s)
		} else {
			others = append(others, s)
		}
	}
	for _, c := range []struct {
		name         string
		fit, heldOut []step
		median, p90  float64 // bounds of the table's errors, in %
	}{{"every other cell", fit, heldOut, 0.5, 2}, {"unseen numbers of sequences", others, between, 1.5, 2.5}} {
		evaluate := func(name string, coefficients latency.Coefficients) (median, p90 float64) {
			build, err := latency.Models.Get("latency model", name)
			if err != nil {
				t.Fatal(err)
			}
			coefficients.Alpha = []float64{0, 0, 0}
			model, err := build(coefficients)
			if err != nil {
				t.Fatal(err)
			}
			var off []float64
			for _, s := range c.heldOut {
				off = append(off, 100*math.Abs(float64(model.Step(s.batch))/s.us-1))
			}
			slices.Sort(off)
			median, p90 = off[len(off)/2], off[len(off)*9/10]
			t.Logf("%s, %d cells of %d, %s: median error %.2f %%, p90 %.2f %%, worst %.1f %%", c.name, len(c.heldOut),
				len(m.steps), name, median, p90, off[len(off)-1])
			return median, p90
		}
		median, p90 := evaluate("table", latency.Coefficients{Table: tabulate(c.fit)})
		if median > c.median || p90 > c.p90 {
			t.Errorf("%s: the table's median error is %.2f %%, p90 %.2f %%; want at most %g and %g", c.name, median,
				p90, c.median, c.p90)
		}
		// A line with β3 is close: these are kernel times, which are nearly additive.
		if _, line := evaluate("linear", latency.Coefficients{Beta: fitLine(c.fit)}); line < p90 {
			t.Errorf("%s: the line's p90 error of %.2f %% is below the table's", c.name, line)
		}
	}
}

// tabulate builds a table of decode steps. For each number of sequences, the times are interpolated
// at the same context points, in powers of two. Few sequences are never measured with the context
// of many; there, and where their attention is slower for it, they are assumed to take no longer
// than more sequences.
func tabulate(steps []step) *latency.Table {
	measured := map[int64][]step{}
	longest := int64(0)
	for _, s := range steps {
		measured[s.batch.Decode] = append(measured[s.batch.Decode], s)
		longest = max(longest, s.batch.Context)
	}
	g := &latency.Table{PrefillTokens: []int64{0}, DecodeSequences: slices.Sorted(maps.Keys(measured)),
		ContextTokens: []int64{0}}
	for c := int64(256); c < 2*longest; c *= 2 {
		g.ContextTokens = append(g.ContextTokens, c, c*3/2)
	}
	width := len(g.ContextTokens)
	g.StepUS = make([]float64, len(g.DecodeSequences)*width)
	for row, n := range slices.Backward(g.DecodeSequences) {
		of := measured[n]
		slices.SortFunc(of, func(a, b step) int { return int(a.batch.Context - b.batch.Context) })
		for i, c := range g.ContextTokens {
			us := interpolateAt(of, c)
			if i > 0 {
				us = max(us, g.StepUS[row*width+i-1])
			}
			if row < len(g.DecodeSequences)-1 {
				us = min(us, g.StepUS[(row+1)*width+i])
			}
			g.StepUS[row*width+i] = us
		}
	}
	return g
}

// interpolateAt returns the time at a context, linear from one step to the next.
func interpolateAt(steps []step, context int64) float64 {
	if context <= steps[0].batch.Context {
		return steps[0].us
	}
	i := 1
	for i < len(steps)-1 && steps[i].batch.Context < context {
		i++
	}
	a, b := steps[i-1], steps[i]
	return a.us + (b.us-a.us)*float64(context-a.batch.Context)/float64(b.batch.Context-a.batch.Context)
}

// fitLine fits β0 + β2·decode + β3·context by least squares of relative errors.
func fitLine(steps []step) []float64 {
	var a [3][4]float64
	for _, s := range steps {
		x := [4]float64{1 / s.us, float64(s.batch.Decode) / s.us, float64(s.batch.Context) / s.us, 1}
		for i := range a {
			for j := range x {
				a[i][j] += x[i] * x[j]
			}
		}
	}
	for i := range a { // Gauss-Jordan elimination; the matrix is positive definite
		for j := 3; j >= i; j-- {
			a[i][j] /= a[i][i]
		}
		for k := range a {
			if k != i {
				for j := 3; j >= i; j-- {
					a[k][j] -= a[k][i] * a[i][j]
				}
			}
		}
	}
	return []float64{a[0][3], 0, a[1][3], a[2][3]}
}
