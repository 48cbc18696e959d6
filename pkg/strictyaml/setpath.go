package strictyaml

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"blis/pkg/registry"

	"github.com/goccy/go-yaml/ast"
)

// keysOf returns the keys and indexes of a path as Set has it, and the type of the
// value there; t is the type of the document.
func (d *Doc) keysOf(t reflect.Type, path string) (keys []string, leaf reflect.Type, err error) {
	parts := strings.Split(path, ".")
	if slices.Contains(parts, "") {
		return nil, nil, fmt.Errorf("path %q has an empty part", path)
	}
	for node := d.body; len(parts) > 0; {
		key, next, err := nextKey(node, base(t), parts)
		if err != nil {
			return nil, nil, err
		}
		keys, parts = append(keys, key), parts[1+strings.Count(key, "."):]
		node, t = child(node, key), next
	}
	return keys, t, nil
}

// nextKey returns the key or index that parts begin with in node, of type t, and the
// type of its value.
func nextKey(node ast.Node, t reflect.Type, parts []string) (key string, value reflect.Type, err error) {
	key = parts[0]
	list, isList := untagged(node).(*ast.SequenceNode)
	switch kind := t.Kind(); {
	case kind == reflect.Struct:
		types, names := fields(t)
		if types[key] == nil {
			return "", nil, registry.Unknown("field", key, names)
		}
		return key, types[key], nil
	case kind == reflect.Interface && isList:
		key, err = elementKey(list, t, key)
		return key, t, err
	case kind == reflect.Slice:
		key, err = elementKey(list, base(t.Elem()), key)
		return key, t.Elem(), err
	case kind == reflect.Interface && !isScalar(node):
		return mapKey(node, t, parts), t, nil
	case kind == reflect.Map && t.Key().Kind() == reflect.String:
		return mapKey(node, t.Elem(), parts), t.Elem(), nil
	case kind == reflect.Map:
		return "", nil, fmt.Errorf("%q cannot be a key here", key)
	case kind == reflect.Interface:
		return "", nil, fmt.Errorf("%q does not exist: its parent is %s, which has no fields", key, scalarText(node))
	}
	return "", nil, fmt.Errorf("%q does not exist: its parent is %s, which has no fields", key, typeName(t))
}

// mapKey returns the longest key of a map that parts begin with. A new key is all of
// parts in a map of plain values, t, and the first part in other maps.
func mapKey(node ast.Node, t reflect.Type, parts []string) string {
	for n := len(parts); n > 1; n-- {
		if key := strings.Join(parts[:n], "."); !hasParts(t) || child(node, key) != nil {
			return key
		}
	}
	return parts[0]
}

// elementKey returns the index of the element of a list, nil for an empty one, with
// that id or index. t is the type of the elements.
func elementKey(list *ast.SequenceNode, t reflect.Type, id string) (string, error) {
	if list == nil {
		list = new(ast.SequenceNode)
	}
	var ids []string
	for i, v := range list.Values {
		value := child(v, "id")
		if _, isText := value.(*ast.StringNode); !isText && (t.Kind() != reflect.Struct || !isScalar(value)) {
			continue
		}
		if scalarText(value) == id {
			return strconv.Itoa(i), nil
		}
		ids = append(ids, scalarText(value))
	}
	if i, err := strconv.Atoi(id); err == nil && 0 <= i && i < len(list.Values) {
		return strconv.Itoa(i), nil
	}
	if t.Kind() != reflect.Struct || ids == nil {
		return "", fmt.Errorf("no element %q among %d", id, len(list.Values))
	}
	return "", registry.Unknown("element", id, ids)
}

// base returns the type that t points to, or t.
func base(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}
