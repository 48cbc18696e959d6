package expr

import (
	"cmp"
	"slices"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// compare compares two values of one type.
func (c *compiler[T]) compare(name string, a, b ast.Expr) flag[T] {
	kind := c.exprType(a)
	if kind == "" || c.exprType(b) != kind {
		return nil
	}
	switch kind {
	case Number:
		return compareOrdered(name, c.number(a), c.number(b))
	case Text:
		return compareOrdered(name, c.text(a), c.text(b))
	}
	return compareFlags(name, c.flag(a), c.flag(b))
}

func compareOrdered[T any, V cmp.Ordered, F ~func(*T) V](name string, a, b F) flag[T] {
	if a == nil || b == nil {
		return nil
	}
	switch name {
	case operators.Equals:
		return func(t *T) bool { return a(t) == b(t) }
	case operators.NotEquals:
		return func(t *T) bool { return a(t) != b(t) }
	case operators.Less:
		return func(t *T) bool { return a(t) < b(t) }
	case operators.LessEquals:
		return func(t *T) bool { return a(t) <= b(t) }
	case operators.Greater:
		return func(t *T) bool { return a(t) > b(t) }
	}
	return func(t *T) bool { return a(t) >= b(t) }
}

// compareFlags supports only == and !=.
func compareFlags[T any](name string, a, b flag[T]) flag[T] {
	if a == nil || b == nil || name != operators.Equals && name != operators.NotEquals {
		return nil
	}
	equal := name == operators.Equals
	return func(t *T) bool { return (a(t) == b(t)) == equal }
}

// inList is the operator in, for a list of literals.
func (c *compiler[T]) inList(e, list ast.Expr) flag[T] {
	if list.Kind() != ast.ListKind {
		return nil
	}
	var numbers []float64
	var texts []string
	for _, x := range list.AsList().Elements() {
		if x.Kind() != ast.LiteralKind {
			return nil
		}
		switch v := x.AsLiteral().(type) {
		case types.Double:
			numbers = append(numbers, float64(v))
		case types.String:
			texts = append(texts, string(v))
		default:
			return nil
		}
	}
	switch kind := c.exprType(e); {
	case kind == Number && texts == nil:
		return isOneOf(c.number(e), numbers)
	case kind == Text && numbers == nil:
		return isOneOf(c.text(e), texts)
	}
	return nil
}

// isOneOf tests membership in a list.
func isOneOf[T any, V comparable, F ~func(*T) V](a F, list []V) flag[T] {
	if a == nil {
		return nil
	}
	return func(t *T) bool { return slices.Contains(list, a(t)) }
}
