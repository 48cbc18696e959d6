package calibrate

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"

	"blis/pkg/des"
	"blis/pkg/latency"
	"blis/pkg/leastsq"
	"blis/pkg/stat"
)

// score is the errors of a simulation on requests that its coefficients were not fitted to.
type score struct {
	Data     string `json:"data"`
	Requests int    `json:"requests"`
	// Load is the mean number of decoding sequences of a replica.
	Load    float64       `json:"mean_decode_sequences"`
	Metrics []metricError `json:"metrics"`
	// MAPE is the mean absolute error of the E2E of single requests in %, Correlation is
	// Pearson's; absent where it is undefined.
	MAPE        float64  `json:"e2e_mape_percent"`
	Correlation *float64 `json:"e2e_correlation,omitempty"`
	// Queued is the share of simulated requests that waited for a batch slot or KV blocks.
	Queued float64 `json:"queued_for_slot_ratio"`
	// StepUncertainty is that of the step times at this load in %, Why its reasons; absent in an
	// evaluation where no cap binds.
	StepUncertainty float64 `json:"step_uncertainty_percent,omitempty"`
	Why             string  `json:"step_uncertainty,omitempty"`
}

// metricError is one metric, measured and simulated, in ms. Uncertainty is the range that contains the
// measured value with the probability of its level; of an evaluation, only where a cap binds.
type metricError struct {
	Metric      string         `json:"metric"`
	Measured    float64        `json:"measured_ms"`
	Simulated   float64        `json:"simulated_ms"`
	Percent     float64        `json:"error_percent"`
	Uncertainty *stat.Interval `json:"uncertainty_ms,omitempty"`
}

// stepScore is the errors on steps, or on phases of prefill and decode, that coefficients
// were not fitted to.
type stepScore struct {
	Data           string  `json:"data"`
	MedianAbsError float64 `json:"median_abs_error_percent"`
}

func newStepScore(data string, errors []float64) *stepScore {
	return &stepScore{data, round(100*leastsq.MedianAbs(errors), 3)}
}

// round keeps a number of significant digits.
func round(v float64, digits int) float64 {
	r, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', digits, 64), 64)
	return r
}

// metrics are those of a score. ITL is the mean of (E2E − TTFT)/(output − 1).
var metrics = []struct {
	name     string
	of       func(t timing, output int64) float64
	percent  int64  // percentile; 0: the mean
	hasFirst bool   // it includes the time to the first token
	err      string // the quantity of its errors beyond those of step times; "": none
}{
	{"ttft.mean", func(t timing, _ int64) float64 { return t.ttft }, 0, true, ttftError},
	{"ttft.p50", func(t timing, _ int64) float64 { return t.ttft }, 50, true, ttftError},
	{"ttft.p99", func(t timing, _ int64) float64 { return t.ttft }, 99, true, tailError},
	{"tpot.p50", timing.tpot, 50, false, ""},
	{"itl.mean", timing.tpot, 0, false, ""},
	{"e2e.mean", func(t timing, _ int64) float64 { return t.e2e }, 0, true, ""},
	{"e2e.p95", func(t timing, _ int64) float64 { return t.e2e }, 95, true, lastError},
	{"e2e.p99", func(t timing, _ int64) float64 { return t.e2e }, 99, true, lastError},
}

// values are the metrics of a holdout in ms, NaN if unknown, of requests that completed in
// both.
func (h *holdout) values(all, both []timing) []float64 {
	out := make([]float64, len(metrics))
	for k, m := range metrics {
		var list []float64
		for i, in := range h.selected {
			if in && !math.IsNaN(all[i].e2e) && !math.IsNaN(both[i].e2e) {
				list = appendKnown(list, m.of(all[i], h.run.requests[i].OutputTokens)/1e3)
			}
		}
		slices.Sort(list)
		if out[k] = stat.Mean(list); m.percent > 0 && len(list) > 0 {
			out[k] = stat.QuantileFloat(list, m.percent)
		}
	}
	return out
}

// score replays the held-out data that have arrivals with a model, and compares them.
func (r *report) score(ctx context.Context, m latency.Model) error {
	for i := range r.holdouts {
		h := &r.holdouts[i]
		r.setup.options.progress("evaluating %s", h.name)
		if !h.run.hasArrivals {
			r.setup.warnf("%s cannot be replayed and has no score: the recording has no arrivals", h.name)
			continue
		}
		s, err := r.scoreHoldout(ctx, h, m)
		if err != nil {
			return err
		}
		r.Scores = append(r.Scores, s)
	}
	return nil
}

// scaledModel is a model with step times multiplied by a factor.
type scaledModel struct {
	latency.Model
	factor float64
}

func (m scaledModel) Step(b latency.Batch) des.Time {
	return max(1, des.Micros(float64(m.factor*float64(m.Model.Step(b)))))
}

// otherTimes are pairs of models of which each shows one independent uncertainty: of all step times, and of
// prefill, which percentiles depend on where few prompts are computed. There are none in an evaluation.
func (r *report) otherTimes(m latency.Model, u *uncertainty) (pairs [][2]latency.Model, err error) {
	if steps := u.total(); steps > 0 {
		pairs = append(pairs, [2]latency.Model{scaledModel{m, max(0, 1-steps)}, scaledModel{m, 1 + steps}})
	}
	if i := u.prefill; i.Hi > i.Lo {
		var pair [2]latency.Model
		for k, value := range []float64{i.Lo, i.Hi} {
			c := r.fit.value
			c[beta1] = value
			if pair[k], err = r.fit.shape.model(c, nil); err != nil {
				return nil, err
			}
		}
		pairs = append(pairs, pair)
	}
	return pairs, nil
}

// scoreHoldout replays the run of a holdout; where times are uncertain, with shorter and with
// longer ones, too.
func (r *report) scoreHoldout(ctx context.Context, h *holdout, model latency.Model) (*score, error) {
	run := *h.run
	run.fitted = h.selected
	var err error
	if h.simulated, err = run.simulate(ctx, model); err != nil {
		return nil, err
	}
	l := loadOf([]*replay{&run})
	s := &score{Data: h.name, Load: round(l.sequences, 4), Queued: round(h.queuedRatio(), 3)}
	u := r.uncertaintyAt(l, model)
	if s.Queued >= minQueued {
		u.add(uncertaintyAtCap, fmt.Sprintf("%.1f %% of requests wait for a batch slot, where TTFT is sensitive to "+
			"step time", 100*s.Queued))
	}
	blocks := r.Scatter
	if blocks == nil {
		blocks = &scatter{minScatter, minScatter}
		if u.total() > 0 {
			u.reasons = append(u.reasons, "the coefficients do not state the errors of their fit: those of the "+
				"best fits are assumed")
		}
	}
	s.StepUncertainty, s.Why = round(100*u.total(), 2), u.String()
	pairs, err := r.otherTimes(model, &u)
	if err != nil {
		return nil, err
	}
	ends := make([][2][]float64, len(pairs)) // of all metrics
	for i, pair := range pairs {
		for k, m := range pair {
			all, err := run.simulate(ctx, m)
			if err != nil {
				return nil, err
			}
			ends[i][k] = h.values(all, run.measured)
		}
	}
	measured, simulated := h.values(run.measured, h.simulated), h.values(h.simulated, run.measured)
	for k, m := range metrics {
		if math.IsNaN(measured[k]) || math.IsNaN(simulated[k]) {
			continue
		}
		e := metricError{m.name, round(measured[k], 5), round(simulated[k], 5),
			round(100*(simulated[k]/measured[k]-1), 3), nil}
		if s.StepUncertainty > 0 {
			below, above := 0.0, 0.0
			if m.hasFirst {
				below, above = u.early, u.late
			}
			if m.err != "" {
				own := simulated[k] * blocks.spread(m.err)
				below, above = math.Hypot(below, own), math.Hypot(above, own)
			}
			var of [][2]float64
			for _, p := range ends {
				of = append(of, [2]float64{p[0][k], p[1][k]})
			}
			e.Uncertainty = uncertaintyOf(simulated[k], below, above, of...)
		}
		s.Metrics = append(s.Metrics, e)
	}
	h.compareRequests(s)
	return s, nil
}

// compareRequests compares requests one by one.
func (h *holdout) compareRequests(s *score) {
	var measured, simulated []float64
	for i, in := range h.selected {
		if m, t := h.run.measured[i].e2e, h.simulated[i].e2e; in && !math.IsNaN(m) && !math.IsNaN(t) {
			measured, simulated = append(measured, m), append(simulated, t)
			s.MAPE += 100 * math.Abs(t/m-1)
		}
	}
	s.Requests = len(measured)
	s.MAPE = round(s.MAPE/float64(max(1, s.Requests)), 3)
	if r, ok := stat.Pearson(measured, simulated); ok {
		s.Correlation = new(round(r, 3))
	}
}

// minQueued is the share of requests that wait for a batch slot from which on a cap binds.
const minQueued = 0.005

// queuedRatio is the share of requests that wait for a batch slot or for KV blocks: in the
// queue for more than a few steps while the batch is full, or for many while the cache is
// nearly full. Requests that wait for the prompts of others meet neither.
func (h *holdout) queuedRatio() float64 {
	r := h.run
	running, holding := r.profile(h.simulated, unitWeight), r.profile(h.simulated, r.contextOf)
	n, queued := 0.0, 0.0
	for i, t := range h.simulated {
		if !h.selected[i] || math.IsNaN(t.e2e) {
			continue
		}
		n++
		step := t.tpot(r.requests[i].OutputTokens)
		at := float64(r.requests[i].ArrivalUS)
		full := running.Mean(at, at+t.ttft) > 0.97*float64(r.engine.maxSeqs*r.engine.replicas)
		cache := holding.Mean(at, at+t.ttft) > 0.9*float64(r.engine.kvTokens*r.engine.replicas)
		if t.queue > 2.5*step && full || t.queue > 20*step && cache {
			queued++
		}
	}
	return queued / max(1, n)
}
