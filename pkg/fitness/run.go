package fitness

import (
	"maps"
	"math"
	"slices"
	"strings"

	"blis/pkg/metrics"
	"blis/pkg/registry"
	"blis/pkg/stream"
)

// Run is what a fitness is computed from.
type Run struct {
	// Classes are those of the workload; requests need not name all of them.
	Classes       []stream.SLOClass
	judgedClasses []stream.SLOClass // with the targets of the spec
	// values are the numbers of each tree (m, base, parent) by path; those of samples replace some.
	values  map[string]map[string]float64
	samples map[string]map[string][]float64
	sample  int
	// noAnomalies are the trees of runs without anomaly detection.
	noAnomalies map[string]bool
}

// Tree is the metrics of a run. NoAnomalies: the run was made without anomaly detection (trace level
// minimal), so that a missing anomaly does not count as 0.
type Tree struct {
	*metrics.Raw
	NoAnomalies bool
}

// Classes are the given ones with the targets of the spec.
func (s *Spec) Classes(of []stream.SLOClass) []stream.SLOClass {
	all := slices.Clone(of)
	for _, name := range slices.Sorted(maps.Keys(s.SLO)) {
		i := slices.IndexFunc(all, func(c stream.SLOClass) bool { return c.Name == name })
		if i < 0 {
			i, all = len(all), append(all, stream.SLOClass{Name: name})
		}
		all[i].Targets = s.SLO[name]
	}
	return all
}

// NewRun makes a Run. baseline and before, its parent run, may have no metrics.
func NewRun(m Tree, classes []stream.SLOClass, baseline, before Tree) *Run {
	r := &Run{Classes: classes, values: map[string]map[string]float64{}, noAnomalies: map[string]bool{}}
	for i, t := range []Tree{m, baseline, before} {
		if t.Raw != nil {
			r.values[treeNames[i]], r.noAnomalies[treeNames[i]] = metrics.ByPath(t.Raw), t.NoAnomalies
		}
	}
	return r
}

// InSample is a copy of the run in which the k-th of these numbers, by path, replace its own and those
// of its references: those of a bootstrap sample. NaN is missing.
func (r *Run) InSample(k int, m, baseline, before map[string][]float64) *Run {
	d := *r
	d.sample, d.samples = k, map[string]map[string][]float64{ownTree: m, baseTree: baseline, parentTree: before}
	return &d
}

// value returns a number of a tree, and whether it exists.
func (r *Run) value(tree, path string) (float64, bool) {
	if all, ok := r.samples[tree][path]; ok {
		return all[r.sample], !math.IsNaN(all[r.sample])
	}
	x, ok := r.values[tree][path]
	return x, ok
}

// MetricPaths are the paths that the score and the gates read, of any tree.
func (f *Fitness) MetricPaths() (paths []string) {
	for name := range reads(append(slices.Clone(f.gates), f.scoreExpression())...) {
		if _, path := splitName(name); !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
	}
	for _, class := range slices.Sorted(maps.Keys(f.Weights)) {
		paths = append(paths, metrics.SubPath("cls", class)+"."+attainmentPath)
	}
	return paths
}

// lookup returns the number at path and, if it is missing, what that means.
func (r *Run) lookup(tree, path string) (x float64, absence metrics.Missing, ok bool) {
	if x, ok = r.value(tree, path); ok {
		return x, 0, true
	}
	place, _ := metrics.LookupPath(path)
	absence = place.Missing
	switch branch, _, _ := strings.Cut(path, "."); {
	case branch == "anomalies" && r.noAnomalies[tree]:
		absence = metrics.MissingIsUnknown
	case branch == "sessions" && absence == metrics.MissingIsWorst && !r.has(tree, "sessions.offered"),
		branch == "cost" && absence == metrics.MissingIsWorst && !r.has(tree, "cost.gpu_s"),
		branch == "energy" && absence == metrics.MissingIsWorst && !r.has(tree, "energy.total_j"),
		branch == "itl" && r.has(tree, "tpot.mean"):
		absence = metrics.MissingIsUnknown
	case absence == metrics.MissingIsUnknown && strings.Contains(path, "goodput.") && r.hasTargets(path):
		absence = metrics.MissingIsZero
	}
	return 0, absence, false
}

func (r *Run) has(tree, path string) bool { _, ok := r.value(tree, path); return ok }

// hasTargets reports whether the class in path has targets: then a missing number means that it has no
// requests.
func (r *Run) hasTargets(path string) bool {
	for _, c := range r.judgedClasses {
		if strings.HasPrefix(path, metrics.SubPath("cls", c.Name)+".") {
			return c.Targets != stream.Targets{}
		}
	}
	return false
}

// checkKeys returns an error for a key in a name that the run does not have.
func (r *Run) checkKeys(name string) error {
	tree, path := splitName(name)
	branch, key := branchKey(path)
	if key == "" {
		return nil
	}
	have := r.keys(tree, branch)
	if branch == "cls" {
		for _, c := range r.Classes {
			have = append(have, metrics.SubPath("", c.Name))
		}
	}
	if slices.Contains(have, key) {
		return nil
	}
	slices.Sort(have)
	have = slices.Compact(have)
	for i := range have {
		have[i] = strings.Trim(have[i], `[]"`)
	}
	switch {
	case len(have) == 0:
		have = []string{"none"}
	case len(have) > 20:
		have = append(have[:20], "...")
	}
	return registry.Unknown(branchWords[branch], strings.Trim(key, `[]"`), have)
}

var branchWords = map[string]string{"cls": "class", "tenants": "tenant", "models": "model", "replicas": "replica"}

// branchKey returns the branch of a path and the key in it, with its brackets, "" without one.
func branchKey(path string) (branch, key string) {
	branch, _, _ = strings.Cut(path, "[")
	if keys := metrics.PathKeys(path); branchWords[branch] != "" && len(keys) > 0 {
		key = keys[0]
	}
	return branch, key
}

// keys are those of the tree below branch, with their brackets.
func (r *Run) keys(tree, branch string) (all []string) {
	for path := range r.values[tree] {
		if in, key := branchKey(path); in == branch && key != "" && !slices.Contains(all, key) {
			all = append(all, key)
		}
	}
	return all
}

// checkRun returns an error if an expression names a key that the run does not have.
func (f *Fitness) checkRun(r *Run) error {
	r.judgedClasses = f.Classes(r.Classes)
	for _, class := range slices.Sorted(maps.Keys(f.SLO)) {
		if err := r.checkKeys(ownTree + "." + metrics.SubPath("cls", class)); err != nil {
			return f.errorAt("slo", 0, 0, "%s", err)
		}
	}
	if err := f.checkWeightedClasses(r); err != nil {
		return err
	}
	for name, at := range reads(f.expressions()...) {
		if err := r.checkKeys(name); err != nil {
			return f.errorAt(at.of.path, at.Line, at.Col, "%s", err)
		}
	}
	return nil
}
