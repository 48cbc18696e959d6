package strictyaml

import (
	"encoding"
	"iter"
	"reflect"
	"strings"

	"github.com/goccy/go-yaml"
)

// fieldNames returns the yaml names of all fields reachable from t.
func fieldNames(t reflect.Type) []string {
	var names []string
	seen := map[reflect.Type]bool{}
	var walk func(reflect.Type)
	walk = func(t reflect.Type) {
		switch t.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Map, reflect.Array:
			walk(t.Elem())
		case reflect.Struct:
			if seen[t] {
				return
			}
			seen[t] = true
			for name, field := range fields(t) {
				names = append(names, name)
				walk(field)
			}
		}
	}
	walk(t)
	return names
}

// fields iterates over the names and types of the fields that the struct type t
// has in documents, including those of embedded ("inline") structs.
func fields(t reflect.Type) iter.Seq2[string, reflect.Type] {
	return func(yield func(string, reflect.Type) bool) {
		for _, f := range reflect.VisibleFields(t) {
			name, options, _ := strings.Cut(f.Tag.Get("yaml"), ",")
			if options == "inline" || name == "" || name == "-" {
				continue
			}
			if !yield(name, f.Type) {
				return
			}
		}
	}
}

// fieldType returns the type of a field of the struct type t, nil if it has none
// of that name.
func fieldType(t reflect.Type, name string) reflect.Type {
	for n, field := range fields(t) {
		if n == name {
			return field
		}
	}
	return nil
}

// hasOwnUnmarshaler reports whether a type decodes itself.
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

// typeName names in messages what values of a type are in files.
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
