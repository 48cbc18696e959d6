package leastsq

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"testing"

	"gonum.org/v1/gonum/mat"
)

// lineProblem is the fit of x[0] + x[1]·t to 2 + 3·t at t = 0 … 9, with a scale of 1.
func lineProblem() *Problem {
	return &Problem{Kinds: 1, Pool: 1, Kind: make([]int, 10), Weight: slices.Repeat([]float64{1}, 10),
		Scale:      []float64{1},
		Parameters: []Parameter{{Min: -50, Max: 50, Step: 0.1, MaxStep: 5}, {Min: -50, Max: 50, Step: 0.1, MaxStep: 5}},
		Residuals: func(_ context.Context, x []float64) ([]float64, error) {
			r := make([]float64, 10)
			for i := range r {
				t := float64(i)
				r[i] = x[0] + x[1]*t - (2 + 3*t)
			}
			return r, nil
		}}
}

// TestSearches: all searches find the minimum, also at a bound of the slope, and next to one. Where the slope is at
// most 2, the mean of 2 + t is the best offset: 6.5. No search leaves the bounds.
func TestSearches(t *testing.T) {
	for _, c := range []struct{ most, offset, slope float64 }{{50, 2, 3}, {2, 6.5, 2}, {3.05, 2, 3}} {
		for name, search := range map[string]func(*Problem) (*Solution, error){
			"explore": func(p *Problem) (*Solution, error) {
				return p.Explore(t.Context(), []float64{1, 1}, 3, nil)
			},
			"explore from afar": func(p *Problem) (*Solution, error) {
				return p.Explore(t.Context(), []float64{0, 0}, 50, nil)
			},
			"polish": func(p *Problem) (*Solution, error) {
				s, err := p.Explore(t.Context(), []float64{1, 1}, 1, nil)
				if err != nil {
					return nil, err
				}
				return p.Polish(t.Context(), s)
			},
		} {
			p := lineProblem()
			p.Parameters[1].Max = c.most
			residuals := p.Residuals
			p.Residuals = func(ctx context.Context, x []float64) ([]float64, error) {
				if x[1] > c.most {
					t.Errorf("%s: tries %v with at most %v", name, x, c.most)
				}
				return residuals(ctx, x)
			}
			s, err := search(p)
			if err != nil {
				t.Fatal(err)
			}
			if math.Abs(s.X[0]-c.offset) > 0.1 || math.Abs(s.X[1]-c.slope) > 0.01 {
				t.Errorf("%s: %v, want %v and %v", name, s.X, c.offset, c.slope)
			}
		}
	}
}

// TestExploreStopsAtKnownMinima: a search from a point whose residuals the surface of a solution predicts ends
// there, and a search from another valley of a residual with two finds the other minimum.
func TestExploreStopsAtKnownMinima(t *testing.T) {
	var evaluations atomic.Int64
	p := &Problem{Kinds: 1, Pool: 1, Kind: make([]int, 3), Weight: []float64{1, 1, 1}, Scale: []float64{0.1},
		Parameters: []Parameter{{Min: -9, Max: 9, Step: 0.1, MaxStep: 0.5}},
		Residuals: func(_ context.Context, x []float64) ([]float64, error) {
			evaluations.Add(1)
			return []float64{x[0]*x[0] - 4, x[0]*x[0] - 4.1, x[0]*x[0] - 3.9}, nil
		}}
	best, err := p.Explore(t.Context(), []float64{3}, 3, nil)
	if err != nil || math.Abs(best.X[0]-2) > 0.01 {
		t.Fatalf("%v, %v", best, err)
	}
	evaluations.Store(0)
	for _, c := range []struct {
		from float64
		most int64
	}{{2.1, 1}, {6, 10}, {-3, 50}} {
		before := evaluations.Load()
		s, err := p.Explore(t.Context(), []float64{c.from}, 3, best)
		if err != nil || c.from > 0 != (s == best) || math.Abs(math.Abs(s.X[0])-2) > 0.01 ||
			evaluations.Load()-before > c.most {
			t.Errorf("from %v: %v after %d evaluations, %v", c.from, s.X, evaluations.Load()-before, err)
		}
	}
}

// TestPolishStopsWhenPrecise: without noise the fewest surfaces are enough, and with noise that is as large as the
// scatter of a few data there are more. The noise is reported.
func TestPolishStopsWhenPrecise(t *testing.T) {
	for _, c := range []struct {
		noise float64
		more  bool
	}{{0, false}, {3, true}} {
		p := lineProblem()
		var evaluations atomic.Int64
		residuals := p.Residuals
		p.Residuals = func(ctx context.Context, x []float64) ([]float64, error) {
			r, err := residuals(ctx, x)
			for i := range r {
				r[i] += c.noise * math.Sin(1e6*(x[0]+x[1])*float64(i+1))
			}
			evaluations.Add(1)
			return r, err
		}
		s, err := p.Explore(t.Context(), []float64{2.1, 3.01}, 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		evaluations.Store(0)
		if s, err = p.Polish(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		surfaces := int(evaluations.Load() / 4)
		if c.more != (surfaces > minSurfaces) || len(s.MCError) != surfaces ||
			c.more != (StandardError(s.MCError, 0) > 1e-6) {
			t.Errorf("noise %v: %d surfaces with errors %v", c.noise, surfaces, s.MCError)
		}
	}
}

// TestDesignsAreOrthogonal: of up to five axes the columns of signs are orthogonal to each other and to the mean, and
// with three or more axes to products of two; both halves together are all corners.
func TestDesignsAreOrthogonal(t *testing.T) {
	for axes := 1; axes <= 5; axes++ {
		corners := map[string]bool{}
		for _, other := range []bool{false, true} {
			signs := design(axes, other)
			n, _ := signs.Dims()
			sum := func(columns ...int) (sum float64) {
				for i := range n {
					product := 1.0
					for _, k := range columns {
						product *= signs.At(i, k)
					}
					sum += product
				}
				return sum
			}
			for i := range axes {
				for k := range i {
					for j := range axes {
						if sum(i) != 0 || sum(i, k) != 0 || j != i && j != k && sum(i, k, j) != 0 {
							t.Errorf("%d axes, other %v: %d, %d and %d are not orthogonal", axes, other, i, k, j)
						}
					}
				}
			}
			for i := range n {
				corners[fmt.Sprint(signs.RawRowView(i))] = true
			}
		}
		if len(corners) != 1<<axes {
			t.Errorf("%d axes: %d corners", axes, len(corners))
		}
	}
}

// TestHuberByHand: at a scale of 2, residuals of 1 and −6 are z = 0.5 and 3, of which 1.345 count in squares, and the
// rest in a line. Missing residuals, and those of a kind without a scale, have no weight.
func TestHuberByHand(t *testing.T) {
	p := &Problem{Kinds: 2, Kind: []int{0, 0, 0, 1}, Weight: []float64{1, 2, 1, 1}, Parameters: []Parameter{{}}}
	s := &Solution{Scale: []float64{2, 0}, r: []float64{1, -6, math.NaN(), 5}}
	if p.setWeights(s); !slices.Equal(s.weights, []float64{1, 2 * 1.345 / 3, 0, 0}) {
		t.Errorf("weights %v", s.weights)
	}
	want := 0.25 + 2*(1.345*1.345+2*1.345*(3-1.345))
	if got := p.huberLoss(s, s.r); math.Abs(got-want) > 1e-12 {
		t.Errorf("loss %v, want %v", got, want)
	}
	p.Parameters[0] = Parameter{Prior: 1, PriorSD: 2}
	if got := p.loss(s, []float64{7}, s.r); math.Abs(got-want-9) > 1e-12 {
		t.Errorf("loss %v with a prior, want %v", got, want+9)
	}
}

// TestNormalEquationsByHand: residuals 2 and -1 with slopes 3 and 4, of scale 2 and weights 1 and 0.25. A prior adds
// the inverse of its variance, and with it how far it is.
func TestNormalEquationsByHand(t *testing.T) {
	p := &Problem{Kind: []int{0, 0}, Parameters: []Parameter{{Prior: 1, PriorSD: 2}}}
	s := &Solution{X: []float64{7}, Scale: []float64{2}, r: []float64{2, -1}, weights: []float64{1, 0.25},
		jacobian: mat.NewDense(2, 1, []float64{3, 4})}
	for _, c := range []struct {
		priors bool
		h, g   float64
	}{{false, 3.25, 1.25}, {true, 3.5, 2.75}} {
		if h, g := p.normal(s, c.priors); h.At(0, 0) != c.h || g.AtVec(0) != c.g {
			t.Errorf("priors %v: %v and %v, want %v and %v", c.priors, h.At(0, 0), g.AtVec(0), c.h, c.g)
		}
	}
}

// TestMeanModel: two lines, of which the first is 1 at 0 with slope 1, and the second 5 at 2 with slope 3: both are 2
// at the mean place, 1.
func TestMeanModel(t *testing.T) {
	model := func(x, r, slope float64) *Solution {
		return &Solution{X: []float64{x}, r: []float64{r}, jacobian: mat.NewDense(1, 1, []float64{slope})}
	}
	m := meanModel([]*Solution{model(0, 1, 1), model(2, 5, 3)})
	if m.X[0] != 1 || m.r[0] != 2 || m.jacobian.At(0, 0) != 2 {
		t.Errorf("at %v: %v with slope %v", m.X, m.r, m.jacobian.At(0, 0))
	}
}

// TestStepsFitTheScatter: with two derivatives of 2, residuals change by 1 on average for a step of 0.5. A step at most
// doubles or halves, and is at most MaxStep.
func TestStepsFitTheScatter(t *testing.T) {
	for _, c := range []struct{ step, most, want float64 }{{0.4, 9, 0.5}, {0.1, 9, 0.2}, {0.1, 0.15, 0.15},
		{4, 9, 2}} {
		p := &Problem{Kinds: 1, Kind: make([]int, 2), Parameters: []Parameter{{Step: c.step, MaxStep: c.most}}}
		s := &Solution{X: []float64{0}, Scale: []float64{1}, r: make([]float64, 2), weights: []float64{1, 1},
			jacobian: mat.NewDense(2, 1, []float64{2, 2})}
		if p.fitSteps(s); math.Abs(p.Parameters[0].Step-c.want) > 1e-12 {
			t.Errorf("%+v: %v", c, p.Parameters[0].Step)
		}
	}
}

// TestAxesOfCollinearParameters: of the normal matrix (2 1; 1 1), in units of 1/√2 and 1, the axes are the diagonals,
// and along each the residuals change by 1.
func TestAxesOfCollinearParameters(t *testing.T) {
	p := &Problem{Kinds: 1, Kind: make([]int, 2), Parameters: []Parameter{{MaxStep: 50}, {MaxStep: 50}}}
	s := &Solution{X: []float64{0, 0}, Scale: []float64{1}, r: make([]float64, 2), weights: []float64{1, 1},
		jacobian: mat.NewDense(2, 2, []float64{2, 1, 0, 1})}
	axes := p.axes(s)
	for k := range 2 {
		a, b := axes.At(0, k), axes.At(1, k)
		if ratio := math.Abs(a / b); math.Abs(ratio-math.Sqrt2/2) > 1e-9 || math.Abs(2*a*a+2*a*b+b*b-1) > 1e-9 {
			t.Errorf("axis %d is (%v, %v)", k, a, b)
		}
	}
}

// TestFolds: of ten blocks the second of three folds has blocks 4 to 6.
func TestFolds(t *testing.T) {
	r := &Regression{Names: []string{"a"}}
	for block := range 10 {
		r.Add(block, 1, float64(block))
	}
	fold, rest := r.Fold(1, 3)
	if fold.Len() != 3 || rest.Len() != 7 || fold.rows[0].block != 4 || fold.rows[2].block != 6 {
		t.Errorf("%+v and %d others", fold.rows, rest.Len())
	}
}

// TestMedianAbs: of 3 and 1, without what is missing, the larger one.
func TestMedianAbs(t *testing.T) {
	if x, none := MedianAbs([]float64{-3, math.NaN(), 1}), MedianAbs([]float64{math.NaN()}); x != 3 || none != 0 {
		t.Errorf("%v and %v", x, none)
	}
}

// TestSlopeIgnoresOutliers: on 1000 + 2·x for x to 99, two values that are far from the others, and hardly further from
// 0 than these.
func TestSlopeIgnoresOutliers(t *testing.T) {
	var x, y []float64
	for i := range 100 {
		x, y = append(x, float64(i)), append(y, 1000+2*float64(i))
	}
	y[0], y[1] = 3000, 2900
	slope, ci, ok := Slope(x, y, 0.9)
	if !ok || math.Abs(slope-2) > 1e-9 || ci.Hi-ci.Lo > 1e-3 {
		t.Errorf("slope %v in %+v, %v", slope, ci, ok)
	}
	if _, _, ok := Slope(x[:49], y[:49], 0.9); ok {
		t.Error("49 points have a slope")
	}
	if _, _, ok := Slope(x[:50], y[:50], 0.9); !ok {
		t.Error("50 points have no slope")
	}
}
