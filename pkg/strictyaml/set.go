package strictyaml

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"blis/pkg/registry"
)

// Set changes one value of v, a pointer to a struct with yaml tags: path names
// it ("deployments.main.replicas", elements of a list by their id or index, of
// a map by their key), value is read as YAML.
//
// A text is set to value as it stands, so that expressions need no quotes: YAML
// is only what is quoted, or a whole list or mapping, which is no text.
//
// In a map of texts or numbers all that is left of the path is the key. Elsewhere
// the key is as much of the path as is one of the map's, or else its next part: a
// new key with a dot of its own must come in a mapping that holds it. Values of
// any type are maps and lists in each other; maps that are not there are made,
// and those that are may be shared: they are copied. Numbers there are float64.
//
// If there is an error, v stays as it was.
func Set(v any, path, value string) error {
	parts := strings.Split(path, ".")
	if slices.Contains(parts, "") {
		return fmt.Errorf("path %q has an empty part", path)
	}
	return set(reflect.ValueOf(v).Elem(), parts, value)
}

func set(v reflect.Value, path []string, value string) error {
	if len(path) == 0 {
		return assign(v, value)
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			return set(v.Elem(), path, value)
		}
		fresh := withDefaults(v.Type().Elem())
		if err := set(fresh.Elem(), path, value); err != nil {
			return err
		}
		v.Set(fresh)
		return nil
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
		return setKey(v, path, value)
	case reflect.Interface:
		return setAny(v, path, value)
	}
	return fmt.Errorf("%q has no place: there is %s, which has no fields", path[0], typeName(v.Type()))
}

// withDefaults makes a value of type t: what one with a form of its own decodes an
// empty mapping to, if it does; else zero.
func withDefaults(t reflect.Type) reflect.Value {
	fresh := reflect.New(t)
	if !hasOwnUnmarshaler(t) {
		return fresh
	}
	doc, err := Parse("value", []byte("{}"))
	if err == nil {
		err = doc.Decode(fresh.Interface())
	}
	if err != nil {
		return reflect.New(t)
	}
	return fresh
}

func field(v reflect.Value, name string) (reflect.Value, error) {
	var have []string
	for f := range fields(v.Type()) {
		if f.name == name {
			return v.FieldByIndex(f.index), nil
		}
		have = append(have, f.name)
	}
	return reflect.Value{}, registry.Unknown("field", name, have)
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
	i, err := indexOf(id, v.Len())
	switch {
	case err == nil:
		return v.Index(i), nil
	case len(have) == 0:
		return reflect.Value{}, err
	}
	return reflect.Value{}, registry.Unknown("element", id, have)
}

// indexOf returns the index of an element of a list of n.
func indexOf(id string, n int) (int, error) {
	i, err := strconv.Atoi(id)
	if err != nil || i < 0 || i >= n {
		return 0, fmt.Errorf("no element %q among %d", id, n)
	}
	return i, nil
}
