package calibrate

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
)

// regression is linear equations of measured times: row · x = time, each in units
// of its own error, so that a step of 1 ms off by 1 % counts as one of 100 ms.
type regression struct {
	names []string
	rows  [][]float64
	times []float64
	// scales are the errors' units: the times, but where those may be 0.
	scales []float64
	// block of each row: rows of one block are neighbours in time, or of one cell.
	blocks []int
}

// ofPrior is the block of rows that are not data: no resample is without them.
const ofPrior = -1

func (r *regression) add(block int, us float64, row ...float64) { r.addIn(us, block, us, row...) }

// addIn adds a row in units of a scale of its own.
func (r *regression) addIn(scale float64, block int, us float64, row ...float64) {
	r.rows, r.times, r.scales, r.blocks = append(r.rows, row), append(r.times, us), append(r.scales, scale), append(r.blocks, block)
}

// weighted is the design with each row divided by its scale, rows weighed by the
// square root of weights.
func (r *regression) weighted(weights []float64) (*mat.Dense, []float64) {
	a, b := mat.NewDense(len(r.rows), len(r.names), nil), make([]float64, len(r.rows))
	for i, row := range r.rows {
		w := math.Sqrt(weights[i]) / r.scales[i]
		for k, v := range row {
			a.Set(i, k, v*w)
		}
		b[i] = r.times[i] * w
	}
	return a, b
}

// huber is where Huber's function turns from a square to a line, in standard
// deviations: 95 % as efficient as squares where errors are normal.
const huber = 1.345

// fit solves for coefficients ≥ 0 with Huber's weights, which a few rounds settle.
func (r *regression) fit() []float64 {
	weights := slices.Repeat([]float64{1}, len(r.rows))
	var x []float64
	for range 20 {
		a, b := r.weighted(weights)
		next := nnls(a, b)
		if x != nil && near(x, next) {
			return next
		}
		x = next
		off := r.errors(x)
		spread := max(1e-6, deviation(off))
		for i, e := range off {
			weights[i] = min(1, huber*spread/max(math.Abs(e), 1e-300))
		}
	}
	return x
}

// errors are how much too long each row is by x, in its units.
func (r *regression) errors(x []float64) []float64 {
	off := make([]float64, len(r.rows))
	for i, row := range r.rows {
		sum := 0.0
		for k, v := range row {
			sum += v * x[k]
		}
		off[i] = (sum - r.times[i]) / r.scales[i]
	}
	return off
}

// normalHalf is the standard deviation of a normal distribution over what half of its
// values are within.
const normalHalf = 1.4826

// deviation is a robust standard deviation about zero: of half of the values.
func deviation(off []float64) float64 {
	size := make([]float64, 0, len(off))
	for _, e := range off {
		if !math.IsNaN(e) {
			size = append(size, math.Abs(e))
		}
	}
	if len(size) == 0 {
		return 0
	}
	slices.Sort(size)
	return normalHalf * size[len(size)/2]
}

func near(a, b []float64) bool {
	for i := range a {
		if math.Abs(a[i]-b[i]) > 1e-6*math.Max(math.Abs(a[i]), math.Abs(b[i])) {
			return false
		}
	}
	return true
}

// normal is the normal matrix of the design.
func (r *regression) normal() mat.Symmetric {
	ones := make([]float64, len(r.rows))
	for i := range ones {
		ones[i] = 1
	}
	a, _ := r.weighted(ones)
	var h mat.Dense
	h.Mul(a.T(), a)
	n := len(r.names)
	out := mat.NewSymDense(n, nil)
	for i := range n {
		for k := i; k < n; k++ {
			out.SetSym(i, k, h.At(i, k))
		}
	}
	return out
}
