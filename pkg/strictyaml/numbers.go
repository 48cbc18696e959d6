package strictyaml

import (
	"reflect"
	"regexp"
	"strconv"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// Numbers is v with all numbers in it as float64, v being what a value of any
// type is decoded into: whole numbers of files come as uint64 and int64. Those
// beyond 2^53 become the nearest that a float64 has. v itself stays as it is.
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

// numbers puts Numbers in the place of all values of any type in v.
func numbers(v reflect.Value) {
	if !holdsAny(v.Type(), map[reflect.Type]bool{}) {
		return
	}
	switch v.Kind() {
	case reflect.Interface:
		if !v.IsNil() && v.CanSet() {
			v.Set(reflect.ValueOf(Numbers(v.Interface())))
		}
	case reflect.Pointer:
		if !v.IsNil() {
			numbers(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				numbers(v.Field(i))
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			numbers(v.Index(i))
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			elem := reflect.New(v.Type().Elem()).Elem()
			elem.Set(v.MapIndex(key))
			numbers(elem)
			v.SetMapIndex(key, elem)
		}
	}
}

// holdsAny reports whether a value of type t can hold one of any type.
func holdsAny(t reflect.Type, seen map[reflect.Type]bool) bool {
	if seen[t] {
		return false
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Interface:
		return t.NumMethod() == 0
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return holdsAny(t.Elem(), seen)
	case reflect.Struct:
		for i := range t.NumField() {
			if t.Field(i).IsExported() && holdsAny(t.Field(i).Type, seen) {
				return true
			}
		}
	}
	return false
}

// decimal is a number as YAML 1.2 and JSON have it. The YAML library takes those
// with an exponent and no point, and those beyond 64 bits, for texts.
var decimal = regexp.MustCompile(`^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`)

// retype makes scalars of a document what t takes them in as, until restore: in a
// value of any type, plain texts that are numbers become some; in a text, numbers
// become what stands there, of which the library would change some (1.50, 007).
func (d *Doc) retype(t reflect.Type) (restore func()) {
	var undo []func()
	// No visit fails, and of the faults that scalars finds checkNumbers tells.
	_ = d.scalars(&d.file.Docs[0].Body, t, func(slot *ast.Node, t reflect.Type) error {
		old := *slot
		switch n := old.(type) {
		case *ast.StringNode:
			if takesAny(t) && n.Token.Type == token.StringType && !tagged(n.Token) && decimal.MatchString(n.Value) {
				number := ast.Float(n.Token)
				number.Value, _ = strconv.ParseFloat(n.Value, 64) // beyond its range it is infinite
				*slot = number
			}
		case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
			if t.Kind() == reflect.String && !decodesItself(t) {
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

// takesAny reports whether a t takes in scalars of any type. So may structs, by
// methods of their own.
func takesAny(t reflect.Type) bool {
	return t.Kind() == reflect.Interface || t.Kind() == reflect.Struct
}

// tagged reports whether a tag says what a scalar is.
func tagged(t *token.Token) bool { return t.Prev != nil && t.Prev.Type == token.TagType }
