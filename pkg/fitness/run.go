package fitness

import (
	"maps"
	"math"
	"slices"
	"strings"

	"blis/pkg/expr"
	"blis/pkg/metrics"
	"blis/pkg/registry"
	"blis/pkg/stream"
)

// Run is what a fitness is computed of.
type Run struct {
	// Classes are those that the workload knows; a class that no request names is
	// no mistake.
	Classes []stream.SLOClass
	judged  []stream.SLOClass // with the targets that requests were judged by
	// trees are the numbers of each tree (m, base, parent) by their paths, drawn those
	// that stand in their place; blind are the trees of runs that nobody watched for
	// anomalies.
	trees, drawn map[string]map[string]float64
	blind        map[string]bool
}

// Tree is the metrics of a run. NoAnomalies says that nobody looked for anomalies
// (at trace level minimal): then none is not 0.
type Tree struct {
	*metrics.Raw
	NoAnomalies bool
}

// Classes are those of a workload with the targets that the spec gives them.
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

// NewRun makes a Run. baseline and before, its parent, may have no metrics.
func NewRun(m Tree, classes []stream.SLOClass, baseline, before Tree) *Run {
	r := &Run{Classes: classes, trees: map[string]map[string]float64{}, blind: map[string]bool{}}
	for i, t := range []Tree{m, baseline, before} {
		if t.Raw == nil {
			continue
		}
		values := map[string]float64{}
		for _, v := range metrics.Values(t.Raw) {
			values[v.Path] = v.Value
		}
		r.trees[trees[i]], r.blind[trees[i]] = values, t.NoAnomalies
	}
	return r
}

// WithValues is the run with other numbers in the place of some: those of a draw of its
// requests, and of the runs that it is compared with. Not a number is absent.
func (r *Run) WithValues(m, baseline, before map[string]float64) *Run {
	d := *r
	d.drawn = map[string]map[string]float64{own: m, base: baseline, parent: before}
	return &d
}

// at returns a number of a tree, and whether it is there.
func (r *Run) at(tree, path string) (float64, bool) {
	if x, ok := r.drawn[tree][path]; ok {
		return x, !math.IsNaN(x)
	}
	x, ok := r.trees[tree][path]
	return x, ok
}

// lacking is the share of what was offered that is not in the time called name of the
// run itself: 0 of what is no time, and of the runs that it is compared with. Who leaves
// out what takes long gains nothing by it, as a time that never came is the longest.
func (r *Run) lacking(name string) float64 {
	tree, path := split(name)
	at := coverageOf(path)
	if tree != own || at == "" {
		return 0
	}
	if covered, ok := r.at(tree, at); ok {
		return 1 - covered
	}
	return 0
}

// coverageOf is the path of the coverage of the time at path, "" if that is no time.
func coverageOf(path string) string {
	cut := strings.LastIndexByte(path, '.')
	if p, _ := metrics.LookupPath(path); p.Missing != metrics.MissingIsWorst || cut < 0 && path != "tail_blowup" {
		return ""
	}
	at := path[:max(cut, 0)] + ".coverage"
	if strings.HasSuffix(path, "tail_blowup") {
		at = strings.TrimSuffix(path, "tail_blowup") + "e2e.coverage"
	}
	if _, ok := metrics.LookupPath(at); !ok {
		return ""
	}
	return at
}

// MetricPaths are the paths that the score and the gates read, of whichever tree.
func (f *Fitness) MetricPaths() (paths []string) {
	for _, e := range append(slices.Clone(f.gates), expression{Node: f.score}) {
		_ = visit(e.Node, func(n *expr.Node) error {
			name := n.Name
			if n.Op == "attained" {
				name = attainedName(n)
			}
			if _, path := split(name); name != "" && !slices.Contains(paths, path) {
				paths = append(paths, path)
			}
			return nil
		})
	}
	return paths
}

// look returns the number called name and, where it is absent, what that means.
func (r *Run) look(name string) (x float64, absence metrics.Missing, ok bool) {
	tree, path := split(name)
	if x, ok = r.at(tree, path); ok {
		return x, 0, true
	}
	place, _ := metrics.LookupPath(path)
	absence = place.Missing
	switch branch, _, _ := strings.Cut(path, "."); {
	case branch == "anomalies" && r.blind[tree]:
		absence = metrics.MissingIsUnknown
	case branch == "sessions" && absence == metrics.MissingIsWorst && !r.has(tree, "sessions.offered"),
		branch == "cost" && absence == metrics.MissingIsWorst && !r.has(tree, "cost.gpu_s"),
		branch == "itl" && r.has(tree, "tpot.mean"):
		absence = metrics.MissingIsUnknown
	case absence == metrics.MissingIsUnknown && strings.Contains(path, "goodput.") && r.promised(path):
		absence = metrics.MissingIsZero
	}
	return 0, absence, false
}

func (r *Run) has(tree, path string) bool { _, ok := r.at(tree, path); return ok }

// promised reports whether the class that path is about has targets: then what is
// absent are its requests.
func (r *Run) promised(path string) bool {
	for _, c := range r.judged {
		if strings.HasPrefix(path, metrics.SubPath("cls", c.Name)+".") {
			return c.Targets != stream.Targets{}
		}
	}
	return false
}

// checkKeys holds the keys in a name to those that the run has.
func (r *Run) checkKeys(name string) error {
	tree, path := split(name)
	for _, branch := range []string{"cls", "tenants", "models", "replicas"} {
		key, ok := keyOf(path, branch)
		if !ok {
			continue
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
		bare := func(key string) string { return strings.Trim(key, `[]"`) }
		for i := range have {
			have[i] = bare(have[i])
		}
		if len(have) > 20 {
			have = append(have[:20:20], "...")
		}
		if len(have) == 0 {
			have = []string{"none"}
		}
		return registry.Unknown(words[branch], bare(key), have)
	}
	return nil
}

var words = map[string]string{"cls": "class", "tenants": "tenant", "models": "model", "replicas": "replica"}

// keyOf returns the key, with its brackets, that path has below branch.
func keyOf(path, branch string) (key string, ok bool) {
	keys := metrics.PathKeys(path)
	if !strings.HasPrefix(path, branch+"[") || len(keys) == 0 {
		return "", false
	}
	return keys[0], true
}

// keys are those that the tree has below branch, with their brackets.
func (r *Run) keys(tree, branch string) (all []string) {
	for path := range r.trees[tree] {
		if key, ok := keyOf(path, branch); ok && !slices.Contains(all, key) {
			all = append(all, key)
		}
	}
	return all
}

// checkRun says which expression names something that the run does not have.
func (f *Fitness) checkRun(r *Run) error {
	r.judged = f.Classes(r.Classes)
	for _, class := range slices.Sorted(maps.Keys(f.SLO)) {
		if err := r.checkKeys(own + "." + metrics.SubPath("cls", class)); err != nil {
			return f.fault("slo", 0, 0, "%s", err)
		}
	}
	for _, e := range f.expressions() {
		err := visit(e.Node, func(n *expr.Node) error {
			name := n.Name
			if n.Op == "attained" {
				name = attainedName(n)
			}
			if name == "" {
				return nil
			}
			if err := r.checkKeys(name); err != nil {
				return f.fault(e.path, n.Line, n.Col, "%s", err)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// attainedName is the number that a call of attained means.
func attainedName(n *expr.Node) string {
	return own + "." + metrics.SubPath("cls", n.Args[0].Value.(string)) + ".goodput.ratio"
}
