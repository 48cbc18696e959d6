package fitness

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"

	"blis/pkg/expr"
	"blis/pkg/stream"
	"blis/pkg/strictyaml"
)

// Spec is a fitness file. Expressions are CEL over m, the metrics of the run, and base and parent,
// those of the runs to compare with.
type Spec struct {
	Version int64 `yaml:"version" json:"version"`
	// SLO overrides the workload's targets of these classes.
	SLO map[string]stream.Targets `yaml:"slo" json:"slo,omitempty"`
	// Weights of classes in m.goodput.ratio; 1 by default.
	Weights map[string]float64 `yaml:"weights" json:"weights,omitempty"`
	// Gates must hold: the score of a run that fails one is at most 0.1.
	Gates []GateSpec `yaml:"gates" json:"gates,omitempty"`
	// Score is to be maximized, in [0, 1).
	Score string `yaml:"score" json:"score"`
	// Aggregate combines the scores of several scenarios: see Aggregates. CVaRShare is the share of
	// the scenarios, the worst ones, that cvar averages.
	Aggregate string  `yaml:"aggregate" json:"aggregate,omitempty"`
	CVaRShare float64 `yaml:"cvar_share" json:"cvar_share,omitempty"`
	// Objectives are to be maximized, Features describe the run; both by name.
	Objectives map[string]string `yaml:"objectives" json:"objectives,omitempty"`
	Features   map[string]string `yaml:"features" json:"features,omitempty"`
	// Holdout names scenarios that are scored and do not count.
	Holdout []string `yaml:"holdout" json:"holdout,omitempty"`
}

// GateSpec is a condition with a name.
type GateSpec struct {
	Name string `yaml:"name" json:"name"`
	Expr string `yaml:"expr" json:"expr"`
}

// Fitness is a compiled Spec.
type Fitness struct {
	Spec
	gates                []expression
	score                *expr.Node
	objectives, features []expression
	// errorAt makes an error about the text at path, at a position within it if line is not 0.
	errorAt func(path string, line, col int, format string, args ...any) error
}

// expression is one of a spec, with its name and its path in the file.
type expression struct {
	name, path string
	*expr.Node
}

// IsFile reports whether a user's text is the name of a fitness file; else it is an expression.
func IsFile(src string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(src))
}

// Load reads and compiles the fitness file called name. Errors in it are *strictyaml.Error.
func Load(name string) (*Fitness, error) {
	doc, err := strictyaml.Read(name)
	if err != nil {
		return nil, err
	}
	return load(doc)
}

func load(doc *strictyaml.Doc) (*Fitness, error) {
	f := &Fitness{Spec: Spec{Aggregate: Aggregates[0].Name, CVaRShare: 0.25}}
	if err := doc.Decode(&f.Spec); err != nil {
		return nil, err
	}
	f.errorAt = func(path string, line, col int, format string, args ...any) error {
		if line > 0 {
			return doc.TextErrorf(path, line, col, format, args...)
		}
		return doc.Errorf(path, format, args...)
	}
	return f, f.compile()
}

// Expression is the fitness with the score src and nothing else. Errors in it are *strictyaml.Error,
// in a file called name.
func Expression(name, src string) (*Fitness, error) {
	f := &Fitness{Spec: Spec{Version: 1, Score: src, Aggregate: Aggregates[0].Name, CVaRShare: 0.25}}
	f.errorAt = func(_ string, line, col int, format string, args ...any) error {
		return &strictyaml.Error{File: name, Line: line, Col: col, Msg: fmt.Sprintf(format, args...)}
	}
	return f, f.compile()
}

// Conditions returns a fitness with these gates, each named by its expression, whose score has no meaning. errorAt
// makes an error about condition i.
func Conditions(all []string, errorAt func(i int, text string) error) (*Fitness, error) {
	f := &Fitness{Spec: Spec{Version: 1, Score: "0", Aggregate: Aggregates[0].Name, CVaRShare: 0.25}}
	for _, src := range all {
		f.Gates = append(f.Gates, GateSpec{src, src})
	}
	f.errorAt = func(path string, _, _ int, format string, args ...any) error {
		var i int
		if _, err := fmt.Sscanf(path, "gates[%d]", &i); err != nil {
			panic("fitness: no condition at " + path) // the rest of the spec is valid
		}
		return errorAt(i, fmt.Sprintf(format, args...))
	}
	return f, f.compile()
}

// compile checks the spec and parses its expressions.
func (f *Fitness) compile() (err error) {
	if f.Version != 1 {
		return f.errorAt("version", 0, 0, "must be 1, is %d", f.Version)
	}
	if err := f.checkTables(); err != nil {
		return err
	}
	if f.Score == "" {
		return f.errorAt("score", 0, 0, "must be an expression, such as m.goodput.ratio")
	}
	if f.score, err = f.parse("score", f.Score, expr.Number); err != nil {
		return err
	}
	if err := f.checkWrapped("score", f.score); err != nil {
		return err
	}
	seen := map[string]bool{}
	for i, g := range f.Gates {
		path := fmt.Sprintf("gates[%d]", i)
		if g.Name == "" || seen[g.Name] {
			return f.errorAt(path+".name", 0, 0, "must be present and unique, is %q", g.Name)
		}
		seen[g.Name] = true
		tree, err := f.parse(path+".expr", g.Expr, expr.Flag)
		if err != nil {
			return err
		}
		f.gates = append(f.gates, expression{g.Name, path + ".expr", tree})
	}
	if f.objectives, err = f.parseAll("objectives", f.Objectives); err != nil {
		return err
	}
	f.features, err = f.parseAll("features", f.Features)
	return err
}

func (f *Fitness) checkTables() error {
	if _, err := Aggregates.Get("aggregate", f.Aggregate); err != nil {
		return f.errorAt("aggregate", 0, 0, "%s", err)
	}
	if !(f.CVaRShare > 0 && f.CVaRShare <= 1) {
		return f.errorAt("cvar_share", 0, 0, "must be above 0 and at most 1, is %v", f.CVaRShare)
	}
	for _, class := range slices.Sorted(maps.Keys(f.SLO)) {
		t := f.SLO[class]
		for _, x := range []struct {
			name string
			ms   float64
		}{{"ttft_ms", t.TTFTMS}, {"tpot_ms", t.TPOTMS}, {"e2e_ms", t.E2EMS}} {
			if !(x.ms >= 0) {
				return f.errorAt("slo."+class+"."+x.name, 0, 0, "must be above 0, is %v", x.ms)
			}
		}
		if t == (stream.Targets{}) {
			return f.errorAt("slo."+class, 0, 0, "has no target; give ttft_ms, tpot_ms or e2e_ms")
		}
	}
	return f.checkWeights()
}

// parseAll parses named expressions, in the order of the names.
func (f *Fitness) parseAll(list string, of map[string]string) (trees []expression, err error) {
	for _, name := range slices.Sorted(maps.Keys(of)) {
		path := list + "." + name
		tree, err := f.parse(path, of[name], expr.Number)
		if err != nil {
			return nil, err
		}
		trees = append(trees, expression{name, path, tree})
	}
	return trees, nil
}

func (f *Fitness) parse(path, src string, want expr.Type) (*expr.Node, error) {
	tree, err := expr.Tree(src, checkName, exprFunctions, want)
	var exprErr *expr.Error
	if errors.As(err, &exprErr) {
		return nil, f.errorAt(path, exprErr.Line, exprErr.Col, "%s", exprErr.Msg)
	}
	if err != nil {
		return nil, err
	}
	return tree, f.checkLiterals(path, tree)
}
