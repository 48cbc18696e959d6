package leastsq

import (
	"math"

	"gonum.org/v1/gonum/mat"
)

// maxCondition is the condition number above which columns count as dependent.
const maxCondition = 1e12

// nnls minimizes |A·x − b|² over x ≥ 0 exactly: of all subsets of the columns, at most five,
// it takes the one whose unconstrained solution is positive and has the least residual.
// Dependent columns give one of several solutions, with a zero.
func nnls(a *mat.Dense, b []float64) []float64 {
	rows, n := a.Dims()
	columns, length := make([]*mat.VecDense, n), make([]float64, n)
	for k := range n { // of length 1, so that the condition number does not depend on units
		length[k] = max(mat.Norm(a.ColView(k), 2), math.SmallestNonzeroFloat64)
		columns[k] = mat.VecDenseCopyOf(a.ColView(k))
		for i := range rows {
			columns[k].SetVec(i, columns[k].AtVec(i)/length[k])
		}
	}
	target := mat.NewVecDense(rows, b)
	size := mat.Norm(target, 2)
	best, least := make([]float64, n), size
	all := 1<<n - 1
	for subset := all; subset > 0; subset-- {
		x, residual := solveSubset(columns, target, subset)
		if residual < least {
			best, least = x, residual
			if subset == all {
				break // no constrained solution is better
			}
		}
	}
	for k := range best {
		if mat.Norm(columns[k], math.Inf(1))*best[k] < 1e-9*size/math.Sqrt(float64(rows)) {
			best[k] = 0 // rounding
		}
		best[k] /= length[k]
	}
	return best
}

// solveSubset solves for the columns of a subset, the others at 0, and returns the norm of
// the residual: infinite if they depend on each other or a solution is not positive.
func solveSubset(columns []*mat.VecDense, target *mat.VecDense, subset int) (x []float64, residual float64) {
	x = make([]float64, len(columns))
	var chosen []int
	for k := range columns {
		if subset>>k&1 == 1 {
			chosen = append(chosen, k)
		}
	}
	rows := target.Len()
	if rows < len(chosen) {
		return nil, math.Inf(1)
	}
	a := mat.NewDense(rows, len(chosen), nil)
	for j, k := range chosen {
		a.SetCol(j, columns[k].RawVector().Data)
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
