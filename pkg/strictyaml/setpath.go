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
// value there. v is a pointer to a struct of the type of the document.
func (d *Doc) keysOf(v any, path string) (keys []string, t reflect.Type, err error) {
	parts := strings.Split(path, ".")
	if slices.Contains(parts, "") {
		return nil, nil, fmt.Errorf("path %q has an empty part", path)
	}
	node := d.body
	for t = reflect.TypeOf(v).Elem(); len(parts) > 0; {
		if tagged, ok := node.(*ast.TagNode); ok {
			node = tagged.Value
		}
		key, n := parts[0], 1
		list, isList := node.(*ast.SequenceNode)
		switch kind := base(t).Kind(); {
		case kind == reflect.Struct:
			if t, err = knownField(base(t), key); err != nil {
				return nil, nil, err
			}
		case kind == reflect.Slice, kind == reflect.Interface && isList:
			if kind == reflect.Slice {
				t = base(t).Elem()
			}
			if key, err = elementKey(list, base(t), key); err != nil {
				return nil, nil, err
			}
		case kind == reflect.Map && base(t).Key().Kind() != reflect.String:
			return nil, nil, fmt.Errorf("%q cannot be a key here", key)
		case kind == reflect.Map:
			t = base(t).Elem()
			n = keyLength(node, base(t), parts)
		case kind == reflect.Interface && !isScalar(node):
			n = keyLength(node, t, parts)
		case kind == reflect.Interface:
			return nil, nil, fmt.Errorf("%q does not exist: its parent is %s, which has no fields", key, node.GetToken().Value)
		default:
			return nil, nil, fmt.Errorf("%q does not exist: its parent is %s, which has no fields", key, typeName(base(t)))
		}
		if n > 1 {
			key = strings.Join(parts[:n], ".")
		}
		keys, parts, node = append(keys, key), parts[n:], child(node, key)
	}
	return keys, t, nil
}

// base returns the type that t points to, or t.
func base(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

// isScalar reports whether a node is a text, a number or a truth value.
func isScalar(node ast.Node) bool {
	_, scalar := node.(ast.ScalarNode)
	_, null := node.(*ast.NullNode)
	return scalar && !null
}

// knownField returns the type of a field of the struct type t.
func knownField(t reflect.Type, name string) (reflect.Type, error) {
	if field := fieldType(t, name); field != nil {
		return field, nil
	}
	var names []string
	for name := range fields(t) {
		names = append(names, name)
	}
	return nil, registry.Unknown("field", name, names)
}

// elementKey returns the index of the element of a list, nil for an empty one, with
// that id or index. t is the type of the elements.
func elementKey(list *ast.SequenceNode, t reflect.Type, id string) (string, error) {
	var ids []string
	var values []ast.Node
	if list != nil {
		values = list.Values
	}
	for i, v := range values {
		text, ok := idOf(v, t)
		switch {
		case ok && text == id:
			return strconv.Itoa(i), nil
		case ok:
			ids = append(ids, text)
		}
	}
	if i, err := strconv.Atoi(id); err == nil && 0 <= i && i < len(values) {
		return strconv.Itoa(i), nil
	}
	if t.Kind() == reflect.Struct && fieldType(t, "id") != nil {
		return "", registry.Unknown("element", id, ids)
	}
	return "", fmt.Errorf("no element %q among %d", id, len(values))
}

// idOf returns the id of an element: in a value of type any a string, in a struct
// any scalar.
func idOf(element ast.Node, t reflect.Type) (id string, ok bool) {
	value := child(element, "id")
	if text, ok := value.(*ast.StringNode); ok {
		return text.Value, true
	}
	if t.Kind() == reflect.Struct && isScalar(value) {
		return value.GetToken().Value, true
	}
	return "", false
}

// keyLength returns how many parts are the next key of a map of values of type t: as
// many as form a key that it has, or else all for plain values and one for others.
func keyLength(node ast.Node, t reflect.Type, parts []string) int {
	switch t.Kind() {
	case reflect.Interface, reflect.Struct, reflect.Map, reflect.Slice:
	default:
		return len(parts)
	}
	for n := len(parts); n > 1; n-- {
		if child(node, strings.Join(parts[:n], ".")) != nil {
			return n
		}
	}
	return 1
}
