package summarize

import (
	"errors"
	"slices"
	"strings"

	"blis/pkg/attribution"
	"blis/pkg/report"
	"blis/pkg/stream"
)

// narrative holds what a run records about its decisions, for a text that explains its
// result.
type narrative struct {
	insight  *attribution.Analyzer
	findings *attribution.Findings // nil if the run has no outcomes
	// Buffers for records.
	decision stream.Decision
	regret   stream.Regret
}

// wantsText reports whether the output explains the numbers.
func (o *Options) wantsText() bool {
	if o.Plot != "" {
		return o.HTML != ""
	}
	return o.Format == "text" || o.Format == "json" || o.Explain.IsSet() || o.HTML != ""
}

// wantsNoise reports whether the output has intervals for score differences.
func (o *Options) wantsNoise() bool { return o.wantsText() && len(o.Baseline)+len(o.Parent) > 0 }

// observe adds the current record.
func (t *narrative) observe(r *stream.Reader) error {
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
		p := stream.Preemption{Replica: stream.NoIndex}
		if err := r.Decode(&p); err != nil {
			return err
		}
		t.insight.Preemption(&p)
	case stream.KindReplicaState:
		state := stream.ReplicaState{Replica: stream.NoIndex}
		if err := r.Decode(&state); err != nil {
			return err
		}
		t.insight.ReplicaState(&state)
	case stream.KindScalingRegret:
		var regret stream.ScalingRegret
		if err := r.Decode(&regret); err != nil {
			return err
		}
		t.insight.ScalingRegret(&regret)
	}
	return nil
}

// input returns what a text about the run x of candidate c needs.
func (r *analysis) input(c *candidate, x *runDoc) *report.Input {
	in := &report.Input{Header: x.header, WorkloadDigest: x.end.WorkloadDigest, Metrics: x.raw, Analyzer: x.insight,
		Findings: x.findings, Fitness: c.result, DefaultFitness: r.defaultFitness,
		Warnings: slices.Concat(x.warnings, x.raw.Warnings)}
	if x.merged != nil {
		in.Shards = len(x.merged.parts)
	}
	if least, _ := r.leastIntact(); least != nil {
		in.Integrity = least.integrityText
	}
	if part := x.selection(); part != nil {
		in.Selection = part.text()
	}
	for i, ref := range x.references {
		if ref.runDoc == nil {
			continue
		}
		reference := report.Reference{Name: referenceKinds[i], Score: c.references[i], Header: ref.header,
			Metrics:       ref.raw,
			OtherWorkload: !ref.sameWorkload(x)}
		if ref.narrative != nil {
			reference.Findings = ref.findings
		}
		if ref.noise != nil && len(c.runs) == 1 {
			reference.Lo, reference.Hi = &ref.noise.Lo, &ref.noise.Hi
		}
		in.References = append(in.References, reference)
	}
	if len(c.runs) > 1 {
		for _, run := range c.runs {
			in.Scenarios = append(in.Scenarios,
				report.Scenario{Name: run.name, Score: run.result.Score, Metrics: run.raw,
					HeldOut: r.fitness.HeldOut(run.name), Subject: run == x})
		}
	}
	return in
}

// worstRun returns the run that a text about the candidate describes: the one with the
// lowest score that is not held out.
func (r *analysis) worstRun(c *candidate) *runDoc {
	worst := r.representative(c)
	for _, x := range c.runs {
		if !r.fitness.HeldOut(x.name) && x.result.Score < worst.result.Score {
			worst = x
		}
	}
	return worst
}

// text renders the explanation for one candidate. For a workload or several candidates it
// renders tables.
func (r *analysis) text(err error) ([]byte, error) {
	if len(r.candidates) != 1 {
		if r.options.Explain.IsSet() {
			return nil, errors.New("--explain needs exactly one run; there are several, or a workload")
		}
		return r.table(err)
	}
	c := r.candidates[0]
	if c.err != nil {
		return report.Failure(c.err), nil
	}
	x := r.worstRun(c)
	if !r.options.Explain.IsSet() {
		return report.Text(r.input(c, x), &r.options.Report), nil
	}
	if x.findings == nil {
		return nil, errors.New("--explain: the run has no outcomes (--trace minimal)")
	}
	return report.Explain(r.input(c, x), &r.options.Report, &r.options.Explain)
}

// artifacts returns the texts of the document about the first candidate. A workload has
// none.
func (r *analysis) artifacts(d *Document) (a Artifacts) {
	if d.err != nil {
		a.Feedback = string(report.Failure(d.err))
	}
	if d.err != nil || d.Workload != nil {
		return a
	}
	c := r.candidates[0]
	in := r.input(c, r.worstRun(c))
	sections := report.Sections(in, &r.options.Report)
	a.Feedback = string(report.Leading(sections))
	artifact := map[string]*string{"SCORE": &a.Score, "PATTERNS": &a.Patterns, "WORST": &a.Worst,
		"ANOMALIES": &a.Anomalies, "HEADROOM": &a.Headroom}
	for _, s := range sections {
		if text := artifact[s.Name]; text != nil && !strings.Contains(a.Feedback, s.Text) {
			*text = s.Text
		}
	}
	return a
}
