package strictyaml

import (
	"encoding"
	"reflect"
	"strings"
	"sync"

	"github.com/goccy/go-yaml"
)

// structFields are the types of the fields of a struct by their names in documents, and
// the names in order.
type structFields struct {
	types map[string]reflect.Type
	names []string
}

var knownFields sync.Map // reflect.Type -> structFields

// fieldsOf returns the fields that the struct type t has in documents, including those
// of embedded ("inline") structs.
func fieldsOf(t reflect.Type) structFields {
	if known, ok := knownFields.Load(t); ok {
		return known.(structFields)
	}
	all := structFields{types: map[string]reflect.Type{}}
	for _, f := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if options != "inline" && name != "" && name != "-" {
			all.types[name] = f.Type
			all.names = append(all.names, name)
		}
	}
	knownFields.Store(t, all)
	return all
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
