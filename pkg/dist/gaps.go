package dist

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/stat/distuv"
)

func poisson(*params) variate { return unitExponential }

func unitExponential(r *rand.Rand) float64 { return distuv.Exponential{Rate: 1, Src: r}.Rand() }

func equalGaps(*params) variate {
	return func(*rand.Rand) float64 { return 1 }
}

// Limits of cv: the range in which the Weibull shape is solved, far wider than real traffic.
const (
	minCV = 0.01
	maxCV = 100
)

// gamma gaps with shape k have cv 1/√k, and mean 1 at rate k.
func gamma(p *params) variate {
	cv := p.between("cv", minCV, maxCV)
	shape := 1 / (cv * cv)
	return func(r *rand.Rand) float64 { return distuv.Gamma{Alpha: shape, Beta: shape, Src: r}.Rand() }
}

func weibull(p *params) variate {
	cv := p.between("cv", minCV, maxCV)
	if p.err != nil {
		return nil
	}
	shape := weibullShape(cv)
	scale := 1 / math.Gamma(1+1/shape)
	return func(r *rand.Rand) float64 { return distuv.Weibull{K: shape, Lambda: scale, Src: r}.Rand() }
}

// weibullShape solves 1 + cv² = Γ(1 + 2/k) / Γ(1 + 1/k)² for k by bisection; the right side falls
// as k rises. The bracket covers every cv from minCV to maxCV.
func weibullShape(cv float64) float64 {
	want := math.Log1p(cv * cv)
	low, high := 0.05, 1000.0
	for {
		k := (low + high) / 2
		if k <= low || k >= high {
			return k
		}
		twice, _ := math.Lgamma(1 + 2/k)
		once, _ := math.Lgamma(1 + 1/k)
		if twice-2*once > want {
			low = k
		} else {
			high = k
		}
	}
}

// bursty gaps are Pareto. With shape a > 2, cv² = 1/(a(a − 2)); up to 2 the cv is infinite. The
// smaller the shape, the more of the time is in a few long gaps.
func bursty(p *params) variate {
	var shape float64
	switch {
	case p.has("cv") == p.has("shape"):
		p.fail("cv", "bursty needs either cv or shape")
	case p.has("cv"):
		cv := p.between("cv", minCV, maxCV)
		shape = 1 + math.Sqrt(1+1/(cv*cv))
	default:
		shape = p.between("shape", minTail, maxTail)
	}
	minimum := (shape - 1) / shape // for a mean of 1
	return func(r *rand.Rand) float64 { return distuv.Pareto{Xm: minimum, Alpha: shape, Src: r}.Rand() }
}
