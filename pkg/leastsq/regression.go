package leastsq

import (
	"cmp"
	"math"
	"slices"

	"blis/pkg/stat"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// Regression is a linear model of non-negative coefficients: row · x = y, with errors in
// units of each row's own scale, so that 1 by 1 % counts as much as 100 by 1 %.
type Regression struct {
	// Names are those of the coefficients.
	Names []string
	rows  []row
}

// row is x · coefficients = y; rows of one block are left out together.
type row struct {
	x        []float64
	y, scale float64
	block    int
}

// priorBlock is the block of rows that are no data: no resample leaves them out.
const priorBlock = -1

// Add adds a row whose error is relative to y.
func (r *Regression) Add(block int, y float64, x ...float64) { r.AddScaled(y, block, y, x...) }

// AddScaled adds a row whose error is relative to a scale.
func (r *Regression) AddScaled(scale float64, block int, y float64, x ...float64) {
	r.rows = append(r.rows, row{x, y, scale, block})
}

// Len is the number of rows.
func (r *Regression) Len() int { return len(r.rows) }

// weighted is the design and the target in units of the scales, times the roots of weights.
func (r *Regression) weighted(weights []float64) (*mat.Dense, []float64) {
	a, b := mat.NewDense(len(r.rows), len(r.Names), nil), make([]float64, len(r.rows))
	for i, row := range r.rows {
		w := math.Sqrt(weights[i]) / row.scale
		a.SetRow(i, row.x)
		floats.Scale(w, a.RawRowView(i))
		b[i] = row.y * w
	}
	return a, b
}

// Fit returns the coefficients ≥ 0, by iteratively reweighted least squares (Huber).
func (r *Regression) Fit() []float64 {
	weights := slices.Repeat([]float64{1}, len(r.rows))
	var x []float64
	for range 20 {
		next := nnls(r.weighted(weights))
		if slices.EqualFunc(x, next, nearlyEqual) {
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

func nearlyEqual(a, b float64) bool { return math.Abs(a-b) <= 1e-6*max(math.Abs(a), math.Abs(b)) }

// Errors are how far each row's prediction is above y, in units of its scale.
func (r *Regression) Errors(x []float64) []float64 {
	errors := make([]float64, len(r.rows))
	for i, row := range r.rows {
		errors[i] = (floats.Dot(row.x, x) - row.y) / row.scale
	}
	return errors
}

// jackknifeGroups is the number of groups of neighboring blocks that Intervals leaves out.
const jackknifeGroups = 10

// Intervals are confidence intervals of a fit's coefficients, by a jackknife over groups of
// neighboring blocks with Student's distribution. Row weights are those of the whole fit.
func (r *Regression) Intervals(x []float64, level float64) []stat.Interval {
	group, n := r.groups()
	weights := make([]float64, len(r.rows))
	r.robustWeights(x, weights)
	influences := jackknife(x, n, func(left int) []float64 { return nnls(r.weighted(without(weights, group, left))) })
	t := TQuantile(float64(n-1), level)
	out := make([]stat.Interval, len(x))
	for k := range out {
		half := t * StandardError(influences, k)
		out[k] = stat.Interval{Lo: max(0, x[k]-half), Hi: x[k] + half, Level: level}
	}
	return out
}

// groups numbers the jackknife's group of each row, -1 for rows of a prior, and counts them.
func (r *Regression) groups() (of []int, n int) {
	var numbers []int
	for _, row := range r.rows {
		if row.block != priorBlock {
			numbers = append(numbers, row.block)
		}
	}
	slices.Sort(numbers)
	numbers = slices.Compact(numbers)
	n = min(len(numbers), jackknifeGroups)
	for _, row := range r.rows {
		if i, ok := slices.BinarySearch(numbers, row.block); ok {
			of = append(of, i*n/len(numbers))
		} else {
			of = append(of, -1)
		}
	}
	return of, n
}

// Where is the regression on the rows of some blocks.
func (r *Regression) Where(in func(block int) bool) *Regression {
	left := slices.DeleteFunc(slices.Clone(r.rows), func(row row) bool { return !in(row.block) })
	return &Regression{r.Names, left}
}

// Fold is the regression on the rows of one of n folds of consecutive blocks, and that on
// the rest.
func (r *Regression) Fold(k, n int) (fold, rest *Regression) {
	last := slices.MaxFunc(r.rows, func(a, b row) int { return cmp.Compare(a.block, b.block) }).block
	in := func(block int) bool { return block*n/(last+1) == k }
	return r.Where(in), r.Where(func(block int) bool { return !in(block) })
}

// WithoutLast is the regression with the last coefficient fixed at a value.
func (r *Regression) WithoutLast(value float64) *Regression {
	last := len(r.Names) - 1
	out := &Regression{r.Names[:last], slices.Clone(r.rows)}
	for i, row := range r.rows {
		out.rows[i].x, out.rows[i].y = row.x[:last], row.y-value*row.x[last]
	}
	return out
}

// WithPrior is the regression with a row for each positive prior of the named coefficients,
// as if it had been measured, with the weight of a tenth of the root of the number of rows.
// That is negligible where the data identify the coefficient, and little where they
// contradict the prior: errors are weighted robustly.
func (r *Regression) WithPrior(names []string, prior []float64) *Regression {
	more := &Regression{r.Names, slices.Clone(r.rows)}
	weight := math.Sqrt(float64(len(r.rows))) / 10
	for k, name := range r.Names {
		if slices.Contains(names, name) && prior[k] > 0 {
			x := make([]float64, len(r.Names))
			x[k] = weight
			more.AddScaled(prior[k], priorBlock, weight*prior[k], x...)
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

// maxCondition is the condition number above which columns count as dependent.
const maxCondition = 1e12

// nnls minimizes |A·x − b|² over x ≥ 0 exactly: of all subsets of the columns, at most five,
// it takes the one whose unconstrained solution is positive and has the least residual.
// Dependent columns give one of several solutions, with a zero.
func nnls(a *mat.Dense, b []float64) []float64 {
	rows, n := a.Dims()
	length := make([]float64, n)
	for k := range n {
		length[k] = max(mat.Norm(a.ColView(k), 2), math.SmallestNonzeroFloat64)
	}
	var columns mat.Dense // of length 1, so that the condition number does not depend on units
	columns.Apply(func(_, k int, v float64) float64 { return v / length[k] }, a)
	target := mat.NewVecDense(rows, b)
	size := mat.Norm(target, 2)
	best, least := make([]float64, n), size
	all := 1<<n - 1
	for subset := all; subset > 0; subset-- {
		x, residual := solveSubset(&columns, target, subset)
		if residual < least {
			best, least = x, residual
			if subset == all {
				break // no constrained solution is better
			}
		}
	}
	for k := range best {
		if mat.Norm(columns.ColView(k), math.Inf(1))*best[k] < 1e-9*size/math.Sqrt(float64(rows)) {
			best[k] = 0 // rounding
		}
		best[k] /= length[k]
	}
	return best
}

// solveSubset solves for the columns of a subset, the others at 0, and returns the norm of
// the residual: infinite if they depend on each other or a solution is not positive.
func solveSubset(columns *mat.Dense, target *mat.VecDense, subset int) (x []float64, residual float64) {
	rows, n := columns.Dims()
	x = make([]float64, n)
	var chosen []int
	for k := range n {
		if subset>>k&1 == 1 {
			chosen = append(chosen, k)
		}
	}
	if rows < len(chosen) {
		return nil, math.Inf(1)
	}
	a := mat.NewDense(rows, len(chosen), nil)
	for j, k := range chosen {
		a.SetCol(j, mat.Col(nil, k, columns))
	}
	var qr mat.QR
	qr.Factorize(a)
	var z, rest mat.VecDense
	if qr.Cond() > maxCondition || qr.SolveVecTo(&z, false, target) != nil {
		return nil, math.Inf(1)
	}
	for j, k := range chosen {
		if x[k] = z.AtVec(j); !(x[k] > 0) {
			return nil, math.Inf(1)
		}
	}
	rest.MulVec(a, &z)
	rest.SubVec(target, &rest)
	return x, mat.Norm(&rest, 2)
}
