package strictyaml

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"blis/pkg/registry"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// Error is an error in a configuration file. Line and Col count from 1; 0 means
// that the position is unknown (an empty file, a value set on the command line).
type Error struct {
	File      string
	Line, Col int
	Msg       string
}

func (e *Error) Error() string {
	switch {
	case e.Line == 0:
		return fmt.Sprintf("%s: %s", e.File, e.Msg)
	case e.Col == 0:
		return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Msg)
	}
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Col, e.Msg)
}

// Errorf returns an error about the value at path ("clients[2].arrival.cv") with
// the position of that value, in the file or the setting that it comes from. If
// there is no such value, the error says so and has the position of the nearest
// parent.
func (d *Doc) Errorf(path, format string, args ...any) error {
	msg := fmt.Sprintf(format, args...)
	nodes, found := d.lookup(path)
	switch o := d.origins.of(nodes, found); {
	case o.set != nil:
		return o.set.Errorf("%s: %s", path, msg)
	case o.doc != nil:
		return o.doc.Errorf(o.within(path), "%s", msg)
	}
	e := &Error{File: d.name, Msg: path + ": " + msg}
	if !found {
		e.Msg = path + " is not in the file: " + msg
	}
	if at, ok := d.startOf(nodes[len(nodes)-1]); ok && (found || len(nodes) > 1) {
		e.Line, e.Col = at.line, at.col
	}
	return e
}

// convertError turns an error of the YAML library into an *Error; fields are the
// known field names.
func (d *Doc) convertError(err error, fields []string) error {
	var ye yaml.Error
	if !errors.As(err, &ye) {
		return &Error{File: d.name, Msg: err.Error()}
	}
	t := ye.GetToken()
	if t == nil {
		return &Error{File: d.name, Msg: ye.GetMessage()}
	}
	e := d.errorAt(t, ye.GetMessage())
	var unknown *yaml.UnknownFieldError
	var mistyped *yaml.TypeError
	var overflow *yaml.OverflowError
	switch {
	case errors.As(err, &unknown):
		e.Msg = fmt.Sprintf("unknown field %q", t.Value)
		near := registry.Closest(t.Value, fields)
		if near != "" && near != t.Value { // else it is a field of another struct
			e.Msg += fmt.Sprintf("; did you mean %q?", near)
		}
	case errors.As(err, &mistyped):
		e.Msg = keyOf(t) + fmt.Sprintf("must be %s, is %q", typeName(mistyped.DstType), t.Value)
	case errors.As(err, &overflow):
		e.Msg = keyOf(t) + fmt.Sprintf("must be %s of at most 64 bits, is %s", typeName(overflow.DstType), t.Value)
	}
	return e
}

// keyOf returns the key of the value t and a space, "" if t has no key.
func keyOf(t *token.Token) string {
	if t.Prev != nil && t.Prev.Type == token.MappingValueType && t.Prev.Prev != nil {
		return t.Prev.Prev.Value + " "
	}
	return ""
}

// firstUnknownField returns err or, if err is about one of several unknown fields
// of a mapping, the error about the first of them: the YAML library reports any. t
// is the type that the document is decoded into.
func (d *Doc) firstUnknownField(err error, t reflect.Type) error {
	var unknown *yaml.UnknownFieldError
	if !errors.As(err, &unknown) {
		return err
	}
	_ = d.walk(&d.body, t, func(slot *ast.Node, t reflect.Type) error {
		entries := entriesOf(*slot)
		isReported := func(v *ast.MappingValueNode) bool { return v.Key.GetToken() == unknown.Token }
		if t.Kind() != reflect.Struct || !slices.ContainsFunc(entries, isReported) {
			return nil
		}
		types, _ := fields(t)
		first := slices.IndexFunc(entries, func(v *ast.MappingValueNode) bool {
			return !v.Key.IsMergeKey() && types[v.Key.GetToken().Value] == nil || isReported(v)
		})
		unknown.Token = entries[first].Key.GetToken()
		return errStop
	})
	return err
}

// errStop ends a walk.
var errStop = errors.New("stop")

// recoverToError turns a panic into an error: the YAML library panics on some
// malformed documents.
func recoverToError(name string, err *error) {
	if r := recover(); r != nil {
		*err = &Error{File: name, Msg: fmt.Sprintf("cannot be read as YAML or JSON: %v", r)}
	}
}
