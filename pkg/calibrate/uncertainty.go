package calibrate

import (
	"context"
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
	// early and late are by how much first tokens may come sooner and later than the model
	// predicts, in ms.
	early, late float64
	prefill     stat.Interval // of beta[1]; empty if there is none
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
	u.add(r.Scatter.spread(stepError), fmt.Sprintf("blocks of the fitted data are missed by %.2g %%, and fits to "+
		"other servers miss other data by up to %.2g times as much", 100*r.Scatter.TPOT, spread(stepError)))
	if f.table != nil {
		return u
	}
	if u.prefill = f.prefill; l.sequences >= f.load.lo && l.sequences <= f.load.hi {
		return u
	}
	u.prefill = f.uncertainty[beta1]
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
	frontEnd := r.Scatter.spread(names[alpha0]) * f.value[beta0] / 1e3
	u.early, u.late = math.Hypot(u.early, frontEnd), math.Hypot(u.late, frontEnd)
	return u
}

// uncertaintyOf is the range of a metric of independent errors: below and above, and of pairs of simulations
// with shorter and longer steps. Where batches form differently, a percentile may be lower, or higher, with both.
func uncertaintyOf(fitted, below, above float64, pairs ...[2]float64) *stat.Interval {
	for _, p := range pairs {
		below = math.Hypot(below, max(0, fitted-p[0], fitted-p[1]))
		above = math.Hypot(above, max(0, p[0]-fitted, p[1]-fitted))
	}
	return &stat.Interval{Lo: round(max(0, fitted-below), 5), Hi: round(fitted+above, 5), Level: level}
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
	return fmt.Sprintf("TTFT error changes by %.4g us per decoding sequence (%.4g to %.4g at %g %%)",
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

// slopePriorError is the relative standard deviation of a roofline's time per sequence.
const slopePriorError = 0.2

// irregular is how far steps of single batch sizes deviate from a line at least, as a fraction, where the
// prior comes from kernels, too: tuned kernels' times jump from one batch size to the next, and a slope
// of similar batches then says little of others, although the times of requests hardly scatter. It is the
// median of tables of five dense models (Llama-3.1-8B and 70B, Qwen2.5-7B, Qwen3-32B, phi-4) on six GPUs: of
// the difference between the slope over batches of 8 to 128 ± two of their roots, and that to four times as many.
const irregular = 0.0105

// maxWorse is by how much the prior of a slope may increase the residuals of the fitted data.
const maxWorse = 1.05

// slopeData is what the data say of β2, its standard error, the deviation of step times from
// a line as a fraction of a step, and the time of a step at the mean batch in µs.
type slopeData struct{ beta2, err, nonlinearity, step float64 }

// slope is the estimate of β2, the weight of the data in it, and the standard error that
// nonlinear step times leave.
type slope struct{ beta2, dataWeight, nonlinearity float64 }

// estimateSlope weights the data's β2 and the prior by their variances. What looks like a
// slope over batches of similar sizes may be one kernel replacing another, and not continue
// beyond. Where the data contradict the prior, its variance is the likeliest one, so that
// precise data win (empirical Bayes).
func estimateSlope(p coefficients, d slopeData, l load) slope {
	// As of a line through two points, one standard deviation to either side.
	nonlinearity := d.step * d.nonlinearity / math.Sqrt2 / max(l.sd, 1e-9)
	data := d.err*d.err + nonlinearity*nonlinearity
	physics := slopePriorError * (p[beta2] + p[beta3]*l.context)
	diff := d.beta2 - p[beta2]
	variance := max(physics*physics, diff*diff-data)
	weight := variance / (variance + data)
	return slope{p[beta2] + weight*diff, weight, nonlinearity * math.Sqrt(weight)}
}

// weightSlope fixes beta[2] at its estimate and fits the rest again. Where that makes residuals much larger, the
// data know more than the estimate assumes: beta[2] then moves only part of the way.
func (f *simFit) weightSlope(ctx context.Context) error {
	f.dataOnly, f.free = f.solution, f.problem.Parameters[atBeta2]
	data := f.solution.X[atBeta2]
	nonlinearity, err := f.nonlinearity(ctx)
	if err != nil {
		return err
	}
	if f.shape.kernels != nil {
		nonlinearity = max(irregular, nonlinearity)
	}
	influences, _ := f.influences(f.problem, f.dataOnly)
	stdErr := leastsq.StandardError(influences, atBeta2)
	f.slope = estimateSlope(f.prior, slopeData{beta2: data, err: stdErr, nonlinearity: nonlinearity,
		step: f.solution.X[atStep] + f.prior[beta3]*f.load.sequences*f.load.context}, f.load)
	if err := f.fixSlope(ctx, stdErr); err != nil {
		return err
	}
	if worse := f.solution.Loss/f.dataOnly.Loss - 1; worse > maxWorse*maxWorse-1 {
		share := math.Sqrt((maxWorse*maxWorse - 1) / worse)
		f.slope.beta2 = data + share*(f.slope.beta2-data)
		f.slope.dataWeight = 1 - share*(1-f.slope.dataWeight)
		return f.fixSlope(ctx, stdErr)
	}
	return nil
}

// fixSlope fits with beta[2] at its estimate; the data know their own within a standard error.
func (f *simFit) fixSlope(ctx context.Context, stdErr float64) (err error) {
	q := &f.problem.Parameters[atBeta2]
	q.Prior, q.PriorSD = f.slope.beta2, max(0.01, f.slope.beta2/1000)
	f.solution = f.problem.Relinearize(f.dataOnly)
	near := math.Abs(f.slope.beta2-f.dataOnly.X[atBeta2]) <= 2*stdErr
	if !near && !f.dataOnly.Covers(f.solution.X) {
		if f.solution, err = f.problem.Approach(ctx, f.solution); err == nil {
			f.solution, err = f.problem.Polish(ctx, f.solution)
		}
		if err != nil {
			return err
		}
	}
	f.value = f.coefficientsAt(f.solution.X)
	return nil
}

// nonlinearity is how far the TPOT of single requests deviates from a simulation with the
// data's coefficients, as a fraction. Part is noise and part kernels tuned for some batch
// sizes; nothing separates them, so it counts for both.
func (f *simFit) nonlinearity(ctx context.Context) (float64, error) {
	all, _, err := f.simulate(ctx, f.coefficientsAt(f.dataOnly.X))
	if err != nil {
		return 0, err
	}
	var errors []float64
	for k, r := range f.replays {
		for i, t := range r.measured {
			if n := r.requests[i].OutputTokens; r.fitted[i] {
				errors = append(errors, math.Log(all[k][i].tpot(n)/t.tpot(n)))
			}
		}
	}
	return leastsq.Scale(errors), nil
}

// A short run is divided into this many segments for the jackknife, a long one into segments
// of this many blocks: where requests queue, neighboring blocks have similar errors.
const (
	runSegments   = 5
	segmentBlocks = 6
)

// jackknifeSegments is the number of segments of a run for the jackknife.
func jackknifeSegments(blocks int) int { return min(blocks, max(runSegments, blocks/segmentBlocks)) }

// segments numbers the segment of time of each residual. A run of some blocks has number(blocks) segments.
func (f *simFit) segments(number func(blocks int) int) (of []int, n int) {
	for _, r := range f.replays {
		blocks := len(r.blocks)
		own := number(blocks)
		for i := range features * blocks {
			of = append(of, n+i/features*own/blocks)
		}
		n += own
	}
	return of, n
}

// influences are those of segments on a solution of the data alone, followed by those of the
// simulation's noise, and the number of segments.
func (f *simFit) influences(p *leastsq.Problem, s *leastsq.Solution) (all [][]float64, segments int) {
	free := *p
	free.Parameters = slices.Clone(p.Parameters)
	free.Parameters[atBeta2].PriorSD = 0
	group, n := f.segments(jackknifeSegments)
	return append(free.Jackknife(s, group, n), s.MCError...), n
}

// intervals are confidence intervals of all coefficients by the data alone, about the data's
// solution, and their uncertainty, about the solution: with the prior, and with how far step
// times deviate from a line.
func (f *simFit) intervals() (data, uncertainty intervals) {
	influences, n := f.influences(f.problem, f.dataOnly)
	t := leastsq.TQuantile(float64(n-1), level)
	along := f.problem.Conditional(f.dataOnly, atBeta2)
	weighted := make([][]float64, len(influences))
	for i, m := range influences {
		for k, v := range m {
			weighted[i] = append(weighted[i], v+along[k]*(f.slope.dataWeight-1)*m[atBeta2])
		}
	}
	line := slices.Clone(along)
	for k := range line {
		line[k] *= f.slope.nonlinearity
	}
	dataOnly := f.coefficientsAt(f.dataOnly.X)
	own, wide, nonlinear := f.variance(influences...), f.variance(weighted...), f.variance(line)
	for k := range names {
		data[k] = positiveInterval(dataOnly[k], t*math.Sqrt(own[k]))
		uncertainty[k] = positiveInterval(f.value[k], math.Sqrt(t*t*wide[k]+zLevel*zLevel*nonlinear[k]))
	}
	return data, uncertainty
}

// positiveInterval is an interval of a coefficient that cannot be negative.
func positiveInterval(middle, half float64) stat.Interval {
	return stat.Interval{Lo: max(0, middle-half), Hi: middle + half, Level: level}
}

// variance is the sums of squares of the changes of coefficients where parameters change.
func (f *simFit) variance(parameters ...[]float64) (sum coefficients) {
	for _, x := range parameters {
		for k, d := range f.changes(x) {
			sum[k] += d * d
		}
	}
	return sum
}
