package metrics

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

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

// walk visits the numbers under v, which is at path.
func walk(v reflect.Value, path string, visit func(path string, x float64)) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			walk(v.Elem(), path, visit)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if f.Anonymous {
				walk(v.Field(i), path, visit)
			} else {
				walk(v.Field(i), joinPath(path, jsonName(f)), visit)
			}
		}
	case reflect.Map:
		for _, key := range slices.SortedFunc(maps.Keys(mapKeys(v)), strings.Compare) {
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

// mapKeys returns the keys of a map with string keys.
func mapKeys(v reflect.Value) map[string]bool {
	all := map[string]bool{}
	for _, k := range v.MapKeys() {
		all[k.String()] = true
	}
	return all
}

// SubPath returns the path of the group with that key in the map of groups at path.
func SubPath(path, key string) string { return fmt.Sprintf("%s[%q]", path, key) }

func jsonName(f reflect.StructField) string {
	s, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return s
}

func joinPath(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
