// Package expr compiles CEL expressions over the fields of a type T, once, to Go functions where
// possible.
//
// All numbers are doubles: integer literals, size() and int() are promoted, so that input_tokens >
// 1000 and size(id) == 3 compile. Map literals are rejected because their order is undefined;
// everything else is deterministic. Every evaluation terminates quickly. The only loops are over
// list literals, lists cannot grow or nest, expressions with too high an estimated cost are
// rejected, and a loop that exceeds the limit at run time, by making strings longer, fails.
//
// In addition to CEL's functions there are min, max, abs, exp, log, sqrt, pow, clamp(x, lo, hi) and
// ema(average, x, weight) of numbers. a % b takes integers and has the sign of a, as in CEL; it is NaN
// if a or b has a fraction or is infinite or NaN, or if b is 0.
package expr

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// Type is the type of a field or an expression.
type Type string

// The types. There is only one kind of number.
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

// Field is a name that an expression over T may use; it may contain dots. A name that ends in () is a
// function without arguments, whose getter is called each time that the expression calls it. Only the
// getter of its type is set.
type Field[T any] struct {
	Name, Doc string
	Type      Type
	Number    func(*T) float64
	Text      func(*T) string
	Flag      func(*T) bool
	// ByKey makes the field a table of numbers, read as name["key"], ByIndex a list of numbers, read as name[0]. Keys
	// and indexes are literals.
	ByKey   func(t *T, key string) float64
	ByIndex func(t *T, index int) float64
	// Available reports whether a T has the field; nil means always. The value of a missing field is
	// unknown: results computed from it are unknown, unless && or || decides without it, and an unknown
	// flag is false.
	Available func(*T) bool
}

// Error is an error in an expression, with its position in the text, from 1.
type Error struct {
	Line, Col int
	Msg       string
}

func (e *Error) Error() string { return fmt.Sprintf("%d:%d: %s", e.Line, e.Col, e.Msg) }

// Literal is a string literal in an expression, with its position.
type Literal struct {
	Text      string
	Line, Col int
}

// Expression is a compiled expression. It must not be evaluated concurrently.
type Expression[T any] struct {
	kind Type
	uses []string
	// compared are the string literals that each field is compared with.
	compared map[string][]Literal
	// literalResults are the string literals that can be its value.
	literalResults []Literal
	// One of number, text and flag is set if it is compiled to closures; else program is.
	number  number[T]
	text    text[T]
	flag    flag[T]
	program cel.Program
	at      *activation[T]
}

// Compile compiles src, whose value must have one of the types want. Errors are *Error.
func Compile[T any](src string, fields []Field[T], want ...Type) (*Expression[T], error) {
	env, err := environment(fields)
	if err != nil {
		panic("expr: " + err.Error())
	}
	tree, issues := env.Parse(src)
	if issues.Err() != nil {
		return nil, firstIssue(issues)
	}
	elements, err := resolveIndexes(tree.NativeRep(), fields)
	if err != nil {
		return nil, err
	}
	if len(elements) > 0 {
		fields = slices.Concat(fields, elements)
		if env, err = environment(fields); err != nil {
			panic("expr: " + err.Error())
		}
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
	if err := prepareCalls(tree.NativeRep(), names); err != nil {
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

// Clone returns a copy that may be evaluated concurrently with e.
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

// ComparedLiterals returns the string literals that it compares the field called name with, by ==,
// != and in.
func (e *Expression[T]) ComparedLiterals(name string) []Literal { return e.compared[name] }

// LiteralResults returns the string literals that its value can be.
func (e *Expression[T]) LiteralResults() []Literal { return e.literalResults }

// Closure reports whether it is compiled to Go closures rather than interpreted.
func (e *Expression[T]) Closure() bool { return e.program == nil }

// Number returns the value of an expression of type Number, which may be infinite or NaN. An
// unknown value is an error.
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

// Text returns the value of an expression of type Text. An unknown value is an error.
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

// Flag returns the value of an expression of type Flag, false if it is unknown.
func (e *Expression[T]) Flag(t *T) (bool, error) {
	if e.flag != nil {
		return e.flag(t), nil
	}
	v, err := e.eval(t, Flag)
	return v == types.True, err
}

func (e *Expression[T]) eval(t *T, want Type) (ref.Val, error) {
	if e.kind != want {
		panic("expr: an expression of type " + string(e.kind) + " is evaluated as " + string(want))
	}
	e.at.value = t
	v, _, err := e.program.Eval(e.at)
	if err != nil {
		return nil, fmt.Errorf("evaluating the expression: %w", err)
	}
	return v, nil
}

// activation provides the fields of one value to an interpreted expression.
type activation[T any] struct {
	fields map[string]*Field[T]
	value  *T
}

// unknown is the value of a missing field.
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

// typeOf returns the type of a checked tree, which must be in want.
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
