package calibrate

import (
	"context"
	"fmt"
	"math"
	"slices"

	"blis/pkg/latency"
	"blis/pkg/stat"
)

// Score is how wrong a simulation is on requests that its coefficients were not
// fitted to.
type Score struct {
	Data     string `json:"data"`
	Requests int    `json:"requests"`
	// Load is the mean number of sequences that decoded on one replica.
	Load    float64 `json:"mean_decode_sequences"`
	Metrics []Miss  `json:"metrics"`
	// MAPE is the mean absolute error of the E2E of single requests in %, and
	// Correlation Pearson's, of the same; absent where it is not defined.
	MAPE        float64  `json:"e2e_mape_percent"`
	Correlation *float64 `json:"e2e_correlation,omitempty"`
	// Capped is the share of simulated requests that waited for a place in the batch.
	Capped float64 `json:"waited_for_a_place"`
	// Doubt is by how much the step times of this load may be wrong, in %, and Why
	// says why; absent where it is a load like those fitted to and no cap binds.
	Doubt float64 `json:"step_doubt_percent,omitempty"`
	Why   string  `json:"step_doubt,omitempty"`
}

// Miss is one metric, measured and simulated, in ms. Where the score has a Doubt, Low
// and High are the least and the most that it is with all step times by so much
// shorter and longer: a band, which says more than the number.
type Miss struct {
	Metric    string   `json:"metric"`
	Measured  float64  `json:"measured_ms"`
	Simulated float64  `json:"simulated_ms"`
	Percent   float64  `json:"error_percent"`
	Low       *float64 `json:"low_ms,omitempty"`
	High      *float64 `json:"high_ms,omitempty"`
}

// StepScore is how wrong the times of steps, or of phases of prefill and decode, are
// that coefficients were not fitted to.
type StepScore struct {
	Data string `json:"data"`
	// Percent is what half of them are within, whatever the sign.
	Percent float64 `json:"half_within_percent"`
}

// stepScore is that of relative errors.
func stepScore(data string, off []float64) *StepScore {
	return &StepScore{data, round(100*deviation(off)/normalHalf, 3)}
}

// judged are the metrics of a score. ITL is the mean of (E2E − TTFT)/(output − 1).
var judged = []struct {
	name    string
	of      func(s seen, output int64) float64
	percent int64 // 0: the mean
	first   bool  // it has the time to the first token in it
}{
	{"ttft.mean", func(s seen, _ int64) float64 { return s.ttft }, 0, true},
	{"ttft.p50", func(s seen, _ int64) float64 { return s.ttft }, 50, true},
	{"ttft.p99", func(s seen, _ int64) float64 { return s.ttft }, 99, true},
	{"tpot.p50", seen.tpot, 50, false},
	{"itl.mean", seen.tpot, 0, false},
	{"e2e.mean", func(s seen, _ int64) float64 { return s.e2e }, 0, true},
	{"e2e.p95", func(s seen, _ int64) float64 { return s.e2e }, 95, true},
	{"e2e.p99", func(s seen, _ int64) float64 { return s.e2e }, 99, true},
}

// values are the judged metrics of a part in ms, NaN where none is known.
func (p *part) values(all []seen, of []seen) []float64 {
	out := make([]float64, len(judged))
	for k, j := range judged {
		var list []float64
		for i, in := range p.in {
			if in && !math.IsNaN(all[i].e2e) && !math.IsNaN(of[i].e2e) {
				if v := j.of(all[i], p.run.requests[i].OutputTokens); !math.IsNaN(v) {
					list = append(list, v/1e3)
				}
			}
		}
		slices.Sort(list)
		switch {
		case len(list) == 0:
			out[k] = math.NaN()
		case j.percent == 0:
			out[k] = stat.Mean(list)
		default:
			out[k] = stat.QuantileFloat(list, j.percent)
		}
	}
	return out
}

// bindsFrom is the share of requests that wait for a place from which on a cap is
// said to bind.
const bindsFrom = 0.005

// score plays the run of a part with the latencies of a model, scaled.
func (p *part) score(ctx context.Context, model func(slower float64) (latency.Model, error), doubts func(load) (doubts, error)) (*Score, error) {
	whole := *p.run
	whole.used = make([]bool, len(whole.requests))
	copy(whole.used, p.in)
	play := func(slower float64) ([]seen, error) {
		m, err := model(slower)
		if err != nil {
			return nil, err
		}
		return whole.play(ctx, m)
	}
	simulated, err := play(0)
	if err != nil {
		return nil, err
	}
	l := loadOf([]*run{&whole})
	p.simulated = simulated
	s := &Score{Data: p.name, Load: round(l.sequences, 4), Capped: round(p.waited(simulated), 3)}
	measured, is := p.values(whole.measured, simulated), p.values(simulated, whole.measured)
	d, err := doubts(l)
	if err != nil {
		return nil, err
	}
	if s.Capped >= bindsFrom {
		d.add(bandAtCap, fmt.Sprintf("%.1f %% of requests wait for a place in the batch, where 1 %% of step time changes TTFT a lot", 100*s.Capped))
	}
	var low, high []float64
	if by := d.total(); by > 0 {
		s.Doubt, s.Why = round(100*by, 2), d.String()
		faster, err := play(-by)
		if err != nil {
			return nil, err
		}
		slower, err := play(by)
		if err != nil {
			return nil, err
		}
		low, high = p.values(faster, whole.measured), p.values(slower, whole.measured)
	}
	for k, j := range judged {
		if math.IsNaN(measured[k]) || math.IsNaN(is[k]) {
			continue
		}
		m := Miss{Metric: j.name, Measured: round(measured[k], 5), Simulated: round(is[k], 5), Percent: round(100*(is[k]/measured[k]-1), 3)}
		if low != nil {
			var early, late float64
			if j.first {
				early, late = d.early, d.late
			}
			m.Low, m.High = bandOf(is[k], low[k], high[k], early, late)
		}
		s.Metrics = append(s.Metrics, m)
	}
	p.single(s, simulated)
	return s, nil
}

// single compares requests one by one.
func (p *part) single(s *Score, simulated []seen) {
	var a, b []float64
	for i, in := range p.in {
		if m := p.run.measured[i]; in && !math.IsNaN(m.e2e) && !math.IsNaN(simulated[i].e2e) {
			a, b = append(a, m.e2e), append(b, simulated[i].e2e)
			s.MAPE += 100 * math.Abs(simulated[i].e2e/m.e2e-1)
		}
	}
	s.Requests = len(a)
	s.MAPE = round(s.MAPE/float64(max(1, len(a))), 3)
	if r, ok := stat.Pearson(a, b); ok {
		r = round(r, 3)
		s.Correlation = &r
	}
}

// waited is the share of requests of the part that found all places taken: that were
// in the queue for more than a few steps, with a batch as full as it may be, or for
// many with a cache nearly full. Who waits for the prompts of others finds neither.
func (p *part) waited(simulated []seen) float64 {
	n, late := 0.0, 0.0
	var spans []span
	for i, s := range simulated {
		at := float64(p.run.requests[i].ArrivalUS)
		spans = append(spans, span{at + s.ttft, at + s.e2e, 1})
	}
	running, holding := profileOf(spans), p.run.holding(simulated)
	for i, s := range simulated {
		if !p.in[i] || math.IsNaN(s.e2e) {
			continue
		}
		n++
		step := s.tpot(p.run.requests[i].OutputTokens)
		at := float64(p.run.requests[i].ArrivalUS)
		seats := running.mean(at, at+s.ttft) > 0.97*float64(p.run.seats*p.run.replicas)
		cache := holding.mean(at, at+s.ttft) > 0.9*float64(p.run.room*p.run.replicas)
		if s.queue > 2.5*step && seats || s.queue > 20*step && cache {
			late++
		}
	}
	return late / max(1, n)
}

// text is a score for people.
func (s *Score) text() (lines []string) {
	lines = append(lines, fmt.Sprintf("%s: %d requests, %.3g sequences decode at a time", s.Data, s.Requests, s.Load))
	for _, m := range s.Metrics {
		line := fmt.Sprintf("  %-10s %10.5g ms measured %10.5g simulated %+7.1f %%", m.Metric, m.Measured, m.Simulated, m.Percent)
		if m.Low != nil {
			line += fmt.Sprintf("   %.5g to %.5g", *m.Low, *m.High)
		}
		lines = append(lines, line)
	}
	if s.Doubt > 0 {
		lines = append(lines, fmt.Sprintf("  the last two columns are what %.2g %% of step time less and more makes of it: %s", s.Doubt, s.Why))
	}
	tail := fmt.Sprintf("  E2E request by request: %.3g %% off on the average", s.MAPE)
	if s.Correlation != nil {
		tail += fmt.Sprintf(", correlation %.2f", *s.Correlation)
	}
	return append(lines, tail)
}
