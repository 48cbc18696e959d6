package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"blis/pkg/named"
)

// Set changes one value of v, a pointer to a struct with yaml tags: path names
// it ("deployments.main.replicas", elements of a list by their id or index, of
// a map by their key), value is read as YAML.
func Set(v any, path, value string) error {
	parts := strings.Split(path, ".")
	if slices.Contains(parts, "") {
		return fmt.Errorf("path %q has an empty part", path)
	}
	return set(reflect.ValueOf(v).Elem(), parts, value)
}

func set(v reflect.Value, path []string, value string) error {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		return set(v.Elem(), path, value)
	}
	if len(path) == 0 {
		return assign(v, value)
	}
	switch v.Kind() {
	case reflect.Struct:
		f, err := field(v, path[0])
		if err != nil {
			return err
		}
		return set(f, path[1:], value)
	case reflect.Slice:
		f, err := element(v, path[0])
		if err != nil {
			return err
		}
		return set(f, path[1:], value)
	case reflect.Map:
		if v.IsNil() {
			v.Set(reflect.MakeMap(v.Type()))
		}
		if v.Type().Elem().Kind() == reflect.Interface {
			return setAny(v, path, value)
		}
		// A key may hold dots of its own ("main.x"), so a map of plain values takes all that is left.
		key := reflect.ValueOf(strings.Join(path, "."))
		elem := reflect.New(v.Type().Elem()).Elem()
		if err := assign(elem, value); err != nil {
			return err
		}
		v.SetMapIndex(key, elem)
		return nil
	}
	return fmt.Errorf("%q has no fields", path[0])
}

// setAny is set in a map of values of any type: each part of the path is a key,
// and maps that are not there are made. Numbers are float64.
func setAny(m reflect.Value, path []string, value string) error {
	key := reflect.ValueOf(path[0])
	if len(path) == 1 {
		var x any
		if err := assign(reflect.ValueOf(&x).Elem(), value); err != nil {
			return err
		}
		elem := reflect.New(m.Type().Elem()).Elem()
		if x = float(x); x != nil {
			elem.Set(reflect.ValueOf(x))
		}
		m.SetMapIndex(key, elem)
		return nil
	}
	inner := map[string]any{}
	if old := m.MapIndex(key); old.IsValid() {
		given, ok := old.Interface().(map[string]any)
		if !ok {
			return fmt.Errorf("%q has no %q: it is %v", path[0], path[1], old)
		}
		inner = maps.Clone(given) // it may be shared
	}
	if err := setAny(reflect.ValueOf(inner), path[1:], value); err != nil {
		return err
	}
	m.SetMapIndex(key, reflect.ValueOf(inner))
	return nil
}

// float makes all numbers in x float64.
func float(x any) any {
	switch n := x.(type) {
	case int64:
		return float64(n)
	case uint64:
		return float64(n)
	case []any:
		for i := range n {
			n[i] = float(n[i])
		}
	case map[string]any:
		for key := range n {
			n[key] = float(n[key])
		}
	}
	return x
}

func field(v reflect.Value, name string) (reflect.Value, error) {
	var have []string
	for f := range fields(v.Type()) {
		if f.name == name {
			return v.FieldByIndex(f.index), nil
		}
		have = append(have, f.name)
	}
	return reflect.Value{}, named.Unknown("field", name, have)
}

// element finds a list's element by its id field, or by index.
func element(v reflect.Value, id string) (reflect.Value, error) {
	var have []string
	for i := range v.Len() {
		e := reflect.Indirect(v.Index(i))
		if e.Kind() == reflect.Struct {
			if f, err := field(e, "id"); err == nil {
				if f.String() == id {
					return e, nil
				}
				have = append(have, f.String())
			}
		}
	}
	if i, err := strconv.Atoi(id); err == nil && 0 <= i && i < v.Len() {
		return v.Index(i), nil
	}
	if len(have) == 0 {
		return reflect.Value{}, fmt.Errorf("no element %q among %d", id, v.Len())
	}
	return reflect.Value{}, named.Unknown("element", id, have)
}

func assign(v reflect.Value, value string) error {
	fresh := reflect.New(v.Type())
	doc, err := Parse("value", []byte(value))
	if err == nil {
		err = doc.Decode(fresh.Interface())
	}
	if err != nil {
		return fmt.Errorf("must be %s, is %q", typeWord(v.Type()), value)
	}
	v.Set(fresh.Elem())
	return nil
}

func typeWord(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Int, reflect.Int32, reflect.Int64:
		return "a whole number"
	case reflect.Uint64:
		return "a whole number from 0"
	case reflect.Float64:
		return "a number"
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "text"
	case reflect.Slice:
		return "a list"
	}
	return "fields with values"
}
