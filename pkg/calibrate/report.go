package calibrate

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"blis/pkg/hardware"
	"blis/pkg/latency"
)

// Report is what a fit found, or a check.
type Report struct {
	// Set is the coefficients as blis-sim takes them.
	Set *hardware.Set `json:"coefficients"`
	// Fitted are those of the linear model with what they come from; none of a check.
	Fitted []Coefficient `json:"fitted,omitempty"`
	// Host is what was added to steps of GPUs alone.
	Host *Host `json:"host,omitempty"`
	// Drift is what TTFT does beside the model; absent where no client's times were fitted.
	Drift *Drift `json:"ttft_drift,omitempty"`
	// Identifiability is of the data fitted to; Advice a workload that would tell what
	// they do not.
	Identifiability *Identifiability `json:"identifiability,omitempty"`
	Advice          *Advice          `json:"advice,omitempty"`
	// Scheduling says which asynchronous scheduling fits; "" where it was not tried.
	Scheduling string `json:"scheduling,omitempty"`
	// Scores are errors on requests that the fit has not seen, StepScore those on steps or
	// phases; of a check, on all that was recorded.
	Scores    []*Score   `json:"scores"`
	StepScore *StepScore `json:"step_score,omitempty"`
	Warnings  []string   `json:"warnings"`

	setup *setup
	parts []part
	fit   fitted
	// played are the runs that were fitted to by simulation, or judged.
	played []played
}

// fitted is what a fit leaves behind.
type fitted struct {
	Coefficients
	table     *latency.Table // in the place of β; nil: none
	intervals [len(names)]Interval
	// doubts are about the coefficients, and count in by what the model is in doubt and
	// what the prior says: they may be wider than the intervals, which are the data's own,
	// or narrower. Those of a regression are its intervals.
	doubts [len(names)]Interval
	from   [len(names)]string
	method string
	id     Identifiability
	load   load
	// regressed: to times that the server itself has; simulated: with the simulator in
	// the loop.
	regressed, simulated bool
}

// Coefficient is one of those of the linear model, in µs, µs a token or,
// alpha[3], µs a sequence that decodes.
type Coefficient struct {
	Name  string  `json:"name"`
	Value float64 `json:"value_us"`
	// Low and High are the data's own interval, of the level in the set: were they
	// recorded again and again, so many such intervals would hold what they lead to.
	// Absent of one that was not fitted.
	Low  *float64 `json:"low_us,omitempty"`
	High *float64 `json:"high_us,omitempty"`
	// DoubtLow and DoubtHigh are about Value, which may be outside of the data's interval:
	// what it lies between at the same level, counting in that step times may lie off a
	// line, as kernels make them, and what the prior says of it. They may be wider than the
	// data's or narrower; absent where that is not drawn.
	DoubtLow  *float64 `json:"doubt_low_us,omitempty"`
	DoubtHigh *float64 `json:"doubt_high_us,omitempty"`
	// From says where it comes from.
	From string `json:"from"`
}

// finish makes the report of a fit.
func (r *Report) finish() {
	f := &r.fit
	for k, v := range f.list() {
		if f.from[k] == "" {
			continue // alpha[3], which did not earn its place
		}
		c := Coefficient{Name: names[k], Value: round(v, 5), From: f.from[k]}
		c.Low, c.High = ends(f.intervals[k])
		if f.doubts != f.intervals {
			c.DoubtLow, c.DoubtHigh = ends(f.doubts[k])
		}
		r.Fitted = append(r.Fitted, c)
	}
	r.Identifiability = &f.id
	r.warnMisfit()
	alike := r.setup.alike()
	if len(f.id.Confounded) > 0 || alike != "" {
		r.Advice = r.setup.advise(f, alike)
	}
	if alike != "" {
		r.setup.warnf("%s", alike)
	}
	if len(f.id.Confounded) > 0 {
		r.setup.warnf("the data cannot tell %s: %s", f.id.untold(), r.Advice.Why)
	}
	r.warnSetup()
	r.Warnings = append([]string{}, r.setup.warnings...)
	r.Set = r.set()
}

// ends are those of an interval; nil of one without a length.
func ends(i Interval) (low, high *float64) {
	if !(i.High > i.Low) {
		return nil, nil
	}
	a, b := round(i.Low, 4), round(i.High, 4)
	return &a, &b
}

// warnSetup warns of what was assumed, and of what is amplified.
func (r *Report) warnSetup() {
	e := &r.setup.deployment.Engine
	switch {
	case r.setup.assumed:
		r.setup.warnf("how the engine was set is not known; taken are max_num_seqs %d, max_num_batched_tokens %d, %d KV blocks, async_scheduling %v: give --cluster with what was", e.MaxNumSeqs, e.MaxNumBatchedTokens, r.setup.deployment.Blocks(), e.AsyncScheduling)
	case e.Preset == "" && len(r.setup.runs) > 0 && r.setup.derives("engine.async_scheduling"):
		r.setup.warnf("how the engine was set is not known: %s has neither async_scheduling nor a preset; taken is async_scheduling %v", filepath.Base(r.setup.options.Cluster), e.AsyncScheduling)
	}
	r.warnCapacity()
	r.warnWholeBlocks()
	for _, run := range r.setup.runs {
		if run.replicas > 1 {
			r.setup.warnf("%s: %d replicas; how requests were balanced is taken to be %s", run.name, run.replicas, r.setup.routing)
		}
	}
	for _, s := range r.Scores {
		if s.Doubt > 0 {
			r.setup.warnf("%s: %s: trust the band, not the number", s.Data, s.Why)
		}
	}
}

// derives reports whether the cluster file does not state a value of the deployment.
func (s *setup) derives(path string) bool {
	d := s.deployment.Derived
	return d != nil && slices.Contains(d.Values, path)
}

// warnCapacity warns where a recording shows more at a time than the setup can have.
func (r *Report) warnCapacity() {
	d := r.setup.deployment
	blocks, size := d.Blocks()*d.Engine.DataParallelSize, d.Engine.BlockSize
	for _, run := range r.setup.runs {
		if len(run.requests) == 0 || run.period > 0 {
			continue
		}
		if n := run.decoding().peak() / float64(run.replicas); n > 1.02*float64(run.seats) {
			r.setup.warnf("%s: %.0f sequences decode at one time, and max_num_seqs is %d: the engine is not as recorded", run.name, n, run.seats)
		}
		if n := run.held() / float64(size); n > 1.02*float64(blocks) && !run.cached {
			r.setup.warnf("%s: answers that overlap hold some %.0f blocks of %d tokens, and the engine has %d: give --cluster with num_gpu_blocks_override or gpu_memory_utilization as it was", run.name, n, size, blocks)
		}
	}
}

// writeJSON writes the report as one document.
func (r *Report) writeJSON(out io.Writer) error {
	enc := json.NewEncoder(out)
	enc.SetIndent("", "  ")
	return enc.Encode(r)
}

// writeText writes the report for people, of a fit as comments before the
// coefficients.
func (r *Report) writeText(out io.Writer) error {
	lines := r.lines()
	if r.Fitted == nil {
		_, err := io.WriteString(out, strings.Join(lines, "\n")+"\n")
		return err
	}
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(strings.TrimRight("# "+l, " ") + "\n")
	}
	writeSet(&b, r.Set)
	_, err := io.WriteString(out, b.String())
	return err
}

func (r *Report) lines() []string {
	k := r.setup.key
	out := []string{fmt.Sprintf("%s on %d x %s%s", k.Model, k.TensorParallelSize, k.GPU, spaced(r.setup.engine))}
	if r.Fitted != nil {
		out = append(out, "", r.fit.method, "")
		out = append(out, fmt.Sprintf("%-24s %-18s %s", "", fmt.Sprintf("the data's %g %%", levelPercent), "and in all"))
		for _, c := range r.Fitted {
			out = append(out, fmt.Sprintf("%-9s %10s us  %-18s %-18s %s", c.Name, strconv.FormatFloat(c.Value, 'g', -1, 64), between(c.Low, c.High), between(c.DoubtLow, c.DoubtHigh), c.From))
		}
		if h := r.Host; h != nil {
			out = append(out, fmt.Sprintf("%-9s %10g us  %-18s %-18s %s", "host", h.US, "", between(&h.Low, &h.High), h.From))
		}
		out = append(out, "(what the data's scatter leaves open of where the data alone lead; and, where it is told beside, what is left open of the coefficient in all:",
			"with step times that lie off a line as those of single requests do, and with what the prior says, which may make it the narrower)", "")
		out = append(out, r.Identifiability.text()...)
		if r.Drift != nil {
			out = append(out, r.Drift.String())
		}
		if r.Scheduling != "" {
			out = append(out, r.Scheduling)
		}
	}
	if r.Advice != nil {
		out = append(out, "", "This workload would tell them apart (blis-gen takes it as a spec):", "")
		out = append(out, strings.Split(strings.TrimRight(r.Advice.Spec, "\n"), "\n")...)
	}
	if len(r.Scores) > 0 || r.StepScore != nil {
		head := "On data that the fit has not seen:"
		if r.Fitted == nil {
			head = "Of these recordings:"
		}
		out = append(out, "", head)
	}
	if s := r.StepScore; s != nil {
		out = append(out, fmt.Sprintf("  %s: half of them are within %.2g %%", s.Data, s.Percent))
	}
	for _, s := range r.Scores {
		out = append(append(out, ""), s.text()...)
	}
	return append(out, "")
}

func between(low, high *float64) string {
	if low == nil {
		return ""
	}
	return fmt.Sprintf("%g to %g", *low, *high)
}

func spaced(s string) string {
	if s == "" {
		return ""
	}
	return ", " + s
}

// text says for people what can be told apart.
func (id *Identifiability) text() []string {
	var factors []string
	for _, v := range id.VarianceInflation {
		factors = append(factors, fmt.Sprintf("%s %s", v.Coefficient, number(v.Factor)))
	}
	condition := "infinite"
	if id.Condition != nil {
		condition = fmt.Sprintf("%.3g", *id.Condition)
	}
	out := []string{fmt.Sprintf("condition number %s (from %d on, some stand for each other); variance inflation (from %d on) %s", condition, MostCondition, MostInflation, strings.Join(factors, ", "))}
	for _, w := range id.Weak {
		out = append(out, "hardly told: "+w)
	}
	return out
}

func number(f *float64) string {
	if f == nil {
		return "infinite"
	}
	return fmt.Sprintf("%.3g", *f)
}

// residuals writes what each judged request saw, and counts these.
func (r *Report) residuals(file string) (rows int, err error) {
	err = create(file, func(out io.Writer) error {
		w := csv.NewWriter(out)
		if err := w.Write([]string{"data", "request", "arrival_us", "input_tokens", "output_tokens", "ttft_us", "ttft_simulated_us", "e2e_us", "e2e_simulated_us"}); err != nil {
			return err
		}
		us := func(v float64) string {
			if math.IsNaN(v) {
				return ""
			}
			return strconv.FormatFloat(v, 'f', 0, 64)
		}
		for _, p := range r.parts {
			for i, in := range p.in {
				if !in || p.simulated == nil {
					continue
				}
				q, m, s := &p.run.requests[i], p.run.measured[i], p.simulated[i]
				if err := w.Write([]string{p.name, q.ID, strconv.FormatInt(int64(q.ArrivalUS), 10), strconv.FormatInt(q.InputTokens, 10), strconv.FormatInt(q.OutputTokens, 10),
					us(m.ttft), us(s.ttft), us(m.e2e), us(s.e2e)}); err != nil {
					return err
				}
				rows++
			}
		}
		w.Flush()
		return w.Error()
	})
	return rows, err
}
