package calibrate

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"
	"pgregory.net/rapid"
)

// TestNNLSIsOptimal: of random problems, also with columns that depend on each other,
// the solution meets the conditions of Karush, Kuhn and Tucker: no coefficient is
// negative, no gradient leads down from 0, none is left of a positive one.
func TestNNLSIsOptimal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows, n := rapid.IntRange(3, 20).Draw(t, "rows"), rapid.IntRange(1, 5).Draw(t, "columns")
		number := rapid.Custom(func(t *rapid.T) float64 { return float64(rapid.IntRange(-3000, 3000).Draw(t, "thousandths")) / 1000 })
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
		rest := make([]float64, rows)
		product(a, x, rest)
		for k := range n {
			gradient := 0.0
			for i := range rows {
				gradient += a.At(i, k) * (b[i] - rest[i])
			}
			// In units of both lengths: it is the cosine of an angle.
			least := 1e-7 * norm(mat.Col(nil, k, a)) * norm(b)
			if x[k] < 0 || gradient > least || x[k] > 0 && gradient < -least {
				t.Fatalf("coefficient %d is %g, with a gradient of %g", k, x[k], gradient)
			}
		}
	})
}

func TestNNLSByHand(t *testing.T) {
	// 2x = 4 and 3x − y = 9: without bounds x = 2, y = −3; with y = 0, 13x = 35.
	x := nnls(mat.NewDense(2, 2, []float64{2, 0, 3, -1}), []float64{4, 9})
	if math.Abs(x[0]-35.0/13) > 1e-12 || x[1] != 0 {
		t.Errorf("x = %v, want [%g 0]", x, 35.0/13)
	}
}
