package leastsq

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
)

// Regression is a linear model of non-negative coefficients: row · x = y, with errors in
// units of each row's own scale, so that 1 by 1 % counts as much as 100 by 1 %.
type Regression struct {
	// Names are those of the coefficients.
	Names  []string
	rows   [][]float64
	y      []float64
	scales []float64
	// blocks have the number of each row's block: rows of one block are resampled together.
	blocks []int
}

// priorBlock is the block of rows that are no data: no resample leaves them out.
const priorBlock = -1

// Add adds a row whose error is relative to y.
func (r *Regression) Add(block int, y float64, row ...float64) { r.AddScaled(y, block, y, row...) }

// AddScaled adds a row whose error is relative to a scale.
func (r *Regression) AddScaled(scale float64, block int, y float64, row ...float64) {
	r.rows, r.y = append(r.rows, row), append(r.y, y)
	r.scales, r.blocks = append(r.scales, scale), append(r.blocks, block)
}

// Len is the number of rows.
func (r *Regression) Len() int { return len(r.rows) }

// weighted is the design and the target in units of the scales, times the roots of weights.
func (r *Regression) weighted(weights []float64) (*mat.Dense, []float64) {
	a, b := mat.NewDense(len(r.rows), len(r.Names), nil), make([]float64, len(r.rows))
	for i, row := range r.rows {
		w := math.Sqrt(weights[i]) / r.scales[i]
		for k, v := range row {
			a.Set(i, k, v*w)
		}
		b[i] = r.y[i] * w
	}
	return a, b
}

// Fit returns the coefficients ≥ 0, by iteratively reweighted least squares (Huber).
func (r *Regression) Fit() []float64 {
	weights := slices.Repeat([]float64{1}, len(r.rows))
	var x []float64
	for range 20 {
		next := nnls(r.weighted(weights))
		if x != nil && converged(x, next) {
			return next
		}
		x = next
		r.robustWeights(x, weights)
	}
	return x
}

// robustWeights sets Huber's weights of the errors at x.
func (r *Regression) robustWeights(x, weights []float64) {
	errors := r.Errors(x)
	scale := max(1e-6, Scale(errors))
	for i, e := range errors {
		weights[i] = min(1, huberK*scale/max(math.Abs(e), 1e-300))
	}
}

func converged(a, b []float64) bool {
	for i := range a {
		if math.Abs(a[i]-b[i]) > 1e-6*math.Max(math.Abs(a[i]), math.Abs(b[i])) {
			return false
		}
	}
	return true
}

// Errors are how far each row's prediction is above y, in units of its scale.
func (r *Regression) Errors(x []float64) []float64 {
	errors := make([]float64, len(r.rows))
	for i, row := range r.rows {
		sum := 0.0
		for k, v := range row {
			sum += v * x[k]
		}
		errors[i] = (sum - r.y[i]) / r.scales[i]
	}
	return errors
}

// jackknifeGroups is the number of groups of neighboring blocks that Intervals leaves out.
const jackknifeGroups = 10

// Intervals are confidence intervals of a fit's coefficients, by a jackknife over groups of
// neighboring blocks with Student's distribution. Row weights are those of the whole fit.
func (r *Regression) Intervals(x []float64, level float64) []Interval {
	group, n := r.groups()
	weights, without := make([]float64, len(r.rows)), make([]float64, len(r.rows))
	r.robustWeights(x, weights)
	var influences [][]float64
	for left := range n {
		copy(without, weights)
		for i, g := range group {
			if g == left {
				without[i] = 0
			}
		}
		moved := nnls(r.weighted(without))
		for k := range moved {
			moved[k] = (moved[k] - x[k]) * math.Sqrt(float64(n-1)/float64(n))
		}
		influences = append(influences, moved)
	}
	t := TQuantile(float64(n-1), level)
	out := make([]Interval, len(x))
	for k := range out {
		half := t * StandardError(influences, k)
		out[k] = Interval{max(0, x[k]-half), x[k] + half, level}
	}
	return out
}

// groups numbers the jackknife's group of each row, -1 for rows of a prior, and counts them.
func (r *Regression) groups() (of []int, n int) {
	numbers := slices.Compact(slices.Sorted(slices.Values(r.blocks)))
	numbers = slices.DeleteFunc(numbers, func(block int) bool { return block == priorBlock })
	n = min(len(numbers), jackknifeGroups)
	for _, block := range r.blocks {
		if i, ok := slices.BinarySearch(numbers, block); ok {
			of = append(of, i*n/len(numbers))
		} else {
			of = append(of, -1)
		}
	}
	return of, n
}

// Where is the regression on the rows of some blocks.
func (r *Regression) Where(in func(block int) bool) *Regression {
	out := &Regression{Names: r.Names}
	for i, row := range r.rows {
		if in(r.blocks[i]) {
			out.AddScaled(r.scales[i], r.blocks[i], r.y[i], row...)
		}
	}
	return out
}

// Fold is the regression on the rows of one of n folds of consecutive blocks, and that on
// the rest.
func (r *Regression) Fold(k, n int) (fold, rest *Regression) {
	last := slices.Max(r.blocks)
	in := func(block int) bool { return block*n/(last+1) == k }
	return r.Where(in), r.Where(func(block int) bool { return !in(block) })
}

// WithoutLast is the regression with the last coefficient fixed at a value.
func (r *Regression) WithoutLast(value float64) *Regression {
	last := len(r.Names) - 1
	out := &Regression{Names: r.Names[:last], blocks: r.blocks, scales: r.scales}
	for i, row := range r.rows {
		out.rows = append(out.rows, row[:last])
		out.y = append(out.y, r.y[i]-value*row[last])
	}
	return out
}

// WithPrior is the regression with a row for each positive prior of the named coefficients,
// as if it had been measured, with the weight of a tenth of the root of the number of rows.
// That is negligible where the data identify the coefficient, and little where they
// contradict the prior: errors are weighted robustly.
func (r *Regression) WithPrior(names []string, prior []float64) *Regression {
	more := &Regression{Names: r.Names, rows: slices.Clone(r.rows), y: slices.Clone(r.y),
		scales: slices.Clone(r.scales), blocks: slices.Clone(r.blocks)}
	weight := math.Sqrt(float64(len(r.rows))) / 10
	for k, name := range r.Names {
		if slices.Contains(names, name) && prior[k] > 0 {
			row := make([]float64, len(r.Names))
			row[k] = weight
			more.AddScaled(prior[k], priorBlock, weight*prior[k], row...)
		}
	}
	return more
}

// Identify reports which coefficients the rows identify.
func (r *Regression) Identify() Identifiability {
	a, _ := r.weighted(slices.Repeat([]float64{1}, len(r.rows)))
	var h mat.SymDense
	h.SymOuterK(1, a.T())
	return identify(r.Names, &h)
}
