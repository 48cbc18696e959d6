package leastsq

import (
	"math"
	"testing"

	_ "blis/pkg/internal/fixedseed"

	"gonum.org/v1/gonum/mat"
	"pgregory.net/rapid"
)

// TestNNLSIsOptimal: the solutions of random problems, also with dependent columns, meet the
// conditions of Karush, Kuhn and Tucker: no coefficient is negative, the gradient of a zero
// one does not lead up, and that of a positive one is zero.
func TestNNLSIsOptimal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows, n := rapid.IntRange(3, 20).Draw(t, "rows"), rapid.IntRange(1, 5).Draw(t, "columns")
		number := rapid.Custom(func(t *rapid.T) float64 {
			return float64(rapid.IntRange(-3000, 3000).Draw(t, "thousandths")) / 1000
		})
		units := rapid.SliceOfN(rapid.IntRange(-6, 6), n, n).Draw(t, "units of columns, powers of ten")
		a, b := mat.NewDense(rows, n, nil), make([]float64, rows)
		for i := range rows {
			b[i] = number.Draw(t, "b")
			for k := range n {
				a.Set(i, k, number.Draw(t, "a")*math.Pow10(units[k]))
			}
		}
		if n > 2 && rapid.Bool().Draw(t, "dependent") {
			for i := range rows {
				a.Set(i, n-1, a.At(i, 0)+a.At(i, 1))
			}
		}
		x := nnls(a, b)
		target := mat.NewVecDense(rows, b)
		var rest, gradients mat.VecDense
		rest.MulVec(a, mat.NewVecDense(n, x))
		rest.SubVec(target, &rest)
		gradients.MulVec(a.T(), &rest)
		for k := range n {
			gradient := gradients.AtVec(k)
			// In units of both lengths: it is the cosine of an angle.
			limit := 1e-7 * mat.Norm(a.ColView(k), 2) * mat.Norm(target, 2)
			if x[k] < 0 || gradient > limit || x[k] > 0 && gradient < -limit {
				t.Fatalf("coefficient %d is %g, with a gradient of %g", k, x[k], gradient)
			}
		}
	})
}

// TestNNLSByHand: a solution that would be negative is 0, and the other is fitted alone.
func TestNNLSByHand(t *testing.T) {
	// 2x = 4 and 3x − y = 9: without bounds x = 2, y = −3; with y = 0, 13x = 35.
	x := nnls(mat.NewDense(2, 2, []float64{2, 0, 3, -1}), []float64{4, 9})
	if math.Abs(x[0]-35.0/13) > 1e-12 || x[1] != 0 {
		t.Errorf("x = %v, want [%g 0]", x, 35.0/13)
	}
}
