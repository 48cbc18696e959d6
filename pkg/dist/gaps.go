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

// Bounds of cv: what the Weibull shape is solved for, and far beyond what
// traffic shows.
const (
	minCV = 0.01
	maxCV = 100
)

// gamma gaps of shape k have cv 1/√k, and mean 1 at rate k.
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

// weibullShape solves 1 + cv² = Γ(1 + 2/k) / Γ(1 + 1/k)² for k, whose right
// side falls as k rises, by halving. The bracket holds every cv from minCV to
// maxCV.
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

// bursty gaps are Pareto. Those of shape a have cv² = 1/(a(a − 2)), and an
// infinite cv up to a = 2: the smaller the shape, the more of the time is in a
// few long gaps.
func bursty(p *params) variate {
	var shape float64
	switch {
	case p.has("cv") == p.has("shape"):
		p.fail("cv", "must be given for bursty, or shape, and not both")
	case p.has("cv"):
		cv := p.between("cv", minCV, maxCV)
		shape = 1 + math.Sqrt(1+1/(cv*cv))
	default:
		shape = p.between("shape", minTail, maxTail)
	}
	least := (shape - 1) / shape // so that the mean is 1
	return func(r *rand.Rand) float64 { return distuv.Pareto{Xm: least, Alpha: shape, Src: r}.Rand() }
}
