package summarize

import (
	"errors"
	"fmt"
	"slices"

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
	// references are the scores of the reference runs over the same scenarios, by tree
	// (base, parent).
	references map[string]*float64
}

// scoreAll groups the runs by candidate and scores them. It returns the errors of runs
// without a score, except for runs that carry an error record themselves.
func (r *analysis) scoreAll() error {
	if r.runs[0].workload != nil {
		return r.runs[0].err
	}
	if err := firstError(slices.Concat(r.baselines, r.parents)); err != nil {
		return err
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
			if x.err != nil && !x.carriesFault() {
				faults = append(faults, x.err)
			}
		}
		r.combine(c)
	}
	r.rank()
	return errors.Join(faults...)
}

// firstError returns the first error of the reference runs.
func firstError(all []*runDoc) error {
	for _, x := range all {
		if x.err != nil {
			return fmt.Errorf("reference run %s: %w", x.name, x.err)
		}
	}
	return nil
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
		return r.checkHoldout()
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

func (r *analysis) checkHoldout() error {
	var names []string
	for _, x := range r.runs {
		names = append(names, x.name)
	}
	return r.fitness.CheckHoldout(names)
}

// score computes the fitness of one run.
func (r *analysis) score(x *runDoc) (err error) {
	if x.base, err = r.referenceFor(x, r.baselines, "--baseline"); err != nil {
		return err
	}
	if x.parent, err = r.referenceFor(x, r.parents, "--parent"); err != nil {
		return err
	}
	evaluate := func(y *runDoc) (*fitness.Result, error) {
		return r.fitness.Evaluate(fitness.NewRun(y.tree(), y.header.SLOClasses, x.base.tree(), x.parent.tree()))
	}
	if x.result, err = evaluate(x); err != nil {
		return err
	}
	// Reference runs are scored too, with the baselines of this run: the same parent can
	// have different baselines for different runs.
	x.references = map[string]*fitness.Result{}
	for i, ref := range []*runDoc{x.base, x.parent} {
		if ref == nil {
			continue
		}
		tree := roles[i+1]
		if x.references[tree], err = evaluate(ref); err != nil {
			return fmt.Errorf("reference run %s: %w", ref.name, err)
		}
		// A column of a table has one score: the one with a run of its own workload.
		if ref.result == nil || ref.end.WorkloadDigest == x.end.WorkloadDigest {
			ref.result = x.references[tree]
		}
	}
	x.noise = r.noise(x)
	return nil
}

// tree returns the metrics for fitness expressions; r may be nil.
func (r *runDoc) tree() fitness.Tree {
	if r == nil {
		return fitness.Tree{}
	}
	return fitness.Tree{Raw: r.raw, NoAnomalies: r.minimal() || r.options.isPartial()}
}

// referenceFor returns the run of refs that x is compared with: the one of its workload
// or, if there is only one, that one.
func (r *analysis) referenceFor(x *runDoc, refs []*runDoc, flag string) (*runDoc, error) {
	if len(refs) == 0 {
		return nil, nil
	}
	for _, ref := range refs {
		if ref.end.WorkloadDigest == x.end.WorkloadDigest {
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
	if r.options.Warn != nil {
		r.options.Warn(warning)
	}
	return refs[0], nil
}

// combine computes the result of the candidate from those of its runs.
func (r *analysis) combine(c *candidate) {
	var scenarios []fitness.Scenario
	for _, x := range c.runs {
		if x.err != nil {
			if c.err == nil {
				c.err = x.err
			}
			continue
		}
		scenarios = append(scenarios, fitness.Scenario{Name: x.name, Result: x.result})
	}
	if c.err != nil {
		return
	}
	if !slices.ContainsFunc(scenarios, func(s fitness.Scenario) bool { return !r.fitness.HeldOut(s.Name) }) {
		c.err = errors.New("all scenarios of the candidate are held out")
		return
	}
	c.result = r.fitness.Combine(scenarios)
	c.references = map[string]*float64{
		"base":   r.reference(c, "base"),
		"parent": r.reference(c, "parent"),
	}
}

// reference returns the score of the candidate's reference runs, nil without any.
func (r *analysis) reference(c *candidate, tree string) *float64 {
	var scenarios []fitness.Scenario
	for _, x := range c.runs {
		ref := x.references[tree]
		if ref == nil {
			return nil
		}
		scenarios = append(scenarios, fitness.Scenario{Name: x.name, Result: ref})
	}
	return &r.fitness.Combine(scenarios).Score
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
