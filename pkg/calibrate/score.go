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
	// StepUncertainty is that of the step times at this load in %, Why its reasons; absent
	// for loads like the fitted ones where no cap binds.
	StepUncertainty float64 `json:"step_uncertainty_percent,omitempty"`
	Why             string  `json:"step_uncertainty,omitempty"`
}

// metricError is one metric, measured and simulated, in ms. Uncertainty is the range of the
// simulation with shorter and longer steps, where the score has a StepUncertainty.
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
	percent  int64 // percentile; 0: the mean
	hasFirst bool  // it includes the time to the first token
}{
	{"ttft.mean", func(t timing, _ int64) float64 { return t.ttft }, 0, true},
	{"ttft.p50", func(t timing, _ int64) float64 { return t.ttft }, 50, true},
	{"ttft.p99", func(t timing, _ int64) float64 { return t.ttft }, 99, true},
	{"tpot.p50", timing.tpot, 50, false},
	{"itl.mean", timing.tpot, 0, false},
	{"e2e.mean", func(t timing, _ int64) float64 { return t.e2e }, 0, true},
	{"e2e.p95", func(t timing, _ int64) float64 { return t.e2e }, 95, true},
	{"e2e.p99", func(t timing, _ int64) float64 { return t.e2e }, 99, true},
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

// scoreHoldout replays the run of a holdout; where steps are uncertain, with shorter and with
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
	measured, simulated := h.values(run.measured, h.simulated), h.values(h.simulated, run.measured)
	var ends [2][]float64 // with shorter and with longer steps
	if by := u.total(); by > 0 {
		s.StepUncertainty, s.Why = round(100*by, 2), u.String()
		for i, factor := range []float64{1 - by, 1 + by} {
			scaled, err := run.simulate(ctx, scaledModel{model, factor})
			if err != nil {
				return nil, err
			}
			ends[i] = h.values(scaled, run.measured)
		}
	}
	for k, m := range metrics {
		if math.IsNaN(measured[k]) || math.IsNaN(simulated[k]) {
			continue
		}
		e := metricError{m.name, round(measured[k], 5), round(simulated[k], 5),
			round(100*(simulated[k]/measured[k]-1), 3), nil}
		if s.StepUncertainty > 0 {
			early, late := u.early, u.late
			if !m.hasFirst {
				early, late = 0, 0
			}
			e.Uncertainty = uncertaintyOf(simulated[k], ends[0][k], ends[1][k], early, late)
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
