package calibrate

import (
	_ "embed"
	"math"
	"strconv"
	"strings"

	"blis/pkg/leastsq"
	"blis/pkg/stat"
)

// serverFacts are what fits to recordings of real servers found, by server: scripts/interval-coverage
// prints the lines, and judges the intervals of each server by those of the others.
//
//go:embed servers.csv
var serverFacts string

// Quantities of serverFacts. The first two are of fits. Those of coefficients are by how much fits of two
// workloads of a server differ, as fractions: alpha[0] of beta[0], alpha[3] of beta[2], the others of themselves,
// but a factor of prefill as it is.
// Those of metrics are errors at fitted loads. Both are in units of the scatter of the fit.
const (
	slopeOfKernels = "slope_of_kernels" // the time of another sequence over that of its kernels
	prefillFactor  = "prefill"          // the time of prefill over that of its kernels
	stepError      = "tpot"             // and ITL
	ttftError      = "ttft"             // mean and median
	tailError      = "ttft.p99"
	lastError      = "e2e.p99" // and p95
)

// scatter is how far the fitted blocks of time are from their simulation, as robust standard deviations of
// fractions: a model that misses the fitted data by much misses others by more.
type scatter struct {
	TPOT float64 `json:"tpot"`
	TTFT float64 `json:"ttft"`
}

// minScatter is that of the best fits.
const minScatter = 0.005

// newScatter is that of a fit's residuals.
func newScatter(residuals []float64) *scatter {
	of := func(feature int) float64 {
		var own []float64
		for i := feature; i < len(residuals); i += features {
			own = appendKnown(own, residuals[i])
		}
		return round(max(minScatter, leastsq.Scale(own)), 4)
	}
	return &scatter{TPOT: of(0), TTFT: of(2)}
}

// facts are the values of a quantity, one for each server.
func facts(quantity string) (values []float64) {
	for line := range strings.Lines(serverFacts) {
		if f := strings.Split(strings.TrimSpace(line), ","); len(f) == 3 && f[1] == quantity {
			v, err := strconv.ParseFloat(f[2], 64)
			if err != nil {
				panic("calibrate: servers.csv: " + line)
			}
			values = append(values, v)
		}
	}
	return values
}

// spread is the half-width of an interval of the level of a quantity that differs between servers
// or workloads by their root mean square.
func spread(quantity string) float64 {
	values := facts(quantity)
	squares := 0.0
	for _, v := range values {
		squares += v * v
	}
	n := float64(len(values))
	return leastsq.TQuantile(n, level) * math.Sqrt(squares/n)
}

// spread is that of a quantity for a fit with the scatter, as a fraction.
func (s *scatter) spread(quantity string) float64 {
	switch quantity {
	case names[alpha0], names[alpha3], names[beta1], ttftError, tailError:
		return spread(quantity) * s.TTFT
	}
	return spread(quantity) * s.TPOT
}

// meanAndSD are the mean of a quantity of servers, and the standard deviation of that of another server.
func meanAndSD(quantity string) (mean, sd float64) {
	values := facts(quantity)
	mean = stat.Mean(values)
	squares, n := 0.0, float64(len(values))
	for _, v := range values {
		squares += (v - mean) * (v - mean)
	}
	return mean, math.Sqrt(squares / (n - 1) * (1 + 1/n))
}

// addWorkloads widens the uncertainty of fitted coefficients by how much those of another workload of the
// same server would differ: the model is not the server, and each workload finds its own best coefficients.
func (r *report) addWorkloads() {
	f := &r.fit
	scales := coefficients{alpha0: f.value[beta0], alpha3: f.value[beta2], beta0: f.value[beta0], beta1: f.value[beta1],
		beta2: f.value[beta2]}
	if f.shape.kernels != nil {
		scales[beta1] = 1
	}
	f.prefill = f.uncertainty[beta1]
	for k, scale := range scales {
		if i := f.uncertainty[k]; i.Hi > i.Lo || k == alpha3 && r.fit.simulated {
			half := scale * r.Scatter.spread(names[k])
			f.uncertainty[k] = stat.Interval{Lo: max(0, f.value[k]-math.Hypot(f.value[k]-i.Lo, half)),
				Hi: f.value[k] + math.Hypot(i.Hi-f.value[k], half), Level: level}
		}
	}
}
