package summarize

import (
	"errors"
	"fmt"
	"slices"

	"blis/pkg/fitness"
	"blis/pkg/stream"
)

// candidate is what is judged: one configuration, in one scenario or several.
type candidate struct {
	name string
	runs []*subject
	// result is nil, and err says why, where one of the runs has none.
	result *fitness.Result
	err    error
	place  *fitness.Place
	// references are the scores of what it is compared with, by its tree (base,
	// parent), over the same scenarios.
	references map[string]*float64
}

// judge groups the runs by candidate and scores them. Its error is that of the
// first run without a score, but for those that carry an error themselves.
func (r *analysis) judge() error {
	if r.runs[0].workload != nil {
		return r.runs[0].err
	}
	if err := readable(slices.Concat(r.baselines, r.parents)); err != nil {
		return err
	}
	r.group()
	if err := r.assume(); err != nil {
		return err
	}
	var faults []error
	for _, c := range r.candidates {
		for _, x := range c.runs {
			if x.err == nil {
				x.err = r.score(x)
			}
			if x.err != nil && !x.fault() {
				faults = append(faults, x.err)
			}
		}
		r.combine(c)
	}
	r.rank()
	return errors.Join(faults...)
}

// readable is the first error of runs to compare with.
func readable(all []*subject) error {
	for _, x := range all {
		if x.err != nil {
			return fmt.Errorf("%s, to compare with: %w", x.name, x.err)
		}
	}
	return nil
}

// group makes candidates of the runs: those with the same configuration are one.
// A run that does not say how it was configured belongs to the only candidate
// that there is, so that none of its scenarios is lost.
func (r *analysis) group() {
	byKey := map[string]*candidate{}
	var nameless []*subject
	for _, x := range r.runs {
		key := x.configuration()
		if key == "" {
			nameless = append(nameless, x)
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
	for _, x := range nameless {
		if only {
			r.candidates[0].runs = append(r.candidates[0].runs, x)
		} else {
			r.candidates = append(r.candidates, &candidate{runs: []*subject{x}})
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

// configuration tells candidates apart, "" if the stream does not say.
func (s *summary) configuration() string {
	if s.header == nil || s.header.Run == nil {
		return ""
	}
	return fmt.Sprint(s.header.Run.ConfigDigest, s.header.Run.Clairvoyant)
}

// The scores of a call that names none.
const (
	attainment = "m.goodput.ratio"
	completion = "m.requests.completed / max(m.requests.offered + m.requests.lost, 1)"
)

// assume takes the share of requests that met their targets for the score or,
// where a run has no targets, the share that completed, if the call names none.
func (r *analysis) assume() (err error) {
	if r.fitness != nil {
		return r.checkHoldout()
	}
	src := attainment
	for _, x := range r.runs {
		if x.raw != nil && x.raw.Goodput == nil {
			src = completion
		}
	}
	r.assumed = true
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
func (r *analysis) score(x *subject) (err error) {
	if x.base, err = r.match(x, r.baselines, "--baseline"); err != nil {
		return err
	}
	if x.parent, err = r.match(x, r.parents, "--parent"); err != nil {
		return err
	}
	evaluate := func(y *subject) (*fitness.Result, error) {
		return r.fitness.Evaluate(fitness.NewRun(y.tree(), y.header.SLOClasses, x.base.tree(), x.parent.tree()))
	}
	if x.result, err = evaluate(x); err != nil {
		return err
	}
	// What it is compared with is scored too, as if it had come in its place: a parent
	// of several runs in that of each, whose baselines may differ.
	x.references = map[string]*fitness.Result{}
	for i, ref := range []*subject{x.base, x.parent} {
		if ref == nil {
			continue
		}
		tree := roles[i+1]
		if x.references[tree], err = evaluate(ref); err != nil {
			return fmt.Errorf("%s, to compare with: %w", ref.name, err)
		}
		// A column of a table has one score: that beside a run of its own workload.
		if ref.result == nil || ref.end.WorkloadDigest == x.end.WorkloadDigest {
			ref.result = x.references[tree]
		}
	}
	x.noise = r.noise(x)
	return nil
}

// tree is what fitness sees of a run; r may be nil.
func (r *subject) tree() fitness.Tree {
	if r == nil {
		return fitness.Tree{}
	}
	return fitness.Tree{Raw: r.raw, NoAnomalies: r.minimal() || r.options.part()}
}

// match is the run of refs that x is compared with: that of its workload or, if
// there is one only, that one.
func (r *analysis) match(x *subject, refs []*subject, flag string) (*subject, error) {
	if len(refs) == 0 {
		return nil, nil
	}
	for _, ref := range refs {
		if ref.end.WorkloadDigest == x.end.WorkloadDigest {
			return ref, nil
		}
	}
	if len(refs) > 1 {
		return nil, fmt.Errorf("%s: no %s is of its workload (%s)", x.name, flag, stream.ShortDigest(x.end.WorkloadDigest))
	}
	odd := fmt.Sprintf("%s is compared with a run of another workload: %s %s", x.name, flag, refs[0].name)
	if r.options.Strict {
		return nil, errors.New(odd)
	}
	r.warnings = append(r.warnings, odd)
	if r.options.Warn != nil {
		r.options.Warn(odd)
	}
	return refs[0], nil
}

// combine makes one result of those of the candidate's runs.
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
		c.err = errors.New("all its scenarios are held out")
		return
	}
	c.result = r.fitness.Combine(scenarios)
	c.references = map[string]*float64{
		"base":   r.reference(c, "base"),
		"parent": r.reference(c, "parent"),
	}
}

// reference is the score of what the candidate is compared with, nil without any.
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

// rank compares candidates by their objectives, where there are any.
func (r *analysis) rank() {
	if len(r.fitness.Objectives) == 0 {
		return
	}
	var all [][]fitness.Value
	for _, c := range r.candidates {
		values := r.fitness.Blank().Objectives
		if c.result != nil {
			values = c.result.Objectives
		}
		all = append(all, values)
	}
	for i, place := range fitness.Pareto(all) {
		r.candidates[i].place = &place
	}
}

// shown is the run that a candidate is shown by: its first that counts.
func (r *analysis) shown(c *candidate) *subject {
	for _, x := range c.runs {
		if !r.fitness.HeldOut(x.name) {
			return x
		}
	}
	return c.runs[0]
}

// score is what the candidate is worth: exactly 0 where it did not load.
func (c *candidate) score() float64 {
	if c.result == nil {
		return 0
	}
	return c.result.Score
}
