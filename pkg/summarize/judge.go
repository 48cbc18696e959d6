package summarize

import (
	"errors"
	"fmt"
	"slices"

	"blis/pkg/attribution"
	"blis/pkg/fitness"
	"blis/pkg/stream"
)

// candidate is one configuration in one or more scenarios.
type candidate struct {
	name string
	runs []*runDoc
	// result is nil if a run has no score; err is then the reason.
	result *fitness.Result
	err    error
	pareto *fitness.Ranking
	// references are the scores of the reference runs over the same scenarios, nil without any.
	references [2]*float64
}

// scoreAll groups the runs by candidate and scores them. It returns the errors of runs
// without a score, except for runs that carry an error record themselves.
func (r *analysis) scoreAll() error {
	if r.runs[0].workload != nil {
		return r.runs[0].err
	}
	for _, x := range slices.Concat(r.references[:]...) {
		if x.err != nil {
			return fmt.Errorf("reference run %s: %w", x.name, x.err)
		}
	}
	r.groupByConfiguration()
	if err := r.chooseFitness(); err != nil {
		return err
	}
	var faults []error
	for _, c := range r.candidates {
		for _, x := range c.runs {
			if x.err == nil {
				x.err = r.score(x)
			}
			if _, carried := errors.AsType[*stream.UpstreamError](x.err); x.err != nil && !carried {
				faults = append(faults, x.err)
			}
		}
		r.combine(c)
	}
	r.rank()
	return errors.Join(faults...)
}

// groupByConfiguration groups runs with the same configuration into candidates. A run
// whose configuration is unknown belongs to the only candidate, if there is one.
func (r *analysis) groupByConfiguration() {
	byKey := map[string]*candidate{}
	var unidentified []*runDoc
	for _, x := range r.runs {
		key := x.configuration()
		if key == "" {
			unidentified = append(unidentified, x)
			continue
		}
		c := byKey[key]
		if c == nil {
			c = &candidate{}
			byKey[key] = c
			r.candidates = append(r.candidates, c)
		}
		c.runs = append(c.runs, x)
	}
	only := len(r.candidates) == 1
	for _, x := range unidentified {
		if only {
			r.candidates[0].runs = append(r.candidates[0].runs, x)
		} else {
			r.candidates = append(r.candidates, &candidate{runs: []*runDoc{x}})
		}
	}
	slices.SortStableFunc(r.candidates, func(a, b *candidate) int {
		return slices.Index(r.runs, a.runs[0]) - slices.Index(r.runs, b.runs[0])
	})
	for _, c := range r.candidates {
		for _, x := range c.runs {
			x.candidate = c
		}
		c.name = c.runs[0].name
		if len(c.runs) > 1 && len(r.candidates) > 1 {
			c.name = "policy " + stream.ShortDigest(c.runs[0].header.Run.Key.Policy)
		}
	}
}

// configuration identifies the candidate of the run, "" if it is unknown.
func (s *summary) configuration() string {
	if s.header == nil || s.header.Run == nil {
		return ""
	}
	return fmt.Sprint(s.header.Run.ConfigDigest, s.header.Run.Clairvoyant)
}

// The default scores.
const (
	attainment = "m.goodput.ratio"
	completion = "m.requests.completed / max(m.requests.offered + m.requests.not_issued, 1)"
)

// chooseFitness sets the default score if none is given: the share of requests that met
// their targets or, if a run has no targets, the share that completed.
func (r *analysis) chooseFitness() (err error) {
	if r.fitness != nil {
		var names []string
		for _, x := range r.runs {
			names = append(names, x.name)
		}
		return r.fitness.CheckHoldout(names)
	}
	src := attainment
	for _, x := range r.runs {
		if x.raw != nil && x.raw.Goodput == nil {
			src = completion
		}
	}
	r.defaultFitness = true
	r.fitness, err = fitness.Expression("--fitness", src)
	return err
}

// score computes the fitness of one run.
func (r *analysis) score(x *runDoc) (err error) {
	for i, refs := range r.references {
		if x.references[i].runDoc, err = r.referenceFor(x, refs, "--"+referenceKinds[i]); err != nil {
			return err
		}
	}
	if x.result, err = r.fitness.Evaluate(x.inPlace(x)); err != nil {
		return err
	}
	// Reference runs are scored too, with the baselines of this run: the same parent can
	// have different baselines for different runs.
	for i := range x.references {
		ref := &x.references[i]
		if ref.runDoc == nil {
			continue
		}
		if ref.score, err = r.fitness.Evaluate(x.inPlace(ref.runDoc)); err != nil {
			return fmt.Errorf("reference run %s: %w", ref.name, err)
		}
		// A column of a table has one score: the one with a run of its own workload.
		if ref.result == nil || ref.sameWorkload(x) {
			ref.result = ref.score
		}
	}
	r.findNoise(x)
	r.explain(x, x.inPlace(x), x.result)
	for _, ref := range x.references {
		if ref.runDoc != nil {
			r.explain(ref.runDoc, x.inPlace(ref.runDoc), ref.score)
		}
	}
	return nil
}

// explain finds once what a run loses, and why.
func (r *analysis) explain(x *runDoc, run *fitness.Run, result *fitness.Result) {
	if x.narrative == nil || x.findings != nil || x.insight.Empty() {
		return
	}
	var sources []attribution.LossSource
	if !r.defaultFitness {
		for _, l := range r.fitness.Losses(run, result) {
			sources = append(sources, attribution.LossSource(l))
		}
	}
	x.findings = x.insight.Find(sources...)
}

// inPlace is the run y for fitness expressions, with the references of r.
func (r *runDoc) inPlace(y *runDoc) *fitness.Run {
	return fitness.NewRun(y.tree(), y.header.SLOClasses, r.references[0].tree(), r.references[1].tree())
}

func (r *runDoc) sameWorkload(x *runDoc) bool { return r.end.WorkloadDigest == x.end.WorkloadDigest }

// tree returns the metrics for fitness expressions; r may be nil.
func (r *runDoc) tree() fitness.Tree {
	if r == nil {
		return fitness.Tree{}
	}
	return fitness.Tree{Raw: r.raw, NoAnomalies: r.minimal() || r.options.isPartial() || r.merged != nil}
}

// referenceFor returns the run of refs that x is compared with: the one of its workload
// or, if there is only one, that one.
func (r *analysis) referenceFor(x *runDoc, refs []*runDoc, flag string) (*runDoc, error) {
	if len(refs) == 0 {
		return nil, nil
	}
	for _, ref := range refs {
		if ref.sameWorkload(x) {
			return ref, nil
		}
	}
	if len(refs) > 1 {
		return nil, fmt.Errorf("%s: no %s has its workload (%s)", x.name, flag,
			stream.ShortDigest(x.end.WorkloadDigest))
	}
	warning := fmt.Sprintf("%s is compared with a run of a different workload: %s %s", x.name, flag, refs[0].name)
	if r.options.Strict {
		return nil, errors.New(warning)
	}
	r.warnings = append(r.warnings, warning)
	r.options.warn(warning)
	return refs[0], nil
}

// combine computes the result of the candidate from those of its runs.
func (r *analysis) combine(c *candidate) {
	var scenarios []fitness.Scenario
	for _, x := range c.runs {
		if c.err = x.err; c.err != nil {
			return
		}
		scenarios = append(scenarios, fitness.Scenario{Name: x.name, Result: x.result})
	}
	if !slices.ContainsFunc(scenarios, func(s fitness.Scenario) bool { return !r.fitness.HeldOut(s.Name) }) {
		c.err = errors.New("all scenarios of the candidate are held out")
		return
	}
	c.result = r.fitness.Combine(scenarios)
	for i := range c.references {
		for k, x := range c.runs {
			scenarios[k].Result = x.references[i].score
		}
		if scenarios[0].Result != nil {
			c.references[i] = &r.fitness.Combine(scenarios).Score
		}
	}
}

// rank ranks the candidates by their objectives, if there are any.
func (r *analysis) rank() {
	if len(r.fitness.Objectives) == 0 {
		return
	}
	var all [][]fitness.Value
	for _, c := range r.candidates {
		values := r.fitness.Empty().Objectives
		if c.result != nil {
			values = c.result.Objectives
		}
		all = append(all, values)
	}
	for i, place := range fitness.Pareto(all) {
		r.candidates[i].pareto = &place
	}
}

// representative returns the run that represents a candidate: the first that is not held
// out.
func (r *analysis) representative(c *candidate) *runDoc {
	for _, x := range c.runs {
		if !r.fitness.HeldOut(x.name) {
			return x
		}
	}
	return c.runs[0]
}

// score returns the score of the candidate: exactly 0 if it did not load.
func (c *candidate) score() float64 {
	if c.result == nil {
		return 0
	}
	return c.result.Score
}
