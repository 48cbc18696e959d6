package expr

import (
	"fmt"
	"slices"
	"strconv"

	"blis/pkg/registry"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// Node is an expression as a tree, for callers that interpret names, operators and functions
// themselves.
type Node struct {
	// Op is the operation on Args: a CEL operator ("+", "&&", "?:", "!", "neg" for the sign) or a
	// function's name; "" for a Name or a Value.
	Op   string
	Args []*Node
	// Name is a name with dots and indexes, such as m.cls["batch"].ttft.p99.
	Name string
	// Value is a literal: a float64, a string or a bool.
	Value any
	Type  Type
	// Line and Col are its position in the text, from 1.
	Line, Col int
}

// Function is a function that a tree may call. A Variadic one takes one or more repetitions of
// Params.
type Function struct {
	Name, Doc string
	Params    []Type
	Variadic  bool
	Returns   Type
}

// maxRepeats is the maximum number of repetitions of a Variadic function's arguments.
const maxRepeats = 24

// Tree checks src and returns it as a tree. All names are numbers; check returns an error for an
// invalid name and is called once for each occurrence. Lists, maps and macros are rejected. Errors
// are *Error.
func Tree(src string, check func(name string) error, functions []Function, want ...Type) (*Node, error) {
	if n := arithmetic(src, check, functions, want); n != nil {
		return n, nil
	}
	return celTree(src, check, functions, want)
}

// celTree is Tree by CEL's parser and type checker, for all expressions.
func celTree(src string, check func(name string) error, functions []Function, want []Type) (*Node, error) {
	options := []cel.EnvOption{cel.ClearMacros()}
	for _, f := range functions {
		options = append(options, f.declare())
	}
	env, err := cel.NewEnv(options...)
	if err != nil {
		panic("expr: " + err.Error())
	}
	parsed, issues := env.Parse(src)
	if issues.Err() != nil {
		return nil, firstIssue(issues)
	}
	t := &treeBuilder{tree: parsed.NativeRep(), functions: functions, check: check}
	if err := t.prepare(); err != nil {
		return nil, err
	}
	var names []cel.EnvOption
	for _, name := range t.names {
		names = append(names, cel.Variable(name, cel.DoubleType))
	}
	if env, err = env.Extend(names...); err != nil {
		panic("expr: " + err.Error())
	}
	checked, issues := env.Check(parsed)
	if issues.Err() != nil {
		return nil, firstIssue(issues)
	}
	if _, err := typeOf(checked, want); err != nil {
		return nil, err
	}
	t.tree = checked.NativeRep()
	return t.node(t.tree.Expr()), nil
}

// declare declares the function to CEL.
func (f *Function) declare() cel.EnvOption {
	var takes []*cel.Type
	for _, t := range f.Params {
		takes = append(takes, t.cel())
	}
	var overloads []cel.FunctionOpt
	for n := 1; n == 1 || f.Variadic && n <= maxRepeats; n++ {
		overloads = append(overloads,
			cel.Overload(fmt.Sprintf("%s_%d", f.Name, n), slices.Repeat(takes, n), f.Returns.cel()))
	}
	return cel.Function(f.Name, overloads...)
}

// treeBuilder builds Nodes from CEL's tree.
type treeBuilder struct {
	tree      *ast.AST
	functions []Function
	check     func(name string) error
	names     []string
}

// prepare turns each name into a variable, checks names and functions, converts all numbers to
// doubles, and rejects what a Node cannot express.
func (t *treeBuilder) prepare() error {
	var first error
	inside := map[int64]bool{} // parts of a longer name
	factory := ast.NewExprFactory()
	ast.PreOrderVisit(t.tree.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if first != nil || inside[e.ID()] {
			return
		}
		switch e.Kind() {
		case ast.IdentKind, ast.SelectKind:
			first = t.name(e, factory, inside)
		case ast.CallKind:
			if e.AsCall().FunctionName() == operators.Index {
				first = t.name(e, factory, inside)
			} else {
				first = t.checkCall(e)
			}
		case ast.LiteralKind:
			switch v := e.AsLiteral().(type) {
			case types.Int:
				e.SetKindCase(factory.NewLiteral(e.ID(), types.Double(v)))
			case types.Uint:
				e.SetKindCase(factory.NewLiteral(e.ID(), types.Double(v)))
			case types.Double, types.String, types.Bool:
			default:
				first = t.errorf(e, "%s is not a number, text, true or false", v.Type().TypeName())
			}
		default:
			first = t.errorf(e, "lists, maps and messages are not allowed here")
		}
	}))
	return first
}

// name replaces the expression e, a name with dots and indexes, by a variable.
func (t *treeBuilder) name(e ast.Expr, factory ast.ExprFactory, inside map[int64]bool) error {
	name, root, ok := t.indexed(e, inside)
	if !ok {
		return t.errorf(e, `only names have parts, such as m.ttft.p99, m.cls["batch"].ttft.p99, `+
			`m.replicas[0].utilization`)
	}
	if err := t.check(name); err != nil {
		return t.errorf(root, "%s", err)
	}
	if at, ok := t.tree.SourceInfo().GetOffsetRange(root.ID()); ok {
		t.tree.SourceInfo().SetOffsetRange(e.ID(), at)
	}
	e.SetKindCase(factory.NewIdent(e.ID(), name))
	if !slices.Contains(t.names, name) {
		t.names = append(t.names, name)
	}
	return nil
}

// indexed returns the name that e is, and its first part. The parts are recorded in inside.
func (t *treeBuilder) indexed(e ast.Expr, inside map[int64]bool) (name string, root ast.Expr, ok bool) {
	switch e.Kind() {
	case ast.IdentKind:
		return e.AsIdent(), e, true
	case ast.SelectKind:
		of := e.AsSelect()
		inside[of.Operand().ID()] = true
		name, root, ok = t.indexed(of.Operand(), inside)
		return name + "." + of.FieldName(), root, ok && !of.IsTestOnly()
	case ast.CallKind:
		call := e.AsCall()
		if call.FunctionName() != operators.Index || call.Args()[1].Kind() != ast.LiteralKind {
			return "", nil, false
		}
		inside[call.Args()[0].ID()], inside[call.Args()[1].ID()] = true, true
		name, root, ok = t.indexed(call.Args()[0], inside)
		switch v := call.Args()[1].AsLiteral().(type) {
		case types.String:
			return fmt.Sprintf("%s[%q]", name, string(v)), root, ok
		case types.Int:
			return fmt.Sprintf("%s[%d]", name, int64(v)), root, ok
		}
	}
	return "", nil, false
}

// checkCall rejects unknown functions.
func (t *treeBuilder) checkCall(e ast.Expr) error {
	name := e.AsCall().FunctionName()
	if symbols[name] != "" {
		return nil
	}
	var have []string
	for _, f := range t.functions {
		if have = append(have, f.Name); f.Name == name && !e.AsCall().IsMemberFunction() {
			return nil
		}
	}
	if symbol, isOperator := operators.FindReverse(name); isOperator {
		return t.errorf(e, "the operator %s is not allowed here", symbol)
	}
	return t.errorf(e, "%s", registry.Unknown("function", name, have))
}

// symbols are the allowed operators, with their names in Nodes.
var symbols = map[string]string{
	operators.Add: "+", operators.Subtract: "-", operators.Multiply: "*", operators.Divide: "/",
	operators.Negate: "neg",
	operators.Less:   "<", operators.LessEquals: "<=", operators.Greater: ">", operators.GreaterEquals: ">=",
	operators.Equals: "==", operators.NotEquals: "!=", operators.LogicalAnd: "&&", operators.LogicalOr: "||",
	operators.LogicalNot: "!", operators.Conditional: "?:",
}

func (t *treeBuilder) errorf(e ast.Expr, format string, args ...any) error {
	line, col := t.position(e)
	return &Error{line, col, fmt.Sprintf(format, args...)}
}

// position returns the position of e: for a binary operator that of its first operand, for a
// function that of its name.
func (t *treeBuilder) position(e ast.Expr) (line, col int) {
	at := t.tree.SourceInfo().GetStartLocation(e.ID())
	line, col = at.Line(), at.Column()+1
	if e.Kind() == ast.CallKind {
		call := e.AsCall()
		_, isOperator := operators.FindReverse(call.FunctionName())
		switch {
		case isOperator && len(call.Args()) > 1:
			return t.position(call.Args()[0])
		case !isOperator && !call.IsMemberFunction():
			col -= len(call.FunctionName())
		}
	}
	return max(1, line), max(1, col)
}

// node converts a checked expression.
func (t *treeBuilder) node(e ast.Expr) *Node {
	n := &Node{Type: exprType(t.tree, e)}
	n.Line, n.Col = t.position(e)
	switch e.Kind() {
	case ast.IdentKind:
		n.Name = e.AsIdent()
	case ast.LiteralKind:
		switch v := e.AsLiteral().(type) {
		case types.Double:
			n.Value = float64(v)
		case types.String:
			n.Value = string(v)
		case types.Bool:
			n.Value = bool(v)
		}
	case ast.CallKind:
		call := e.AsCall()
		if n.Op = symbols[call.FunctionName()]; n.Op == "" {
			n.Op = call.FunctionName()
		}
		for _, a := range call.Args() {
			n.Args = append(n.Args, t.node(a))
		}
	}
	return n
}

// precedence is the precedence of the operators.
var precedence = map[string]int{"?:": 1, "||": 2, "&&": 3, "<": 4, "<=": 4, ">": 4, ">=": 4, "==": 4, "!=": 4,
	"+": 5, "-": 5, "*": 6, "/": 6, "neg": 7, "!": 7}

// String formats the expression on one line.
func (n *Node) String() string { return string(n.append(nil, 0)) }

// append appends the expression to b, in parentheses if its precedence is below lowest.
func (n *Node) append(b []byte, lowest int) []byte {
	p := precedence[n.Op]
	if p != 0 && p < lowest {
		return append(n.append(append(b, '('), 0), ')')
	}
	switch {
	case n.Op == "" && n.Name != "":
		return append(b, n.Name...)
	case n.Op == "":
		return appendLiteral(b, n.Value)
	case n.Op == "?:":
		b = append(n.Args[0].append(b, p+1), " ? "...)
		b = append(n.Args[1].append(b, p+1), " : "...)
		return n.Args[2].append(b, p)
	case n.Op == "neg":
		return n.Args[0].append(append(b, '-'), p)
	case n.Op == "!":
		return n.Args[0].append(append(b, '!'), p)
	case p != 0:
		b = append(n.Args[0].append(b, p), " "+n.Op+" "...)
		return n.Args[1].append(b, p+1)
	}
	b = append(b, n.Op+"("...)
	for i, a := range n.Args {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = a.append(b, 0)
	}
	return append(b, ')')
}

func appendLiteral(b []byte, v any) []byte {
	switch v := v.(type) {
	case float64:
		return strconv.AppendFloat(b, v, 'g', -1, 64)
	case string:
		return strconv.AppendQuoteToASCII(b, v)
	}
	return fmt.Append(b, v)
}
