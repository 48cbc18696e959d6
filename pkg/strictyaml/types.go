package strictyaml

import (
	"encoding"
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
			types, own := fields(t)
			for _, name := range own {
				names = append(names, name)
				walk(types[name])
			}
		}
	}
	walk(t)
	return names
}

// fields returns the types and names of the fields that the struct type t has in
// documents, including those of embedded ("inline") structs.
func fields(t reflect.Type) (types map[string]reflect.Type, names []string) {
	types = map[string]reflect.Type{}
	for _, f := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if options != "inline" && name != "" && name != "-" {
			types[name] = f.Type
			names = append(names, name)
		}
	}
	return types, names
}

// hasParts reports whether values of type t have fields, keys or elements.
func hasParts(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Struct, reflect.Map, reflect.Slice, reflect.Interface, reflect.Pointer:
		return true
	}
	return false
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
