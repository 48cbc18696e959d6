package strictyaml

import (
	"reflect"
	"regexp"
	"strconv"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// Numbers returns a copy of v with all numbers as float64; v is a decoded value of
// type any, in which integers are uint64 or int64. Integers beyond 2^53 become the
// nearest float64.
func Numbers(v any) any {
	switch x := v.(type) {
	case int:
		return float64(x)
	case int64:
		return float64(x)
	case uint64:
		return float64(x)
	case []any:
		list := make([]any, len(x))
		for i, e := range x {
			list[i] = Numbers(e)
		}
		return list
	case map[string]any:
		m := make(map[string]any, len(x))
		for key, e := range x {
			m[key] = Numbers(e)
		}
		return m
	}
	return v
}

// normalizeNumbers applies Numbers to all values of type any in v.
func normalizeNumbers(v reflect.Value) {
	if !mayHoldAny(v.Type(), map[reflect.Type]bool{}) {
		return
	}
	switch v.Kind() {
	case reflect.Interface:
		if !v.IsNil() && v.CanSet() {
			v.Set(reflect.ValueOf(Numbers(v.Interface())))
		}
	case reflect.Pointer:
		if !v.IsNil() {
			normalizeNumbers(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				normalizeNumbers(v.Field(i))
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			normalizeNumbers(v.Index(i))
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			elem := reflect.New(v.Type().Elem()).Elem()
			elem.Set(v.MapIndex(key))
			normalizeNumbers(elem)
			v.SetMapIndex(key, elem)
		}
	}
}

// mayHoldAny reports whether a value of type t can contain one of type any.
func mayHoldAny(t reflect.Type, seen map[reflect.Type]bool) bool {
	if seen[t] {
		return false
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Interface:
		return t.NumMethod() == 0
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return mayHoldAny(t.Elem(), seen)
	case reflect.Struct:
		for i := range t.NumField() {
			if t.Field(i).IsExported() && mayHoldAny(t.Field(i).Type, seen) {
				return true
			}
		}
	}
	return false
}

// decimal matches the numbers of YAML 1.2 and JSON. The YAML library reads numbers
// with an exponent and no point, and numbers beyond 64 bits, as strings.
var decimal = regexp.MustCompile(`^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`)

// coerceScalars changes scalars of a document to suit t, until restore is called:
// in a value of type any, plain strings that are numbers become numbers; in a
// string, numbers keep their spelling, which the library would change (1.50, 007).
func (d *Doc) coerceScalars(t reflect.Type) (restore func()) {
	var undo []func()
	// The callback returns no error, and checkNumbers reports those of walk.
	_ = d.walk(&d.body, t, func(slot *ast.Node, t reflect.Type) error {
		old := *slot
		switch n := old.(type) {
		case *ast.StringNode:
			if acceptsAny(t) && n.Token.Type == token.StringType && !hasTag(n.Token) && decimal.MatchString(n.Value) {
				number := ast.Float(n.Token)
				number.Value, _ = strconv.ParseFloat(n.Value, 64) // infinite beyond the range of float64
				*slot = number
			}
		case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
			if t.Kind() == reflect.String && !hasOwnUnmarshaler(t) {
				*slot = ast.String(n.GetToken())
			}
		}
		if *slot != old {
			undo = append(undo, func() { *slot = old })
		}
		return nil
	})
	return func() {
		for _, f := range undo {
			f()
		}
	}
}

// acceptsAny reports whether a value of type t can be decoded from scalars of any
// type. Structs can, by their own unmarshalers.
func acceptsAny(t reflect.Type) bool {
	return t.Kind() == reflect.Interface || t.Kind() == reflect.Struct
}

// hasTag reports whether a scalar has a type tag.
func hasTag(t *token.Token) bool { return t.Prev != nil && t.Prev.Type == token.TagType }
