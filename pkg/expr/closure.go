package expr

import (
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// Expressions of numbers, strings and conditions without lists, conversions and macros become Go
// closures, which are many times faster than the interpreter and allocate nothing. They behave
// exactly like the interpreter: nothing in them can fail, and NaN is neither equal to, less than
// nor greater than anything.

type number[T any] func(*T) float64

type text[T any] func(*T) string

type flag[T any] func(*T) bool

// compiler builds closures of the parts of a tree; nil where it cannot.
type compiler[T any] struct {
	tree   *ast.AST
	fields map[string]*Field[T]
}

// expression sets the closure of e and reports whether it could.
func (c *compiler[T]) expression(e *Expression[T]) bool {
	root := c.tree.Expr()
	switch e.kind {
	case Number:
		e.number = c.number(root)
	case Text:
		e.text = c.text(root)
	case Flag:
		e.flag = c.flag(root)
	}
	return e.number != nil || e.text != nil || e.flag != nil
}

// field returns the field that e names, nil if it is not a field or may be missing.
func (c *compiler[T]) field(e ast.Expr) *Field[T] {
	if e.Kind() != ast.IdentKind && e.Kind() != ast.SelectKind {
		return nil
	}
	r, ok := c.tree.ReferenceMap()[e.ID()]
	if !ok {
		return nil
	}
	f := c.fields[r.Name]
	if f == nil || f.Available != nil {
		return nil
	}
	return f
}

func (c *compiler[T]) exprType(e ast.Expr) Type { return exprType(c.tree, e) }

// exprType returns the type of e, "" if it is not one of this package's.
func exprType(tree *ast.AST, e ast.Expr) Type {
	for _, t := range []Type{Number, Text, Flag} {
		if tree.GetType(e.ID()).IsExactType(t.cel()) {
			return t
		}
	}
	return ""
}

func (c *compiler[T]) number(e ast.Expr) number[T] {
	if f := c.field(e); f != nil {
		return f.Number
	}
	switch e.Kind() {
	case ast.LiteralKind:
		if v, ok := e.AsLiteral().(types.Double); ok {
			return func(*T) float64 { return float64(v) }
		}
	case ast.CallKind:
		call := e.AsCall()
		if call.IsMemberFunction() {
			return nil
		}
		args := call.Args()
		if call.FunctionName() == operators.Conditional {
			return conditional(c.flag(args[0]), c.number(args[1]), c.number(args[2]))
		}
		var x [3]number[T]
		if len(args) > len(x) {
			return nil
		}
		for i, a := range args {
			if c.exprType(a) != Number {
				return nil
			}
			if x[i] = c.number(a); x[i] == nil {
				return nil
			}
		}
		return operation(call.FunctionName(), len(args), x[0], x[1], x[2])
	}
	return nil
}

// operation returns the operator or function on the given number of arguments.
func operation[T any](name string, args int, a, b, c number[T]) number[T] {
	switch {
	case args == 1 && name == operators.Negate:
		return func(t *T) float64 { return -a(t) }
	case args == 1 && unary[name] != nil:
		f := unary[name]
		return func(t *T) float64 { return f(a(t)) }
	case args == 3 && ternary[name] != nil:
		f := ternary[name]
		return func(t *T) float64 { return f(a(t), b(t), c(t)) }
	case args != 2:
		return nil
	}
	switch name {
	case operators.Add:
		return func(t *T) float64 { return a(t) + b(t) }
	case operators.Subtract:
		return func(t *T) float64 { return a(t) - b(t) }
	case operators.Multiply:
		return func(t *T) float64 { return a(t) * b(t) }
	case operators.Divide:
		return func(t *T) float64 { return a(t) / b(t) }
	}
	if f := binary[name]; f != nil {
		return func(t *T) float64 { return f(a(t), b(t)) }
	}
	return nil
}

// conditional is the operator ?:.
func conditional[T, V any, F ~func(*T) V](cond flag[T], then, otherwise F) F {
	if cond == nil || then == nil || otherwise == nil {
		return nil
	}
	return func(t *T) V {
		if cond(t) {
			return then(t)
		}
		return otherwise(t)
	}
}

func (c *compiler[T]) text(e ast.Expr) text[T] {
	if f := c.field(e); f != nil {
		return f.Text
	}
	switch e.Kind() {
	case ast.LiteralKind:
		if v, ok := e.AsLiteral().(types.String); ok {
			return func(*T) string { return string(v) }
		}
	case ast.CallKind:
		if call := e.AsCall(); call.FunctionName() == operators.Conditional {
			args := call.Args()
			return conditional(c.flag(args[0]), c.text(args[1]), c.text(args[2]))
		}
	}
	return nil
}

func (c *compiler[T]) flag(e ast.Expr) flag[T] {
	if f := c.field(e); f != nil {
		return f.Flag
	}
	switch e.Kind() {
	case ast.LiteralKind:
		if v, ok := e.AsLiteral().(types.Bool); ok {
			return func(*T) bool { return bool(v) }
		}
	case ast.CallKind:
		call := e.AsCall()
		if call.IsMemberFunction() {
			return c.stringMethod(call)
		}
		args := call.Args()
		switch name := call.FunctionName(); name {
		case operators.LogicalNot:
			if a := c.flag(args[0]); a != nil {
				return func(t *T) bool { return !a(t) }
			}
		case operators.LogicalAnd:
			return shortCircuit(c.flag(args[0]), c.flag(args[1]), false)
		case operators.LogicalOr:
			return shortCircuit(c.flag(args[0]), c.flag(args[1]), true)
		case operators.Conditional:
			return conditional(c.flag(args[0]), c.flag(args[1]), c.flag(args[2]))
		case operators.In:
			return c.inList(args[0], args[1])
		case operators.Equals,
			operators.NotEquals,
			operators.Less,
			operators.LessEquals,
			operators.Greater,
			operators.GreaterEquals:
			return c.compare(name, args[0], args[1])
		}
	}
	return nil
}

// shortCircuit is && if decides is false, || if it is true.
func shortCircuit[T any](a, b flag[T], decides bool) flag[T] {
	if a == nil || b == nil {
		return nil
	}
	return func(t *T) bool {
		if a(t) == decides {
			return decides
		}
		return b(t)
	}
}

// stringMethod is a method of a string: startsWith, endsWith, contains.
func (c *compiler[T]) stringMethod(call ast.CallExpr) flag[T] {
	test := map[string]func(s, part string) bool{"startsWith": strings.HasPrefix, "endsWith": strings.HasSuffix,
		"contains": strings.Contains}[call.FunctionName()]
	if test == nil || len(call.Args()) != 1 || c.exprType(call.Target()) != Text {
		return nil
	}
	a, b := c.text(call.Target()), c.text(call.Args()[0])
	if a == nil || b == nil {
		return nil
	}
	return func(t *T) bool { return test(a(t), b(t)) }
}
