package expr

import (
	"fmt"
	"slices"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// maxIndex is the largest index of a list of numbers.
const maxIndex = 1 << 16

// resolveIndexes replaces each element of a table or a list, such as name["key"] or name[0], by a name of its own. It
// returns the fields with these names.
func resolveIndexes[T any](tree *ast.AST, fields []Field[T]) (elements []Field[T], err error) {
	at := func(e ast.Expr, format string, args ...any) {
		if err == nil {
			start := tree.SourceInfo().GetStartLocation(e.ID())
			err = &Error{max(1, start.Line()), max(1, start.Column()+1), fmt.Sprintf(format, args...)}
		}
	}
	inside := map[int64]bool{} // parts of a longer name, and indexes
	factory := ast.NewExprFactory()
	ast.PreOrderVisit(tree.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if inside[e.ID()] {
			return
		}
		named := e
		isIndex := e.Kind() == ast.CallKind && e.AsCall().FunctionName() == operators.Index
		if isIndex {
			named = e.AsCall().Args()[0]
		}
		name, root := fullName(named, inside)
		k := slices.IndexFunc(fields, func(f Field[T]) bool { return f.Name == name && f.isIndexed() })
		switch {
		case root == nil || k < 0:
			return
		case !isIndex:
			at(root, "%s has elements, such as %s", name, fields[k].example())
			return
		}
		index := e.AsCall().Args()[1]
		inside[named.ID()], inside[index.ID()] = true, true
		element, ok := fields[k].element(index)
		if !ok {
			at(root, "the index of %s must be written out, such as %s", name, fields[k].example())
			return
		}
		e.SetKindCase(factory.NewIdent(e.ID(), element.Name))
		if !slices.ContainsFunc(elements, func(f Field[T]) bool { return f.Name == element.Name }) {
			elements = append(elements, element)
		}
	}))
	return elements, err
}

// isIndexed reports whether the field has elements.
func (f *Field[T]) isIndexed() bool { return f.ByKey != nil || f.ByIndex != nil }

// example is how an expression names an element.
func (f *Field[T]) example() string {
	if f.ByKey != nil {
		return f.Name + `["interactive"]`
	}
	return f.Name + "[0]"
}

// element returns the field of the element at an index, which must be a literal.
func (f *Field[T]) element(index ast.Expr) (Field[T], bool) {
	x := Field[T]{Type: Number, Doc: f.Doc}
	if index.Kind() != ast.LiteralKind {
		return x, false
	}
	switch v := index.AsLiteral().(type) {
	case types.String:
		x.Name = fmt.Sprintf("%s[%q]", f.Name, string(v))
		x.Number = func(t *T) float64 { return f.ByKey(t, string(v)) }
		return x, f.ByKey != nil
	case types.Int:
		x.Name = fmt.Sprintf("%s[%d]", f.Name, int64(v))
		x.Number = func(t *T) float64 { return f.ByIndex(t, int(v)) }
		return x, f.ByIndex != nil && v >= 0 && v <= maxIndex
	}
	return x, false
}
