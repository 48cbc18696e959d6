// Package script compiles Starlark programs to Go functions over the fields of a type T, like package expr does for
// expressions.
//
// A program defines functions with the names of hooks, and others that these call. The parameters of a hook name what
// it reads: the first part of the names of fields ("req" for req.input_tokens), or a list of objects ("replicas").
//
// Programs are hermetic and deterministic. They have no load, output, clock, random numbers or state that outlives a
// call; dicts are in insertion order. They are limited: maxSource bytes of text, maxSteps steps a call, maxLength
// elements of a list, tuple or string that is made, 64 bits of a product of integers. Lists, tuples and dicts hold
// numbers, strings, True, False, None and objects, and no other lists, so that nothing can double step by step. What
// exceeds a limit at run time is an error, and so is recursion.
package script

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"blis/pkg/expr"
	"blis/pkg/registry"

	"go.starlark.net/resolve"
	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// The limits of programs. A step is an instruction of the interpreter; an operation on a list also counts the list's
// elements.
const (
	maxSource = 16 << 10
	maxSteps  = 100_000
	maxLength = 10_000
)

// Scope is what the functions of a program read.
type Scope[T any] struct {
	Fields []expr.Field[T]
	Lists  []List[T]
}

// Hook is a function that a program may define.
type Hook struct {
	Name string
	Want []expr.Type
	// Prefix: it is all functions whose name begins with Name.
	Prefix bool
}

// Function is a hook of a program. It must not be called concurrently.
type Function[T any] struct {
	name           string
	signature      string
	want           []expr.Type
	uses           []string
	compared       map[string][]expr.Literal
	literalResults []expr.Literal

	scope     *Scope[T]
	function  *starlark.Function
	parameter []parameter[T]
	args      starlark.Tuple
	thread    *starlark.Thread
}

// Compile compiles a program and returns its hooks by name. Errors are *expr.Error.
func Compile[T any](src string, scope *Scope[T], hooks []Hook) (map[string]*Function[T], error) {
	if len(src) > maxSource {
		return nil, &expr.Error{Line: 1, Col: 1, Msg: fmt.Sprintf("the program has %d bytes, at most %d are allowed",
			len(src), maxSource)}
	}
	options := &syntax.FileOptions{}
	file, err := options.Parse("", src, 0)
	if err != nil {
		return nil, position(err)
	}
	c := &checker{fields: scope.names(), hooks: hooks, parameters: scope.parameters()}
	if err := c.check(file); err != nil {
		return nil, err
	}
	program, err := starlark.FileProgram(file, predeclared.Has)
	if err != nil {
		return nil, position(err)
	}
	thread := newThread()
	globals, err := program.Init(thread, predeclared)
	if err != nil {
		return nil, position(err)
	}
	globals.Freeze()
	all := map[string]*Function[T]{}
	for name, d := range c.definitions {
		f := &Function[T]{name: name, signature: d.signature(), want: d.hook.Want, uses: c.uses, compared: c.compared,
			literalResults: d.results, scope: scope, function: globals[name].(*starlark.Function)}
		f.prepare()
		all[name] = f
	}
	return all, nil
}

func newThread() *starlark.Thread {
	t := &starlark.Thread{OnMaxSteps: func(t *starlark.Thread) {
		t.Cancel(fmt.Sprintf("more than %d steps, the limit of a call", maxSteps))
	}}
	t.SetMaxExecutionSteps(maxSteps)
	return t
}

// prepare makes the arguments and the thread of f.
func (f *Function[T]) prepare() {
	f.thread, f.parameter, f.args = newThread(), nil, nil
	for i := range f.function.NumParams() {
		name, _ := f.function.Param(i)
		p := f.scope.parameter(name)
		f.parameter, f.args = append(f.parameter, p), append(f.args, p.value())
	}
}

// Clone returns a copy that may be called concurrently with f.
func (f *Function[T]) Clone() *Function[T] {
	c := *f
	c.prepare()
	return &c
}

// Signature returns the name and the parameters of the function.
func (f *Function[T]) Signature() string { return f.signature }

// Uses returns the names of the fields that the program reads, sorted.
func (f *Function[T]) Uses() []string { return f.uses }

// ComparedLiterals returns the string literals that the program compares the field called name with.
func (f *Function[T]) ComparedLiterals(name string) []expr.Literal { return f.compared[name] }

// LiteralResults returns the string literals that the function returns.
func (f *Function[T]) LiteralResults() []expr.Literal { return f.literalResults }

// Number calls a function whose result is a number, which may be infinite or NaN.
func (f *Function[T]) Number(t *T) (float64, error) {
	v, err := f.call(t)
	if err != nil {
		return 0, err
	}
	x, ok := number(v)
	if !ok {
		return 0, f.wrong(v, expr.Number)
	}
	return x, nil
}

// Text calls a function whose result is a text.
func (f *Function[T]) Text(t *T) (string, error) {
	v, err := f.call(t)
	if err != nil {
		return "", err
	}
	s, ok := v.(starlark.String)
	if !ok {
		return "", f.wrong(v, f.want...)
	}
	return string(s), nil
}

// Flag calls a function whose result is true or false.
func (f *Function[T]) Flag(t *T) (bool, error) {
	yes, _, _, err := f.FlagOrText(t)
	return yes, err
}

// FlagOrText calls a function whose result is a flag or, if isText, a text.
func (f *Function[T]) FlagOrText(t *T) (yes bool, text string, isText bool, err error) {
	v, err := f.call(t)
	if err != nil {
		return false, "", false, err
	}
	switch v := v.(type) {
	case starlark.Bool:
		return bool(v), "", false, nil
	case starlark.String:
		if slices.Contains(f.want, expr.Text) {
			return false, string(v), true, nil
		}
	}
	return false, "", false, f.wrong(v, f.want...)
}

// wrong is the error of a result of another type.
func (f *Function[T]) wrong(v starlark.Value, want ...expr.Type) error {
	var words []string
	for _, w := range want {
		words = append(words, map[expr.Type]string{expr.Number: "a number", expr.Text: "a string",
			expr.Flag: "True or False"}[w])
	}
	at := f.function.Position()
	return &expr.Error{Line: int(at.Line), Col: int(at.Col), Msg: fmt.Sprintf("%s returned a value of type %s; it "+
		"must be %s", f.name, v.Type(), strings.Join(words, " or "))}
}

func (f *Function[T]) call(t *T) (starlark.Value, error) {
	for _, p := range f.parameter {
		p.set(t)
	}
	f.thread.Steps = 0
	v, err := starlark.Call(f.thread, f.function, f.args, nil)
	if err != nil {
		f.thread.Uncancel()
		return nil, position(err)
	}
	return v, nil
}

// position returns an error of Starlark as one of this project.
func position(err error) error {
	if e, ok := errors.AsType[*expr.Error](err); ok {
		return e
	}
	if e, ok := errors.AsType[syntax.Error](err); ok {
		return &expr.Error{Line: int(e.Pos.Line), Col: int(e.Pos.Col), Msg: e.Msg}
	}
	if all, ok := errors.AsType[resolve.ErrorList](err); ok {
		e := all[0]
		if name, ok := strings.CutPrefix(e.Msg, "undefined: "); ok {
			name, _, _ = strings.Cut(name, " ")
			e.Msg = registry.Unknown("name", name, functionNames()).Error()
		}
		return &expr.Error{Line: int(e.Pos.Line), Col: int(e.Pos.Col), Msg: e.Msg}
	}
	e, ok := errors.AsType[*starlark.EvalError](err)
	if !ok {
		return &expr.Error{Line: 1, Col: 1, Msg: err.Error()}
	}
	found := &expr.Error{Line: 1, Col: 1, Msg: strings.TrimPrefix(e.Msg, "Starlark computation cancelled: ")}
	for _, frame := range slices.Backward(e.CallStack) {
		if frame.Pos.Line > 0 { // a function of the program
			found.Line, found.Col = int(frame.Pos.Line), int(frame.Pos.Col)
			break
		}
	}
	return found
}
