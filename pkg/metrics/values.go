package metrics

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"blis/pkg/stream"
)

// Value is one number of a tree. Path is its name in expressions, such as ttft.p99,
// cls["critical"].goodput.ratio or replicas[0].utilization.
type Value struct {
	Path  string
	Value float64
}

// Values returns all numbers of the tree in the order of its fields, maps by key. It
// omits missing values, strings, the indices of replicas in their deployments, and the
// rules of policies.
func Values(r *Raw) []Value {
	var all []Value
	walk(reflect.ValueOf(r).Elem(), "", func(path string, x float64) { all = append(all, Value{path, x}) })
	return all
}

// ByPath returns the numbers that Values lists, by path.
func ByPath(r *Raw) map[string]float64 {
	all := map[string]float64{}
	walk(reflect.ValueOf(r).Elem(), "", func(path string, x float64) { all[path] = x })
	return all
}

// walk visits the numbers under v, which is at path.
func walk(v reflect.Value, path string, visit func(path string, x float64)) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			walk(v.Elem(), path, visit)
		}
	case reflect.Struct:
		for _, f := range jsonFields(v.Type()) {
			walk(v.FieldByIndex(f.index), joinPath(path, f.name), visit)
		}
	case reflect.Map:
		for _, key := range sortedKeys(v) {
			at := joinPath(path, key)
			if v.Type().Elem().Kind() == reflect.Pointer {
				at = SubPath(path, key)
			}
			walk(v.MapIndex(reflect.ValueOf(key)), at, visit)
		}
	case reflect.Slice:
		if v.Type() != reflect.TypeFor[[]Replica]() {
			return
		}
		for i := range v.Len() {
			walk(v.Index(i), fmt.Sprintf("%s[%d]", path, i), visit)
		}
	case reflect.Float64:
		visit(path, v.Float())
	case reflect.Int64, reflect.Int32:
		switch x := v.Interface().(type) {
		case stream.Micros:
			if !x.IsZero() {
				visit(path, float64(x))
			}
		case stream.Index:
		default:
			visit(path, float64(v.Int()))
		}
	}
}

// jsonField is a field of a struct, which may be one of an embedded struct, with its name in JSON.
type jsonField struct {
	name  string
	index []int
}

// jsonFields returns the fields of a struct, including those of embedded structs, in order.
func jsonFields(t reflect.Type) []jsonField {
	if known, ok := fieldsByType.Load(t); ok {
		return known.([]jsonField)
	}
	var all []jsonField
	for _, f := range reflect.VisibleFields(t) {
		if !f.Anonymous {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			all = append(all, jsonField{name, f.Index})
		}
	}
	fieldsByType.Store(t, all)
	return all
}

// fieldsByType are the results of jsonFields: a tree has the same structs in many places.
var fieldsByType sync.Map

// sortedKeys returns the keys of a map with string keys.
func sortedKeys(v reflect.Value) (keys []string) {
	for _, k := range v.MapKeys() {
		keys = append(keys, k.String())
	}
	slices.Sort(keys)
	return keys
}

// SubPath returns the path of the group with that key in the map of groups at path.
func SubPath(path, key string) string { return fmt.Sprintf("%s[%q]", path, key) }

func joinPath(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
