package expr

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"blis/pkg/registry"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
)

// firstIssue returns the first of CEL's issues with this package's names of types.
func firstIssue(issues *cel.Issues) error {
	first := issues.Errors()[0]
	return &Error{max(1, first.Location.Line()), max(1, first.Location.Column()+1), translate(first.Message)}
}

// unit matches CEL's message about a number with a unit, such as 500ms.
var unit = regexp.MustCompile("^Syntax error: .* input '(us|ms|s|m|min|h)' ")

// translate replaces CEL's names of types and operators.
func translate(message string) string {
	if rest, ok := strings.CutPrefix(message, "found no matching overload for '"); ok {
		name, types, _ := strings.Cut(rest, "' applied to '")
		if name == modulo {
			name = "%"
		}
		message = strings.Trim(name, "_@") + " does not take " + strings.TrimSuffix(types, "'")
	}
	if rest, ok := strings.CutPrefix(message, "undeclared reference to '"); ok {
		name, _, _ := strings.Cut(rest, "'")
		message = fmt.Sprintf("unknown function %q", name)
	}
	if unit.MatchString(message) {
		message += "; numbers have no unit: latencies are in ms, so 2 s is 2000"
	}
	own := map[string]string{"double": "number", "string": "text", "bool": "true-or-false"}
	return regexp.MustCompile(`\b(double|string|bool)\b`).ReplaceAllStringFunc(message,
		func(word string) string { return own[word] })
}

// checkNames returns an error for the first name that is neither a field nor a variable of a macro.
func checkNames(tree *ast.AST, names []string) error {
	bound := map[string]bool{}
	ast.PreOrderVisit(tree.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() == ast.ComprehensionKind {
			c := e.AsComprehension()
			bound[c.IterVar()], bound[c.IterVar2()], bound[c.AccuVar()] = true, true, true
		}
	}))
	var err error
	within := map[int64]bool{} // parts of a longer name
	ast.PreOrderVisit(tree.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if err != nil || within[e.ID()] {
			return
		}
		name, root := fullName(e, within)
		if root == nil || bound[root.AsIdent()] || slices.Contains(names, name) {
			return
		}
		at := tree.SourceInfo().GetStartLocation(root.ID())
		msg := registry.Unknown("name", name, siblings(name, names)).Error()
		if longer := namesUnder(name, names); longer != nil {
			msg = fmt.Sprintf("%q is only part of a name (have %s)", name, strings.Join(longer, ", "))
		}
		err = &Error{at.Line(), at.Column() + 1, msg}
	}))
	return err
}

// fullName returns the dotted name that e is, and its first part; nil if e is not a name. The parts
// are recorded in within.
func fullName(e ast.Expr, within map[int64]bool) (string, ast.Expr) {
	var parts []string
	for ; e.Kind() == ast.SelectKind; e = e.AsSelect().Operand() {
		parts = append(parts, e.AsSelect().FieldName())
		within[e.AsSelect().Operand().ID()] = true
	}
	if e.Kind() != ast.IdentKind {
		return "", nil
	}
	parts = append(parts, e.AsIdent())
	slices.Reverse(parts)
	return strings.Join(parts, "."), e
}

// namesUnder returns the names that begin with name and a dot.
func namesUnder(name string, names []string) (longer []string) {
	for _, n := range names {
		if strings.HasPrefix(n, name+".") {
			longer = append(longer, n)
		}
	}
	return longer
}

// siblings returns the names with the same first part as name, or all names if there are none.
func siblings(name string, names []string) []string {
	first, _, dotted := strings.Cut(name, ".")
	var same []string
	for _, n := range names {
		if dotted && strings.HasPrefix(n, first+".") {
			same = append(same, n)
		}
	}
	if same == nil {
		return names
	}
	return same
}
