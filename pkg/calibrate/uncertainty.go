package calibrate

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"blis/pkg/latency"
	"blis/pkg/leastsq"
	"blis/pkg/stat"
)

// uncertaintyAtCap is that of step times where a cap on sequences binds, as a fraction: as
// well as a fit knows them inside its range.
const uncertaintyAtCap = 0.01

// uncertainty is why all step times of a simulation may be wrong, each by a fraction: the
// half-width of an interval of the level.
type uncertainty struct {
	squares float64 // the sum of those of the fractions, which are independent
	reasons []string
	// early and late are by how much first tokens may come sooner (below 0) and later than
	// the model predicts, in ms.
	early, late float64
}

func (u *uncertainty) add(fraction float64, reason string) {
	if fraction > 0 {
		u.squares, u.reasons = u.squares+fraction*fraction, append(u.reasons, reason)
	}
}

func (u *uncertainty) total() float64 { return math.Sqrt(u.squares) }

func (u *uncertainty) String() string { return strings.Join(u.reasons, "; ") }

// uncertaintyAt is that of the fitted model at a load; beyond the fitted loads it is that of the
// slope.
func (r *report) uncertaintyAt(l load, m latency.Model) (u uncertainty) {
	f := &r.fit
	if f.method == "" { // an evaluation
		return u
	}
	if h := r.Host; h != nil {
		step := m.Step(latency.Batch{Decode: max(1, int64(l.sequences)), Context: int64(l.sequences * l.context)})
		u.add((h.Uncertainty.Hi-h.Uncertainty.Lo)/2/float64(step),
			fmt.Sprintf("the host's time of %g to %g us per step is a prior", h.Uncertainty.Lo, h.Uncertainty.Hi))
	}
	if f.table != nil || l.sequences >= f.load.lo && l.sequences <= f.load.hi {
		return u
	}
	slope := f.uncertainty[beta2]
	beyond := l.sequences - f.load.sequences
	step := f.value[beta0] + l.sequences*(f.value[beta2]+f.value[beta3]*l.context)
	u.add(math.Abs(beyond)*(slope.Hi-slope.Lo)/2/step,
		fmt.Sprintf("%.3g concurrent sequences extrapolate the fitted %.3g to %.3g, and beta[2] is %.3g to %.3g",
			l.sequences, f.load.lo, f.load.hi, slope.Lo, slope.Hi))
	if r.Trend != nil {
		u.early, u.late = r.Trend.errorRange(beyond)
		u.reasons = append(u.reasons, r.Trend.String())
	}
	return u
}

// uncertaintyOf is the range of a metric: with the fitted steps and with shorter and longer
// ones, widened by early (≤ 0) and late (≥ 0). Where batches form differently, a percentile
// may be lower, or higher, with both.
func uncertaintyOf(fitted, shorter, longer, early, late float64) *stat.Interval {
	return &stat.Interval{Lo: round(min(fitted, shorter, longer)+early, 5),
		Hi: round(max(fitted, shorter, longer)+late, 5), Level: level}
}

// trend is how much longer TTFT gets with each decoding sequence than the model predicts, in
// µs: what alpha[3] leaves, if it was fitted. It widens the ranges of other loads.
type trend struct {
	US float64       `json:"us_per_sequence"`
	CI stat.Interval `json:"ci"`
}

// newTrend fits a line to the TTFT errors of fitted requests over concurrency; nil where
// there is too little.
func newTrend(replays []*replay, simulated [][]timing) *trend {
	var concurrent, late []float64
	for k, r := range replays {
		for i, t := range r.measured {
			n, d := r.concurrent[i], t.ttft-simulated[k][i].ttft
			if r.fitted[i] && !math.IsNaN(n) && !math.IsNaN(d) {
				concurrent, late = append(concurrent, n), append(late, d)
			}
		}
	}
	slope, ci, ok := leastsq.Slope(concurrent, late, level)
	if !ok {
		return nil
	}
	return &trend{slope, ci}
}

// errorRange is the range of the TTFT error at a number of sequences beyond the fitted mean, in ms;
// it includes 0.
func (t *trend) errorRange(sequences float64) (early, late float64) {
	a, b := t.CI.Lo*sequences/1e3, t.CI.Hi*sequences/1e3
	return min(0, a, b), max(0, a, b)
}

func (t *trend) String() string {
	return fmt.Sprintf("TTFT error grows by %.4g us per decoding sequence (%.4g to %.4g at %g %%)",
		t.US, t.CI.Lo, t.CI.Hi, 100*level)
}

// host is the time of an engine's host per step, in µs: a prior where steps were measured on
// GPUs alone.
type host struct {
	US          float64       `json:"us"`
	Uncertainty stat.Interval `json:"uncertainty"`
	Source      string        `json:"source"`
}

// hostTimes are of vLLM on the hosts of H100s, by asynchronous scheduling: the step of an empty
// batch, beta[0] of fits to recordings, beyond reading the weights. Synchronous, in spans of
// vLLM 0.11 on one GPU (jan21-llama7b-train-1, jan20-codellama-train-1), beta[0] is 6.3 ms for
// Llama-2-7b (13.2 GB of weights in 32 layers) and 25.6 for CodeLlama-34b (67.2 GB in 48). If
// weights are read at one bandwidth and the short kernels of a layer take 0 to 30 µs, 1.6 to
// 0.7 ms are the host's, at 2.8 TB/s. Asynchronous, in vLLM 0.15 (hardware/coefficients.yaml),
// Llama-2-7b takes 6.0 ms, which leaves 1.3 to 0.4 ms.
var hostTimes = map[bool]host{
	false: {US: 1100, Uncertainty: stat.Interval{Lo: 700, Hi: 1500, Level: level}},
	true:  {US: 800, Uncertainty: stat.Interval{Lo: 400, Hi: 1200, Level: level}},
}

// addHost adds the prior of the host's time to steps of GPUs alone.
func (r *report) addHost() {
	f := &r.fit
	async := r.setup.deployment.Engine.AsyncScheduling
	h := hostTimes[async]
	h.Source = fmt.Sprintf("prior: steps of empty batches of vLLM on H100s beyond reading the weights, with "+
		"async_scheduling %v", async)
	r.Host = &h
	f.value[beta0] += h.US
	f.ci[beta0].Lo, f.ci[beta0].Hi = f.ci[beta0].Lo+h.US, f.ci[beta0].Hi+h.US
	u := &f.uncertainty[beta0]
	u.Lo, u.Hi = u.Lo+h.Uncertainty.Lo, u.Hi+h.Uncertainty.Hi
	f.method += fmt.Sprintf("; %g us per step are added for the host, a prior", h.US)
	f.source[beta0] += fmt.Sprintf(" (%.5g us), plus the host's time", f.value[beta0]-h.US)
	if f.table != nil {
		t := *f.table
		t.StepUS = slices.Clone(t.StepUS)
		for i := range t.StepUS {
			t.StepUS[i] += h.US
		}
		f.table = &t
	}
	r.setup.warnf("steps were measured on GPUs alone: %g us per step (%g to %g) are added for the host (%s)",
		h.US, h.Uncertainty.Lo, h.Uncertainty.Hi, h.Source)
}
