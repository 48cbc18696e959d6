package dist

import (
	"fmt"
	"math"
	"math/rand/v2"

	"blis/pkg/named"

	"gonum.org/v1/gonum/stat/distuv"
)

// Arrival names an arrival process, as files do. CV is the coefficient of
// variation of the gaps between arrivals: standard deviation by mean, 1 for
// Poisson, above 1 for bursts.
type Arrival struct {
	Process string   `yaml:"process" json:"process"`
	CV      *float64 `yaml:"cv" json:"cv,omitempty"`
}

// process makes draws of gaps with mean 1.
type process struct {
	// takesCV: the gaps follow from a cv; without, unit has no use for it.
	takesCV bool
	unit    func(cv float64) variate
}

// Arrivals are the arrival processes: independent gaps, told apart by their
// distribution.
var Arrivals = named.Table[process]{
	{Name: "poisson", Doc: "exponential gaps: arrivals without memory", Value: process{false, poisson}},
	{Name: "gamma", Doc: "gamma gaps of the given cv", Value: process{true, gamma}},
	{Name: "weibull", Doc: "Weibull gaps of the given cv", Value: process{true, weibull}},
	{Name: "constant", Doc: "equal gaps", Value: process{false, equal}},
}

func poisson(float64) variate {
	return func(r *rand.Rand) float64 { return distuv.Exponential{Rate: 1, Src: r}.Rand() }
}

func equal(float64) variate {
	return func(*rand.Rand) float64 { return 1 }
}

// gamma gaps of shape k have cv 1/√k, and mean 1 at rate k.
func gamma(cv float64) variate {
	shape := 1 / (cv * cv)
	return func(r *rand.Rand) float64 { return distuv.Gamma{Alpha: shape, Beta: shape, Src: r}.Rand() }
}

func weibull(cv float64) variate {
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

// Bounds of cv: what the Weibull shape is solved for, and far beyond what
// traffic shows.
const (
	minCV = 0.01
	maxCV = 100
)

// Gaps draws the gaps between arrivals.
type Gaps struct {
	unit   variate
	meanUS float64
}

// Gaps checks a and returns its gaps at a rate in arrivals per second, which
// must be above 0. An error is a *ParamError.
func (a Arrival) Gaps(rate float64) (*Gaps, error) {
	p, err := Arrivals.Get("arrival process", a.Process)
	if err != nil {
		return nil, &ParamError{"process", err.Error()}
	}
	cv := 0.0
	switch {
	case p.takesCV && a.CV == nil:
		return nil, &ParamError{"cv", "must be given for " + a.Process}
	case !p.takesCV && a.CV != nil:
		return nil, &ParamError{"cv", a.Process + " has none; gamma and weibull do"}
	case p.takesCV:
		if cv = *a.CV; !(cv >= minCV && cv <= maxCV) {
			return nil, &ParamError{"cv", fmt.Sprintf("must be between %g and %g, is %g", minCV, float64(maxCV), cv)}
		}
	}
	return &Gaps{p.unit(cv), 1e6 / rate}, nil
}

// Draw returns the gap to the next arrival in µs, not rounded.
func (g *Gaps) Draw(r *rand.Rand) float64 { return g.unit(r) * g.meanUS }
