// Package expr compiles CEL expressions over records once, to Go functions.
//
// All numbers are doubles: integer literals, size() and int() are promoted, so
// that input_tokens > 1000 and size(id) == 3 compile. Map literals are refused,
// because their order is not defined; nothing that is left depends on anything
// but the record.
//
// A number or flag that a record does not have (ttft_ms of a request that was
// rejected) is neither equal, nor greater, nor less than anything, nor true or
// false: as with NULL in SQL, what is computed from it is as unknown, && and ||
// decide without it where they can, and a filter keeps a record only where it
// is true. So ttft_ms > 200 and !(ttft_ms > 200) both drop a rejected request,
// and state == "rejected" || ttft_ms > 200 keeps it. A text that a record does
// not have is "".
package expr

import (
	"errors"
	"fmt"
	"strings"

	"blis/pkg/named"
	"blis/pkg/record"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// CompileOutcomeFilter compiles a condition on outcomes, whose fields it calls
// by the names in OutcomeFields. Errors begin with line:column of src. The
// filter is not to be called by two goroutines at once; its own errors are
// those that only a value shows, such as double(id) of an id that is no number.
func CompileOutcomeFilter(src string) (func(*record.Outcome) (bool, error), error) {
	return compile(src, outcomeFields)
}

// CompileRequestFilter is CompileOutcomeFilter for requests and RequestFields.
func CompileRequestFilter(src string) (func(*record.Request) (bool, error), error) {
	return compile(src, requestFields)
}

func compile[T any](src string, fields []field[T]) (func(*T) (bool, error), error) {
	env, err := environment(fields)
	if err != nil {
		panic("expr: " + err.Error())
	}
	tree, issues := env.Parse(src)
	if issues.Err() != nil {
		return nil, readable(issues, fields)
	}
	if err := promote(tree.NativeRep()); err != nil {
		return nil, err
	}
	if tree, issues = env.Check(tree); issues.Err() != nil {
		return nil, readable(issues, fields)
	}
	if tree.OutputType() != cel.BoolType {
		return nil, fmt.Errorf("1:1: this is a %s; it must be true or false, such as input_tokens > 1000",
			cel.FormatCELType(tree.OutputType()))
	}
	program, err := env.Program(tree, cel.EvalOptions(cel.OptOptimize))
	if err != nil {
		return nil, fmt.Errorf("1:1: %w", err)
	}
	at := &activation[T]{fields: map[string]func(*T) ref.Val{}}
	for _, f := range fields {
		at.fields[f.Name] = f.get
	}
	return func(record *T) (bool, error) {
		at.record = record
		out, _, err := program.Eval(at)
		if err != nil {
			return false, fmt.Errorf("evaluating the expression: %w", err)
		}
		return out == types.True, nil
	}, nil
}

func environment[T any](fields []field[T]) (*cel.Env, error) {
	var options []cel.EnvOption
	for _, f := range fields {
		options = append(options, cel.Variable(f.Name, f.Type.cel()))
	}
	return cel.NewEnv(options...)
}

// activation gives an expression the fields of one record.
type activation[T any] struct {
	fields map[string]func(*T) ref.Val
	record *T
}

// unknown is the value of what a record does not have.
var unknown = types.NewUnknown(0, nil)

func (a *activation[T]) ResolveName(name string) (any, bool) {
	get, ok := a.fields[name]
	if !ok {
		return nil, false
	}
	if v := get(a.record); v != nil {
		return v, true
	}
	return unknown, true
}

func (a *activation[T]) Parent() cel.Activation { return nil }

// promote makes all numbers of the tree doubles.
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
				err = fmt.Errorf("%d:%d: maps are not allowed: the order of their keys is not defined", at.Line(), at.Column()+1)
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

// readable is the first of the issues in our words: line:column, and the name
// that was probably meant.
func readable[T any](issues *cel.Issues, fields []field[T]) error {
	first := issues.Errors()[0]
	message := first.Message
	if rest, ok := strings.CutPrefix(message, "undeclared reference to '"); ok {
		name, _, _ := strings.Cut(rest, "'")
		var names []string
		for _, f := range fields {
			names = append(names, f.Name)
		}
		message = named.Unknown("name", name, names).Error()
	}
	if first.Location.Line() < 1 {
		return errors.New(message)
	}
	return fmt.Errorf("%d:%d: %s", first.Location.Line(), max(1, first.Location.Column()+1), message)
}
