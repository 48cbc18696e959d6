package expr

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"blis/pkg/portable"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// Functions of numbers in addition to CEL's, by number of arguments.
var (
	unary = map[string]func(float64) float64{"abs": math.Abs, "exp": portable.Exp, "log": portable.Log,
		"sqrt": math.Sqrt}
	binary = map[string]func(a, b float64) float64{"pow": portable.Pow, modulo: remainder,
		"min": func(a, b float64) float64 { return min(a, b) }, "max": func(a, b float64) float64 { return max(a, b) }}
	ternary = map[string]func(a, b, c float64) float64{
		"clamp": func(x, lo, hi float64) float64 { return min(max(x, lo), hi) },
		// float64 keeps processors from fusing the product and the sum, which rounds otherwise.
		"ema": func(average, x, weight float64) float64 { return average + float64(weight*(x-average)) }}
)

// NumberFunction is a function of numbers.
type NumberFunction struct {
	Name string
	Args int
	Call func(x []float64) float64
}

// NumberFunctions returns the functions of numbers that expressions have in addition to CEL's, by name.
func NumberFunctions() (all []NumberFunction) {
	for name, f := range unary {
		all = append(all, NumberFunction{name, 1, func(x []float64) float64 { return f(x[0]) }})
	}
	for name, f := range binary {
		all = append(all, NumberFunction{name, 2, func(x []float64) float64 { return f(x[0], x[1]) }})
	}
	for name, f := range ternary {
		all = append(all, NumberFunction{name, 3, func(x []float64) float64 { return f(x[0], x[1], x[2]) }})
	}
	all = slices.DeleteFunc(all, func(f NumberFunction) bool { return f.Name == modulo })
	slices.SortFunc(all, func(a, b NumberFunction) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// modulo is the function that the operator % becomes; no expression can name it.
const modulo = "@modulo"

// remainder is the operator % on integers, NaN on other numbers.
func remainder(a, b float64) float64 {
	if a != math.Trunc(a) || b != math.Trunc(b) || math.IsInf(b, 0) {
		return math.NaN()
	}
	return math.Mod(a, b) + 0 // no -0
}

func environment[T any](fields []Field[T]) (*cel.Env, error) {
	var options []cel.EnvOption
	for i := range fields {
		if fields[i].isIndexed() {
			continue // only its elements are values
		}
		options = append(options, cel.Variable(fields[i].Name, fields[i].Type.cel()))
	}
	add := func(name string, args int, call func(x []float64) float64) {
		takes := []*cel.Type{cel.DoubleType, cel.DoubleType, cel.DoubleType}[:args]
		options = append(options, cel.Function(name, cel.Overload(name+"_number", takes, cel.DoubleType,
			cel.FunctionBinding(func(values ...ref.Val) ref.Val {
				x := make([]float64, len(values))
				for i, v := range values {
					x[i] = float64(v.(types.Double))
				}
				return types.Double(call(x))
			}))))
	}
	for name, f := range unary {
		add(name, 1, func(x []float64) float64 { return f(x[0]) })
	}
	for name, f := range binary {
		add(name, 2, func(x []float64) float64 { return f(x[0], x[1]) })
	}
	for name, f := range ternary {
		add(name, 3, func(x []float64) float64 { return f(x[0], x[1], x[2]) })
	}
	return cel.NewEnv(options...)
}

// maxSteps is the maximum cost of an evaluation, in CEL's unit.
const maxSteps = 10_000

// checkCost rejects expressions that can be too costly.
func checkCost(env *cel.Env, tree *cel.Ast) error {
	cost, err := env.EstimateCost(tree, sizes{})
	if err != nil {
		return &Error{1, 1, err.Error()}
	}
	if cost.Max > maxSteps {
		return &Error{
			1,
			1,
			fmt.Sprintf("this can take %d steps, at most %d are allowed; nested macros multiply", cost.Max,
				maxSteps),
		}
	}
	return nil
}

// programOptions enables counting of steps only if there are loops: otherwise the estimate is a
// bound, and counting costs time.
func programOptions(tree *ast.AST) []cel.ProgramOption {
	options := []cel.ProgramOption{cel.EvalOptions(cel.OptOptimize)}
	if loops(tree) {
		options = append(options, cel.CostLimit(maxSteps))
	}
	return options
}

func loops(tree *ast.AST) bool {
	found := false
	ast.PreOrderVisit(tree.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		found = found || e.Kind() == ast.ComprehensionKind
	}))
	return found
}

// sizes estimates the lengths of strings, which are mostly names.
type sizes struct{}

func (sizes) EstimateSize(checker.AstNode) *checker.SizeEstimate {
	return &checker.SizeEstimate{Min: 0, Max: 256}
}

func (sizes) EstimateCallCost(string, string, *checker.AstNode, []checker.AstNode) *checker.CallEstimate {
	return nil
}

// checkLists rejects lists that could double in each of a chain of macros: concatenated lists,
// nested lists, and values of dynamic type, which may be lists. The cost estimate misses such
// growth, since comparing or measuring a list counts as one step.
func checkLists(tree *ast.AST) error {
	results := map[string]bool{} // accumulator variables of macros
	var err error
	ast.PreOrderVisit(tree.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() == ast.ComprehensionKind {
			results[e.AsComprehension().AccuVar()] = true
		}
		msg := ""
		switch t := tree.GetType(e.ID()); {
		case e.Kind() == ast.ListKind && e.AsList().Size() == 0:
		case t.Kind() == types.DynKind:
			msg = "values of any type are not allowed"
		case t.Kind() != types.ListKind:
		case t.Parameters()[0].Kind() == types.ListKind:
			msg = "lists of lists are not allowed"
		case t.Parameters()[0].Kind() == types.DynKind:
			msg = "the elements of a list must have one type"
		case e.Kind() == ast.CallKind && e.AsCall().FunctionName() == operators.Add:
			if first := e.AsCall().Args()[0]; first.Kind() != ast.IdentKind || !results[first.AsIdent()] {
				msg = "lists cannot be joined; write a single list"
			}
		}
		if msg != "" && err == nil {
			at := tree.SourceInfo().GetStartLocation(e.ID())
			err = &Error{max(1, at.Line()), max(1, at.Column()+1), msg}
		}
	}))
	return err
}

// analyze records which fields an expression reads, and the string literals it compares them with.
func (e *Expression[T]) analyze(tree *ast.AST, names []string) {
	used := map[string]bool{}
	e.compared = map[string][]Literal{}
	field := func(x ast.Expr) string {
		if r, ok := tree.ReferenceMap()[x.ID()]; ok && len(r.OverloadIDs) == 0 {
			return r.Name
		}
		return ""
	}
	note := func(name string, x ast.Expr) {
		if l, ok := textLiteral(tree, x); ok {
			e.compared[name] = append(e.compared[name], l)
		}
	}
	e.literalResults = literalResultsOf(tree, tree.Expr())
	ast.PreOrderVisit(tree.Expr(), ast.NewExprVisitor(func(x ast.Expr) {
		if name := field(x); name != "" {
			used[name] = true
		}
		if x.Kind() != ast.CallKind {
			return
		}
		call := x.AsCall()
		switch call.FunctionName() {
		case operators.Equals, operators.NotEquals:
			a, b := call.Args()[0], call.Args()[1]
			if name := field(a); name != "" {
				note(name, b)
			} else if name := field(b); name != "" {
				note(name, a)
			}
		case operators.In:
			if name, list := field(call.Args()[0]), call.Args()[1]; name != "" && list.Kind() == ast.ListKind {
				for _, x := range list.AsList().Elements() {
					note(name, x)
				}
			}
		}
	}))
	for _, name := range names {
		if used[name] {
			e.uses = append(e.uses, name)
		}
	}
	slices.Sort(e.uses)
}

// textLiteral returns x if it is a string literal.
func textLiteral(tree *ast.AST, x ast.Expr) (Literal, bool) {
	if x.Kind() != ast.LiteralKind {
		return Literal{}, false
	}
	s, ok := x.AsLiteral().(types.String)
	at := tree.SourceInfo().GetStartLocation(x.ID())
	return Literal{string(s), at.Line(), at.Column() + 1}, ok
}

// literalResultsOf returns the string literals that x can be, through ?: only.
func literalResultsOf(tree *ast.AST, x ast.Expr) []Literal {
	if l, ok := textLiteral(tree, x); ok {
		return []Literal{l}
	}
	if x.Kind() == ast.CallKind && x.AsCall().FunctionName() == operators.Conditional {
		args := x.AsCall().Args()
		return append(literalResultsOf(tree, args[1]), literalResultsOf(tree, args[2])...)
	}
	return nil
}

// prepareCalls replaces calls of fields that are functions by the fields' names, and % by a function.
func prepareCalls(tree *ast.AST, names []string) error {
	var err error
	factory := ast.NewExprFactory()
	fail := func(e ast.Expr, format string, args ...any) {
		if err == nil {
			at := tree.SourceInfo().GetStartLocation(e.ID())
			err = &Error{max(1, at.Line()), max(1, at.Column()+1), fmt.Sprintf(format, args...)}
		}
	}
	ast.PreOrderVisit(tree.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() != ast.CallKind {
			return
		}
		call := e.AsCall()
		name, args := call.FunctionName(), call.Args()
		switch {
		case name == operators.Modulo:
			if d, ok := args[1].AsLiteral().(types.Double); args[1].Kind() == ast.LiteralKind && ok &&
				math.IsNaN(remainder(0, float64(d))) {
				fail(args[1], "%% takes integers and a divisor other than 0, is %g", float64(d))
			}
			e.SetKindCase(factory.NewCall(e.ID(), modulo, args...))
		case !call.IsMemberFunction() && slices.Contains(names, name+"()"):
			if len(args) > 0 {
				fail(args[0], "%s() takes no arguments", name)
			}
			e.SetKindCase(factory.NewIdent(e.ID(), name+"()"))
		}
	}))
	return err
}

// promote converts all numbers of the tree to doubles.
func promote(tree *ast.AST) error {
	var err error
	var sizes []ast.Expr
	index := map[int64]bool{} // literals that must stay integers
	factory := ast.NewExprFactory()
	ast.PreOrderVisit(tree.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		switch e.Kind() {
		case ast.MapKind, ast.StructKind:
			if err == nil {
				at := tree.SourceInfo().GetStartLocation(e.ID())
				err = &Error{at.Line(), at.Column() + 1, "maps are not allowed: the order of their keys is not defined"}
			}
		case ast.CallKind:
			switch call := e.AsCall(); call.FunctionName() {
			case operators.Index:
				index[call.Args()[1].ID()] = true
			case "size", "int", "uint":
				sizes = append(sizes, e)
			}
		case ast.LiteralKind:
			switch v := e.AsLiteral().(type) {
			case types.Int:
				if !index[e.ID()] {
					e.SetKindCase(factory.NewLiteral(e.ID(), types.Double(v)))
				}
			case types.Uint:
				e.SetKindCase(factory.NewLiteral(e.ID(), types.Double(v)))
			}
		}
	}))
	id := ast.MaxID(tree)
	for _, e := range sizes {
		call := e.AsCall()
		inner := factory.NewCall(id, call.FunctionName(), call.Args()...)
		if call.IsMemberFunction() {
			inner = factory.NewMemberCall(id, call.FunctionName(), call.Target(), call.Args()...)
		}
		if at, ok := tree.SourceInfo().GetOffsetRange(e.ID()); ok {
			tree.SourceInfo().SetOffsetRange(id, at)
		}
		e.SetKindCase(factory.NewCall(e.ID(), "double", inner))
		id++
	}
	return err
}
