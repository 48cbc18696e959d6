package calibrate

import (
	_ "embed"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"text/template"

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
	// Scatter is that of the fitted blocks of time; the smallest one where there are none; nil in an evaluation.
	Scatter *scatter `json:"block_errors,omitempty"`
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
	// Uncertainty is where a fit of another workload of the server would be: with steps that deviate
	// from a line, the prior, and differences between workloads. It may be wider or narrower than
	// CI, which may not include Value; nil where it is CI.
	Uncertainty *stat.Interval `json:"uncertainty,omitempty"`
	Source      string         `json:"source"`
}

// finish completes the report.
func (r *report) finish() {
	f := &r.fit
	for k, v := range f.value {
		if f.source[k] == "" {
			continue // an evaluation, or alpha[3] without effect
		}
		c := fittedCoefficient{Name: f.shape.rename(names[k]), Value: round(v, 5), CI: roundInterval(f.ci[k]),
			Source: f.shape.rename(f.source[k])}
		if f.uncertainty != f.ci {
			c.Uncertainty = roundInterval(f.uncertainty[k])
		}
		r.Fitted = append(r.Fitted, c)
	}
	r.runChecks()
	for i := range r.Warnings {
		r.Warnings[i] = f.shape.rename(r.Warnings[i])
	}
	for _, s := range r.Scores {
		s.Why = f.shape.rename(s.Why)
	}
	if r.Fitted != nil {
		f.renameIdentified()
		r.Identifiability, r.Set = &f.id, r.set()
	}
}

// renameIdentified names coefficients as files do.
func (f *fitResult) renameIdentified() {
	for _, list := range [][]string{f.id.Not, f.id.Weak} {
		for i := range list {
			list[i] = f.shape.rename(list[i])
		}
	}
	for i := range f.id.VIF {
		f.id.VIF[i].Coefficient = f.shape.rename(f.id.VIF[i].Coefficient)
	}
}

// roundInterval rounds an interval for people; it is nil if the interval has no length.
func roundInterval(i stat.Interval) *stat.Interval {
	if !(i.Hi > i.Lo) {
		return nil
	}
	return &stat.Interval{Lo: round(i.Lo, 4), Hi: round(i.Hi, 4), Level: i.Level}
}

//go:embed report.tmpl
var layout string

// reportTemplate returns the report for people.
func reportTemplate() *template.Template {
	return template.Must(template.New("report").Funcs(template.FuncMap{
		"number": func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) },
		"unit": func(name string) string {
			if name == "prefill" { // a factor
				return "  "
			}
			return "us"
		},
		"deref": func(v *float64) float64 { return *v },
		"trim":  strings.TrimSpace,
		"interval": func(i *stat.Interval) string {
			if i == nil {
				return ""
			}
			return fmt.Sprintf("%.5g to %.5g", i.Lo, i.Hi)
		},
	}).Parse(layout))
}

// writeText writes the report for people; that of a fit as comments before the coefficients.
func (r *report) writeText(out io.Writer) error {
	k := r.setup.key
	title := fmt.Sprintf("%s on %d x %s, %s", k.Model, k.TensorParallelSize, k.GPU, r.setup.engine)
	data := struct {
		*report
		Title, Method              string
		LevelPercent               float64
		MaxCondition, MaxInflation int
	}{r, strings.TrimSuffix(title, ", "), r.fit.method, 100 * level, leastsq.MaxCondition, leastsq.MaxInflation}
	var b strings.Builder
	if err := reportTemplate().Execute(&b, data); err != nil {
		return err
	}
	content := b.String()
	if r.Fitted != nil {
		comments := "# " + strings.ReplaceAll(strings.TrimSuffix(content, "\n"), "\n", "\n# ") + "\n"
		content = strings.ReplaceAll(comments, "# \n", "#\n") + r.Set.YAML()
	}
	_, err := io.WriteString(out, content)
	return err
}

// writeResiduals writes the times of each scored request as CSV.
func (r *report) writeResiduals(f *stream.File) error {
	w := csv.NewWriter(f)
	w.Write([]string{"data", "request", "arrival_us", "input_tokens", "output_tokens",
		"ttft_us", "ttft_simulated_us", "e2e_us", "e2e_simulated_us"})
	us := func(v float64) string {
		if math.IsNaN(v) {
			return ""
		}
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	rows := 0
	for _, h := range r.holdouts {
		for i, s := range h.simulated {
			if !h.selected[i] {
				continue
			}
			q, m := &h.run.requests[i], h.run.measured[i]
			w.Write([]string{h.name, q.ID, fmt.Sprint(int64(q.ArrivalUS)), fmt.Sprint(q.InputTokens),
				fmt.Sprint(q.OutputTokens), us(m.ttft), us(s.ttft), us(m.e2e), us(s.e2e)})
			rows++
		}
	}
	if rows == 0 {
		r.setup.options.warn(fmt.Sprintf("--residuals: %s is empty: no request is held out", r.setup.options.Residuals))
	}
	if w.Flush(); w.Error() != nil {
		return w.Error()
	}
	return f.Commit()
}
