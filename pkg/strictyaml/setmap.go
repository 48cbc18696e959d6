package strictyaml

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// setKey is set in a map, of which it makes a changed copy.
func setKey(m reflect.Value, path []string, value string) error {
	t := m.Type()
	if t.Key().Kind() != reflect.String {
		return fmt.Errorf("%q cannot be a key here", path[0])
	}
	n := keyLength(m, path)
	key := reflect.ValueOf(strings.Join(path[:n], ".")).Convert(t.Key())
	elem := reflect.New(t.Elem()).Elem()
	if old := m.MapIndex(key); old.IsValid() {
		elem.Set(old)
	}
	if elem.Kind() == reflect.Slice { // its elements may be shared
		elem.Set(reflect.AppendSlice(reflect.Zero(elem.Type()), elem))
	}
	if err := set(elem, path[n:], value); err != nil {
		return err
	}
	fresh := reflect.MakeMap(t)
	for _, k := range m.MapKeys() {
		fresh.SetMapIndex(k, m.MapIndex(k))
	}
	fresh.SetMapIndex(key, elem)
	m.Set(fresh)
	return nil
}

// keyLength returns how many parts of path are the key of an entry of m: as many
// as make one that it has, or else all for plain values and one for others.
func keyLength(m reflect.Value, path []string) int {
	kind := m.Type().Elem().Kind()
	switch kind {
	case reflect.Interface, reflect.Struct, reflect.Map, reflect.Slice, reflect.Pointer:
	default:
		return len(path)
	}
	for n := len(path); n > 0; n-- {
		if m.MapIndex(reflect.ValueOf(strings.Join(path[:n], ".")).Convert(m.Type().Key())).IsValid() {
			return n
		}
	}
	return 1
}

// setAny is set in a value of any type, of which it makes a changed copy.
func setAny(v reflect.Value, path []string, value string) error {
	var inner reflect.Value
	switch old := v.Interface().(type) {
	case nil:
		inner = reflect.New(reflect.TypeFor[map[string]any]()).Elem()
	case map[string]any:
		inner = reflect.New(reflect.TypeFor[map[string]any]()).Elem()
		inner.Set(reflect.ValueOf(maps.Clone(old)))
	case []any:
		return setElement(v, slices.Clone(old), path, value)
	default:
		if v.Elem().Kind() != reflect.Map && v.Elem().Kind() != reflect.Struct {
			return fmt.Errorf("%q has no place: there is %v, which has no fields", path[0], old)
		}
		inner = reflect.New(v.Elem().Type()).Elem()
		inner.Set(v.Elem())
	}
	if err := set(inner, path, value); err != nil {
		return err
	}
	v.Set(inner)
	return nil
}

// setElement is setAny for one element of a list, by its id or index.
func setElement(v reflect.Value, list []any, path []string, value string) error {
	at := slices.IndexFunc(list, func(e any) bool {
		m, ok := e.(map[string]any)
		return ok && m["id"] == path[0]
	})
	if at < 0 {
		var err error
		if at, err = indexOf(path[0], len(list)); err != nil {
			return err
		}
	}
	if err := set(reflect.ValueOf(list).Index(at), path[1:], value); err != nil {
		return err
	}
	v.Set(reflect.ValueOf(list))
	return nil
}
