package calibrate

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"blis/pkg/hardware"
	"blis/pkg/latency"
	"blis/pkg/leastsq"
	"blis/pkg/stat"
	"blis/pkg/stream"
)

// report is the result of a fit or of an evaluation.
type report struct {
	// Set is the coefficients as blis-sim takes them.
	Set *hardware.Set `json:"coefficients"`
	// Fitted are those of the linear model with their origin; none in an evaluation.
	Fitted []fittedCoefficient `json:"fitted,omitempty"`
	// Host is what was added to steps of GPUs alone.
	Host *host `json:"host,omitempty"`
	// Trend is the error of TTFT by concurrency; nil where no client timings were fitted.
	Trend *trend `json:"ttft_trend,omitempty"`
	// Identifiability is of the fitted data; Suggested a workload that would identify the rest.
	Identifiability *leastsq.Identifiability `json:"identifiability,omitempty"`
	Suggested       *suggestedBenchmark      `json:"suggested_benchmark,omitempty"`
	// Scores are errors on held-out requests, StepScore those on steps or phases; of an
	// evaluation, on all data.
	Scores    []*score   `json:"scores"`
	StepScore *stepScore `json:"step_score,omitempty"`
	Warnings  []string   `json:"warnings"`

	setup     *setup
	holdouts  []holdout
	fit       fitResult
	stepModel latency.Model // to check on steps; nil without
}

// fittedCoefficient is a coefficient in µs, µs per token, or µs per decoding sequence.
type fittedCoefficient struct {
	Name  string  `json:"name"`
	Value float64 `json:"value_us"`
	// CI is the confidence interval by the data alone; nil if it was not fitted.
	CI *stat.Interval `json:"ci,omitempty"`
	// Uncertainty is of Value: with steps that deviate from a line, and with the prior. It may
	// be wider or narrower than CI, which may not include Value; nil where it is CI.
	Uncertainty *stat.Interval `json:"uncertainty,omitempty"`
	Source      string         `json:"source"`
}

// finish completes the report.
func (r *report) finish() {
	f := &r.fit
	for k, v := range f.list() {
		if f.source[k] == "" {
			continue // an evaluation, or alpha[3] without effect
		}
		c := fittedCoefficient{Name: names[k], Value: round(v, 5), CI: roundInterval(f.ci[k]), Source: f.source[k]}
		if f.uncertainty != f.ci {
			c.Uncertainty = roundInterval(f.uncertainty[k])
		}
		r.Fitted = append(r.Fitted, c)
	}
	r.runChecks()
	if r.Fitted != nil {
		r.Identifiability, r.Set = &f.id, r.set()
	}
}

// roundInterval rounds an interval for people; it is nil if the interval has no length.
func roundInterval(i stat.Interval) *stat.Interval {
	if !(i.Hi > i.Lo) {
		return nil
	}
	return &stat.Interval{Lo: round(i.Lo, 4), Hi: round(i.Hi, 4), Level: i.Level}
}

// writeText writes the report for people; that of a fit as comments before the coefficients.
func (r *report) writeText(out io.Writer) error {
	lines, yaml := r.lines(), ""
	if r.Fitted != nil {
		yaml = r.Set.YAML()
		for i, line := range lines {
			lines[i] = strings.TrimRight("# "+strings.ReplaceAll(line, "\n", "\n# "), " ")
		}
	}
	_, err := io.WriteString(out, strings.Join(lines, "\n")+"\n"+yaml)
	return err
}

func (r *report) lines() []string {
	k := r.setup.key
	title := fmt.Sprintf("%s on %d x %s, %s", k.Model, k.TensorParallelSize, k.GPU, r.setup.engine)
	out := []string{strings.TrimSuffix(title, ", ")}
	if r.Fitted != nil {
		out = append(out, "", r.fit.method, "", fmt.Sprintf("%-24s %g %% CI           uncertainty", "", 100*level))
		rows := r.Fitted
		if h := r.Host; h != nil {
			rows = append(slices.Clone(rows), fittedCoefficient{"host", h.US, nil, &h.Uncertainty, h.Source})
		}
		for _, c := range rows {
			value := strconv.FormatFloat(c.Value, 'g', -1, 64)
			out = append(out, fmt.Sprintf("%-9s %10s us  %-18s %-18s %s", c.Name, value,
				formatInterval(c.CI), formatInterval(c.Uncertainty), c.Source))
		}
		out = append(out, "(CI: scatter of the data only. Uncertainty: also nonlinear step times and the prior.)", "")
		out = append(out, formatIdentifiability(r.Identifiability)...)
		if r.Trend != nil {
			out = append(out, r.Trend.String())
		}
	}
	if r.Suggested != nil {
		out = append(out, "", "This benchmark would identify them (a spec for blis-gen):", "",
			strings.TrimSpace(r.Suggested.Spec))
	}
	switch {
	case len(r.Scores) == 0 && r.StepScore == nil:
	case r.Fitted == nil:
		out = append(out, "", "Errors on these recordings:")
	default:
		out = append(out, "", "Errors on held-out data:")
	}
	if s := r.StepScore; s != nil {
		out = append(out, fmt.Sprintf("  %s: median error %.2g %%", s.Data, s.MedianAbsError))
	}
	for _, s := range r.Scores {
		out = append(append(out, ""), s.lines()...)
	}
	return append(out, "")
}

func (s *score) lines() []string {
	out := []string{fmt.Sprintf("%s: %d requests, %.3g concurrent sequences", s.Data, s.Requests, s.Load)}
	for _, m := range s.Metrics {
		out = append(out, strings.TrimRight(fmt.Sprintf("  %-10s %10.5g ms measured %10.5g simulated %+7.1f %%   %s",
			m.Metric, m.Measured, m.Simulated, m.Percent, formatInterval(m.Uncertainty)), " "))
	}
	if s.StepUncertainty > 0 {
		out = append(out, fmt.Sprintf("  ranges: step times shorter and longer by %.2g %%: %s",
			s.StepUncertainty, s.Why))
	}
	tail := fmt.Sprintf("  E2E of single requests: mean absolute error %.3g %%", s.MAPE)
	if s.Correlation != nil {
		tail += fmt.Sprintf(", correlation %.2f", *s.Correlation)
	}
	return append(out, tail)
}

func formatInterval(i *stat.Interval) string {
	if i == nil {
		return ""
	}
	return fmt.Sprintf("%.5g to %.5g", i.Lo, i.Hi)
}

func formatIdentifiability(id *leastsq.Identifiability) []string {
	number := func(f *float64) string {
		if f == nil {
			return "infinite"
		}
		return fmt.Sprintf("%.3g", *f)
	}
	var factors []string
	for _, v := range id.VIF {
		factors = append(factors, v.Coefficient+" "+number(v.Factor))
	}
	out := []string{fmt.Sprintf("condition number %s (not identifiable at %d or more); variance "+
		"inflation (at %d or more) %s", number(id.Condition), leastsq.MaxCondition, leastsq.MaxInflation,
		strings.Join(factors, ", "))}
	for _, w := range id.Weak {
		out = append(out, "weakly identified: "+w)
	}
	return out
}

// writeResiduals writes the times of each scored request as CSV, and counts them. The file
// appears only when it is complete.
func (r *report) writeResiduals(name string) (rows int, err error) {
	f, err := stream.Create(name)
	if err != nil {
		return 0, fmt.Errorf("--residuals: %w", err)
	}
	defer f.Close()
	w := csv.NewWriter(f)
	w.Write([]string{"data", "request", "arrival_us", "input_tokens", "output_tokens",
		"ttft_us", "ttft_simulated_us", "e2e_us", "e2e_simulated_us"})
	us := func(v float64) string {
		if math.IsNaN(v) {
			return ""
		}
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	for _, h := range r.holdouts {
		for i, in := range h.selected {
			if !in || h.simulated == nil {
				continue
			}
			q, m, s := &h.run.requests[i], h.run.measured[i], h.simulated[i]
			w.Write([]string{h.name, q.ID, fmt.Sprint(int64(q.ArrivalUS)), fmt.Sprint(q.InputTokens),
				fmt.Sprint(q.OutputTokens), us(m.ttft), us(s.ttft), us(m.e2e), us(s.e2e)})
			rows++
		}
	}
	if w.Flush(); w.Error() != nil {
		return rows, w.Error()
	}
	return rows, f.Commit()
}
