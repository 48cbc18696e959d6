package strictyaml

import (
	"encoding"
	"fmt"
	"reflect"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
)

// assign sets v to a value of its own; null is no pointer.
func assign(v reflect.Value, value string) error {
	if v.Kind() == reflect.String && !hasOwnUnmarshaler(v.Type()) {
		text, err := textIn(value)
		if err == nil {
			v.SetString(text)
		}
		return err
	}
	doc, err := Parse("value", []byte(value))
	if v.Kind() == reflect.Pointer {
		if err == nil && doc.file.Docs[0].Body.Type() == ast.NullType {
			v.SetZero()
			return nil
		}
		fresh := reflect.New(v.Type().Elem())
		if err := assign(fresh.Elem(), value); err != nil {
			return err
		}
		v.Set(fresh)
		return nil
	}
	fresh := reflect.New(v.Type())
	if err == nil {
		err = doc.Decode(fresh.Interface())
	}
	if err != nil {
		return fmt.Errorf("must be %s, is %q%s", typeName(v.Type()), value, reason(v.Type(), err))
	}
	v.Set(fresh.Elem())
	return nil
}

// reason is what an error says of a value of type t where it has parts.
func reason(t reflect.Type, err error) string {
	e, ok := err.(*Error)
	if !ok || strings.TrimSpace(e.Msg) == "" || isScalarKind(t) {
		return ""
	}
	return ": " + e.Msg
}

func isScalarKind(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Struct, reflect.Map, reflect.Slice, reflect.Interface:
		return false
	}
	return true
}

// textIn returns the text that a value is: what stands in quotes, or all of it,
// YAML or not. Lists and mappings are none, null is the empty one.
func textIn(value string) (string, error) {
	plain := strings.TrimSpace(value)
	doc, err := Parse("value", []byte(value))
	if plain == "" {
		return "", fmt.Errorf("must be text, is %q", value)
	}
	if err != nil {
		return plain, nil
	}
	switch n := doc.file.Docs[0].Body.(type) {
	case *ast.StringNode:
		if quoteOf(n.Token) != 0 {
			return n.Value, nil
		}
	case *ast.NullNode:
		return "", nil
	case *ast.SequenceNode:
		if n.IsFlowStyle {
			return "", fmt.Errorf("must be text, is %q", value)
		}
	case *ast.MappingNode:
		if n.IsFlowStyle {
			return "", fmt.Errorf("must be text, is %q", value)
		}
	}
	return plain, nil
}

// hasOwnUnmarshaler reports whether values of a type have a form of their own in
// files.
func hasOwnUnmarshaler(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	for _, i := range []reflect.Type{
		reflect.TypeFor[yaml.InterfaceUnmarshaler](), reflect.TypeFor[yaml.BytesUnmarshaler](),
		reflect.TypeFor[yaml.NodeUnmarshaler](), reflect.TypeFor[encoding.TextUnmarshaler](),
	} {
		if p.Implements(i) {
			return true
		}
	}
	return false
}

func typeName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Int, reflect.Int32, reflect.Int64:
		return "an integer"
	case reflect.Uint64:
		return "an integer of at least 0"
	case reflect.Float64:
		return "a number"
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "text"
	case reflect.Slice:
		return "a list"
	case reflect.Interface:
		return "a value in YAML"
	}
	return "fields with values"
}
