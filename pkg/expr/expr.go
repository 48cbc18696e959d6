// Package expr compiles CEL expressions once, to Go functions of a value of
// some type T whose fields they may name.
//
// All numbers are doubles: integer literals, size() and int() are promoted, so
// that input_tokens > 1000 and size(id) == 3 compile. Map literals are refused,
// because their order is not defined; nothing that is left depends on anything
// but the value. Nothing can run for ever: there are no loops but over lists that
// an expression itself writes down, such lists neither grow nor hold lists, what
// could take too many steps is refused when it is compiled, and a loop that takes
// more all the same, because it makes texts longer, fails.
//
// Beside CEL's own there are the functions min, max, abs, exp, log, sqrt, pow and
// clamp(x, lo, hi), of numbers.
package expr

import (
	"errors"
	"fmt"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// Type is the type of a field or an expression.
type Type string

// The types. There is one kind of number.
const (
	Number Type = "number"
	Text   Type = "text"
	Flag   Type = "true or false"
)

func (t Type) cel() *cel.Type {
	switch t {
	case Number:
		return cel.DoubleType
	case Text:
		return cel.StringType
	}
	return cel.BoolType
}

// Field is a name that an expression over T may use; it may have dots. Of the
// getters there is the one of its type.
type Field[T any] struct {
	Name, Doc string
	Type      Type
	Number    func(*T) float64
	Text      func(*T) string
	Flag      func(*T) bool
	// Available says whether a T has it; nil is always. What it has not is unknown:
	// what is computed from it is unknown too, but where && and || decide without
	// it, and as a flag it is false.
	Available func(*T) bool
}

// Error is a fault in an expression: a place in its text, from 1, and what is
// wrong.
type Error struct {
	Line, Col int
	Msg       string
}

func (e *Error) Error() string { return fmt.Sprintf("%d:%d: %s", e.Line, e.Col, e.Msg) }

// Literal is a text in an expression, and where it stands.
type Literal struct {
	Text      string
	Line, Col int
}

// Expression is a compiled expression. It is not to be evaluated by two
// goroutines at once.
type Expression[T any] struct {
	kind Type
	uses []string
	// compared are the text literals that each field is compared with.
	compared map[string][]Literal
	// literalResults are those that are its own value.
	literalResults []Literal
	// One of these is there if it is compiled to closures; else the program.
	number  number[T]
	text    text[T]
	flag    flag[T]
	program cel.Program
	at      *activation[T]
}

// Compile compiles src, whose value must be of one of the types want. Errors are
// *Error.
func Compile[T any](src string, fields []Field[T], want ...Type) (*Expression[T], error) {
	env, err := environment(fields)
	if err != nil {
		panic("expr: " + err.Error())
	}
	tree, issues := env.Parse(src)
	if issues.Err() != nil {
		return nil, firstIssue(issues)
	}
	names := make([]string, len(fields))
	for i := range fields {
		names[i] = fields[i].Name
	}
	if err := checkNames(tree.NativeRep(), names); err != nil {
		return nil, err
	}
	if err := promote(tree.NativeRep()); err != nil {
		return nil, err
	}
	if tree, issues = env.Check(tree); issues.Err() != nil {
		return nil, firstIssue(issues)
	}
	e := &Expression[T]{}
	if e.kind, err = typeOf(tree, want); err != nil {
		return nil, err
	}
	if err := checkLists(tree.NativeRep()); err != nil {
		return nil, err
	}
	if err := checkCost(env, tree); err != nil {
		return nil, err
	}
	e.analyze(tree.NativeRep(), names)
	c := &compiler[T]{tree: tree.NativeRep(), fields: map[string]*Field[T]{}}
	for i := range fields {
		c.fields[fields[i].Name] = &fields[i]
	}
	if c.expression(e) {
		return e, nil
	}
	if e.program, err = env.Program(tree, programOptions(tree.NativeRep())...); err != nil {
		return nil, &Error{1, 1, err.Error()}
	}
	e.at = &activation[T]{fields: c.fields}
	return e, nil
}

// Clone returns an expression that may be evaluated beside e.
func (e *Expression[T]) Clone() *Expression[T] {
	c := *e
	if e.at != nil {
		c.at = &activation[T]{fields: e.at.fields}
	}
	return &c
}

// Type returns the type of its value.
func (e *Expression[T]) Type() Type { return e.kind }

// Uses returns the names of the fields that it reads, sorted.
func (e *Expression[T]) Uses() []string { return e.uses }

// ComparedLiterals returns the text literals that it compares the field called name
// with, by ==, != and in.
func (e *Expression[T]) ComparedLiterals(name string) []Literal { return e.compared[name] }

// LiteralResults returns the text literals that its value can be.
func (e *Expression[T]) LiteralResults() []Literal { return e.literalResults }

// Closure reports whether it is compiled to Go closures and not interpreted.
func (e *Expression[T]) Closure() bool { return e.program == nil }

// Number returns the value of an expression of that type, which may be infinite
// or not a number. An unknown value is an error.
func (e *Expression[T]) Number(t *T) (float64, error) {
	if e.number != nil {
		return e.number(t), nil
	}
	v, err := e.eval(t, Number)
	x, ok := v.(types.Double)
	if err == nil && !ok {
		err = errUnavailable
	}
	return float64(x), err
}

// Text returns the value of an expression of that type. An unknown value is an
// error.
func (e *Expression[T]) Text(t *T) (string, error) {
	if e.text != nil {
		return e.text(t), nil
	}
	v, err := e.eval(t, Text)
	s, ok := v.(types.String)
	if err == nil && !ok {
		err = errUnavailable
	}
	return string(s), err
}

// Flag returns the value of an expression of that type, false if it is unknown.
func (e *Expression[T]) Flag(t *T) (bool, error) {
	if e.flag != nil {
		return e.flag(t), nil
	}
	v, err := e.eval(t, Flag)
	return v == types.True, err
}

func (e *Expression[T]) eval(t *T, want Type) (ref.Val, error) {
	if e.kind != want {
		panic("expr: asked for a " + string(want) + " of an expression of type " + string(e.kind))
	}
	e.at.value = t
	v, _, err := e.program.Eval(e.at)
	if err != nil {
		return nil, fmt.Errorf("evaluating the expression: %w", err)
	}
	return v, nil
}

// activation gives an interpreted expression the fields of one value.
type activation[T any] struct {
	fields map[string]*Field[T]
	value  *T
}

// unknown is the value of what a T does not have.
var unknown = types.NewUnknown(0, nil)

var errUnavailable = errors.New("evaluating the expression: its value is unknown")

func (a *activation[T]) ResolveName(name string) (any, bool) {
	f, ok := a.fields[name]
	switch {
	case !ok:
		return nil, false
	case f.Available != nil && !f.Available(a.value):
		return unknown, true
	case f.Number != nil:
		return types.Double(f.Number(a.value)), true
	case f.Text != nil:
		return types.String(f.Text(a.value)), true
	}
	return types.Bool(f.Flag(a.value)), true
}

func (a *activation[T]) Parent() cel.Activation { return nil }

// typeOf returns the type of a checked tree, which must be one of want.
func typeOf(tree *cel.Ast, want []Type) (Type, error) {
	var words, examples []string
	for _, w := range want {
		if tree.OutputType().IsExactType(w.cel()) {
			return w, nil
		}
		words, examples = append(words, "of type "+string(w)), append(examples, example[w])
	}
	return "", &Error{1, 1, fmt.Sprintf("this is of type %s; it must be %s, such as %s",
		translate(cel.FormatCELType(tree.OutputType())), strings.Join(words, " or "), strings.Join(examples, " or "))}
}

var example = map[Type]string{Number: "1 + 2", Text: `"admit"`, Flag: "1 < 2"}
