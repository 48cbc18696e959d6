package summarize

import (
	"errors"

	"blis/pkg/attribution"
	"blis/pkg/metrics"
	"blis/pkg/report"
	"blis/pkg/stream"
)

// told is what a run tells of its decisions, for a text that says why it went as it
// did.
type told struct {
	insight  *attribution.Insight
	findings *attribution.Findings // nil where the run holds no outcomes
	// Memory for records.
	decision stream.Decision
	regret   stream.Regret
}

// tells reports whether the call asks for more than numbers.
func (o *Options) tells() bool {
	return o.Format == "text" || o.Format == "json" || o.Explain.Asked()
}

// compares reports whether the call says how much of a difference is noise.
func (o *Options) compares() bool { return o.tells() && len(o.Baseline)+len(o.Parent) > 0 }

// listen begins to gather from a run, whose classes may be others than it says.
func (s *summary) listen(classes []stream.SLOClass) {
	h := *s.header
	h.SLOClasses = classes
	s.told = &told{insight: attribution.New(&h)}
	s.insight.Ask(&s.options.Explain)
}

// hear takes the record at hand if it is one that tells.
func (t *told) hear(r *stream.Reader) error {
	switch r.Kind() {
	case stream.KindDecision:
		if err := r.Decision(&t.decision); err != nil {
			return err
		}
		t.insight.Decision(&t.decision)
	case stream.KindRegret:
		if err := r.Regret(&t.regret); err != nil {
			return err
		}
		t.insight.Regret(&t.regret)
	case stream.KindPreemption:
		p := stream.Preemption{Replica: stream.Nowhere}
		if err := r.Decode(&p); err != nil {
			return err
		}
		t.insight.Preemption(&p)
	}
	return nil
}

// conclude looks for what the records amount to.
func (t *told) conclude(raw *metrics.Raw) {
	if !t.insight.Empty() {
		t.insight.Metrics(raw)
		t.findings = t.insight.Find()
	}
}

// input is what there is to say of the run x of candidate c.
func (r *analysis) input(c *candidate, x *subject) *report.Input {
	in := &report.Input{Header: x.header, WorkloadDigest: x.end.WorkloadDigest, Metrics: x.raw, Insight: x.insight, Findings: x.findings,
		Fitness: c.result, Assumed: r.assumed, Warnings: append(append([]string{}, x.warnings...), x.raw.Warnings...)}
	if part := x.selection(); part != nil {
		in.Selection = part.text()
	}
	for _, ref := range []struct {
		name, tree string
		run        *subject
	}{{"baseline", "base", x.base}, {"parent", "parent", x.parent}} {
		if ref.run != nil {
			told := report.Reference{Name: ref.name, Score: c.references[ref.tree], Metrics: ref.run.raw, Elsewhere: ref.run.end.WorkloadDigest != x.end.WorkloadDigest}
			if noise, known := x.noise[ref.tree]; known && len(c.runs) == 1 {
				told.Lo, told.Hi = &noise.Lo, &noise.Hi
			}
			in.References = append(in.References, told)
		}
	}
	if len(c.runs) > 1 {
		for _, run := range c.runs {
			in.Scenarios = append(in.Scenarios, report.Scenario{Name: run.name, Score: run.result.Score, Metrics: run.raw, HeldOut: r.fitness.HeldOut(run.name), Told: run == x})
		}
	}
	return in
}

// tellable is the run that the text about a candidate is about: of those that count the
// one with the lowest score.
func (r *analysis) tellable(c *candidate) *subject {
	worst := r.shown(c)
	for _, x := range c.runs {
		if !r.fitness.HeldOut(x.name) && x.result.Score < worst.result.Score {
			worst = x
		}
	}
	return worst
}

// text is the summary that says why: of one candidate. A workload, and several
// candidates, are tables.
func (r *analysis) text(err error) ([]byte, error) {
	if len(r.candidates) != 1 {
		if r.options.Explain.Asked() {
			return nil, errors.New("--explain is about one run; these are several, or a workload")
		}
		return r.table(err)
	}
	c := r.candidates[0]
	if c.err != nil {
		return failure(c.err), nil
	}
	x := r.tellable(c)
	if !r.options.Explain.Asked() {
		return report.Text(r.input(c, x), &r.options.Telling), nil
	}
	if x.findings == nil {
		return nil, errors.New("--explain: the run holds no outcomes (--trace minimal)")
	}
	return report.Explain(r.input(c, x), &r.options.Telling, &r.options.Explain)
}

// failure is the text about what does not load.
func failure(err error) []byte {
	var fault *stream.FaultError
	if errors.As(err, &fault) {
		return report.Failure(err, &fault.Fault)
	}
	return report.Failure(err, nil)
}

// artifacts are the texts of the document about the first candidate. A workload has
// none.
func (r *analysis) artifacts(d *Document) (a Artifacts) {
	if d.err != nil {
		a.Feedback = string(failure(d.err))
	}
	if d.err != nil || d.Workload != nil {
		return a
	}
	c := r.candidates[0]
	in := r.input(c, r.tellable(c))
	sections := report.Sections(in, &r.options.Telling)
	a.Feedback = string(report.Brief(sections))
	for _, s := range sections {
		switch s.Name {
		case "SCORE":
			a.Score = s.Text
		case "PATTERNS":
			a.Patterns = s.Text
		case "WORST":
			a.Worst = s.Text
		case "ANOMALIES":
			a.Anomalies = s.Text
		case "HEADROOM":
			a.Headroom = s.Text
		}
	}
	return a
}
