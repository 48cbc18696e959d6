package calibrate

import (
	"math"

	"gonum.org/v1/gonum/mat"
)

// nnls minimizes |A·x − b|² over x ≥ 0, by the active sets of Lawson and Hanson
// (Solving Least Squares Problems, 1974, chapter 23). Columns of A that the others
// can stand for make the solution one of several; this is then one with a zero.
func nnls(a *mat.Dense, b []float64) []float64 {
	// In units of the columns' lengths none counts for less than another because it
	// is of smaller numbers.
	var scaled mat.Dense
	scaled.CloneFrom(a)
	_, n := a.Dims()
	lengths := make([]float64, n)
	for k := range lengths {
		lengths[k] = norm(mat.Col(nil, k, a))
		for i, v := range mat.Col(nil, k, a) {
			scaled.Set(i, k, v/max(lengths[k], math.SmallestNonzeroFloat64))
		}
	}
	x := activeSets(&scaled, b)
	for k := range x {
		if x[k] > 0 {
			x[k] /= lengths[k]
		}
	}
	return x
}

// activeSets solves for columns of length 1, or 0.
func activeSets(a *mat.Dense, b []float64) []float64 {
	rows, n := a.Dims()
	x, free := make([]float64, n), make([]bool, n)
	residual, gradient := make([]float64, rows), make([]float64, n)
	least := 1e-10 * norm(b) // what a column gains counts from here on
	for range 3 * (n + 1) {
		product(a, x, residual)
		for i := range residual {
			residual[i] = b[i] - residual[i]
		}
		best := -1
		for k := range n {
			gradient[k] = 0
			for i := range rows {
				gradient[k] += a.At(i, k) * residual[i]
			}
			if !free[k] && gradient[k] > least && (best < 0 || gradient[k] > gradient[best]) {
				best = k
			}
		}
		if best < 0 {
			break
		}
		free[best] = true
		for {
			z, ok := leastSquares(a, b, free)
			if !ok {
				free[best] = false // the others stand for it
				break
			}
			part, out := 1.0, -1
			for k := range n {
				if free[k] && z[k] <= 0 {
					if p := x[k] / (x[k] - z[k]); p < part || out < 0 {
						part, out = min(part, p), k
					}
				}
			}
			for k := range n {
				if free[k] {
					x[k] += part * (z[k] - x[k])
				}
			}
			if out < 0 {
				break
			}
			for k := range n {
				if free[k] && (k == out || x[k] <= 1e-14*math.Abs(z[k])) {
					x[k], free[k] = 0, false
				}
			}
		}
	}
	// What is left of rounding is no coefficient.
	for k := range x {
		if most := columnMax(a, k); most*x[k] < 1e-9*norm(b)/math.Sqrt(float64(rows)) {
			x[k] = 0
		}
	}
	return x
}

// columnMax is the largest number of a column, whatever its sign.
func columnMax(a *mat.Dense, k int) float64 {
	rows, _ := a.Dims()
	most := 0.0
	for i := range rows {
		most = max(most, math.Abs(a.At(i, k)))
	}
	return most
}

// leastSquares solves for the free columns, the others at 0; false if these depend
// on each other.
func leastSquares(a *mat.Dense, b []float64, free []bool) ([]float64, bool) {
	rows, n := a.Dims()
	var columns []int
	for k, f := range free {
		if f {
			columns = append(columns, k)
		}
	}
	if rows < len(columns) {
		return nil, false
	}
	sub := mat.NewDense(rows, len(columns), nil)
	for j, k := range columns {
		for i := range rows {
			sub.Set(i, j, a.At(i, k))
		}
	}
	var qr mat.QR
	qr.Factorize(sub)
	if qr.Cond() > 1e12 {
		return nil, false
	}
	var z mat.VecDense
	if qr.SolveVecTo(&z, false, mat.NewVecDense(rows, b)) != nil {
		return nil, false
	}
	out := make([]float64, n)
	for j, k := range columns {
		out[k] = z.AtVec(j)
	}
	return out, true
}

func product(a *mat.Dense, x, into []float64) {
	for i := range into {
		into[i] = 0
		for k, v := range x {
			into[i] += a.At(i, k) * v
		}
	}
}

func norm(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v * v
	}
	return math.Sqrt(sum)
}
