package strictyaml

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"blis/pkg/registry"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// Set changes one value of a document that is decoded into a value of v's type, a pointer to a
// struct: path names it ("deployments.main.replicas": elements of a list by their id or index, of a
// map by their key), and value is YAML. Errors about the value will name the setting by.
//
// A string is set to value as it is, so that expressions need no quotes; only quoted
// text is read as YAML, and lists and mappings are rejected.
//
// In a map of strings or numbers the rest of the path is the key. In other maps the key is the
// longest part of the path that is a key of the map or else its next part: set the whole map to add
// a key that contains dots. In a value of type any, missing maps are created.
//
// After an error the document is unchanged.
func (d *Doc) Set(v any, path, value string, by *Setting) error {
	keys, t, err := d.keysOf(reflect.TypeOf(v).Elem(), path)
	if err != nil {
		return err
	}
	node, err := parseValue(t, value)
	if err != nil {
		return err
	}
	d.origins.whole[node] = origin{set: by}
	d.body = d.replace(d.body, keys, node, by)
	return nil
}

// Replace puts another document in place of the value of a key of the root.
func (d *Doc) Replace(key string, by *Doc) {
	d.origins.whole[by.body] = origin{doc: by, path: key}
	d.body = d.replace(d.body, []string{key}, by.body, nil)
}

// Delete removes the value of a mapping at path, whose keys must not contain dots.
func (d *Doc) Delete(path string) {
	if d.Has(path) {
		d.body = d.replace(d.body, keysIn(path), nil, nil)
	}
}

// replace returns a copy of node with another value at keys, nil to delete it. by is
// the setting that does so.
func (d *Doc) replace(node ast.Node, keys []string, value ast.Node, by *Setting) ast.Node {
	if len(keys) == 0 {
		return value
	}
	node = untagged(node)
	value = d.replace(child(node, keys[0]), keys[1:], value, by)
	var copied ast.Node
	if list, ok := node.(*ast.SequenceNode); ok {
		c := *list
		c.Values = slices.Clone(list.Values)
		i, _ := strconv.Atoi(keys[0]) // keysOf has found it
		c.Values[i] = value
		copied = &c
	} else {
		copied = withEntry(node, keys[0], value)
	}
	d.origins.inherit(node, copied, by)
	return copied
}

// withEntry returns a copy of a mapping, an empty one for other nodes, with another
// value of a key, nil to delete it. Merge keys become plain entries.
func withEntry(node ast.Node, key string, value ast.Node) ast.Node {
	name := textNode(key)
	copied := ast.Mapping(name.Token, true)
	if n, ok := node.(*ast.MappingNode); ok {
		copied = ast.Mapping(n.Start, n.IsFlowStyle)
	}
	copied.Values = expandMerges(node)
	i := slices.IndexFunc(copied.Values, func(v *ast.MappingValueNode) bool { return v.Key.GetToken().Value == key })
	switch {
	case value == nil && i >= 0:
		copied.Values = slices.Delete(copied.Values, i, i+1)
	case value == nil:
	case i >= 0:
		copied.Values[i] = ast.MappingValue(copied.Values[i].Start, copied.Values[i].Key, value)
	default:
		copied.Values = append(copied.Values, ast.MappingValue(name.Token, name, value))
	}
	return copied
}

// expandMerges returns the entries of a mapping, with those of merged mappings
// unless it has the same keys itself.
func expandMerges(node ast.Node) (all []*ast.MappingValueNode) {
	own := map[string]bool{}
	for _, v := range entriesOf(node) {
		own[v.Key.GetToken().Value] = true
	}
	for _, v := range entriesOf(node) {
		if !v.Key.IsMergeKey() {
			all = append(all, v)
			continue
		}
		for _, m := range expandMerges(v.Value) {
			if !own[m.Key.GetToken().Value] {
				all = append(all, m)
			}
		}
	}
	return all
}

// textNode returns a node for a text.
func textNode(text string) *ast.StringNode {
	return ast.String(&token.Token{Type: token.DoubleQuoteType, Value: text, Origin: text,
		Position: new(token.Position)})
}

// keysOf returns the keys and indexes of a path as Set has it, and the type of the
// value there; t is the type of the document.
func (d *Doc) keysOf(t reflect.Type, path string) (keys []string, leaf reflect.Type, err error) {
	parts := strings.Split(path, ".")
	if slices.Contains(parts, "") {
		return nil, nil, fmt.Errorf("path %q has an empty part", path)
	}
	all := parts
	for node := d.body; len(parts) > 0; {
		key, next, err := nextKey(node, base(t), all[:len(all)-len(parts)], parts)
		if err != nil {
			return nil, nil, err
		}
		keys, parts = append(keys, key), parts[1+strings.Count(key, "."):]
		node, t = child(node, key), next
	}
	return keys, t, nil
}

// nextKey returns the key or index that parts begin with in node, of type t, and the
// type of its value. before are the parts that lead to node.
func nextKey(node ast.Node, t reflect.Type, before, parts []string) (key string, value reflect.Type, err error) {
	key = parts[0]
	list, isList := untagged(node).(*ast.SequenceNode)
	parent := typeName(t)
	switch kind := t.Kind(); {
	case kind == reflect.Struct:
		known := fieldsOf(t)
		if known.types[key] == nil {
			return "", nil, unknownField(node, t, known, before, parts)
		}
		return key, known.types[key], nil
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
		parent = scalarText(node)
	}
	return "", nil, fmt.Errorf("%q does not exist: its parent is %s, which has no fields", key, parent)
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

// parseValue parses a value that is decoded into a t, and checks it.
func parseValue(t reflect.Type, value string) (ast.Node, error) {
	doc, err := Parse("value", []byte(value))
	if t.Kind() == reflect.Pointer && err == nil && doc.body.Type() == ast.NullType {
		return doc.body, nil
	}
	t = base(t)
	if t.Kind() == reflect.String && !hasOwnUnmarshaler(t) {
		return parseText(doc, value)
	}
	if err == nil {
		err = doc.Decode(reflect.New(t).Interface())
	}
	if err != nil {
		msg := fmt.Sprintf("must be %s, is %q", typeName(t), value)
		if e, ok := err.(*Error); ok && hasParts(t) && strings.TrimSpace(e.Msg) != "" {
			msg += ": " + e.Msg
		}
		return nil, errors.New(msg)
	}
	return doc.body, nil
}

// parseText returns the text of a value: the content of quotes or else all of it,
// whether or not it is YAML. Null is empty; lists and mappings in brackets are
// errors. doc is the value as YAML, nil if it is none.
func parseText(doc *Doc, value string) (ast.Node, error) {
	text := strings.TrimSpace(value)
	isText := text != ""
	if doc != nil {
		switch n := doc.body.(type) {
		case *ast.StringNode:
			if quoteOf(n.Token) != 0 {
				text = n.Value
			}
		case *ast.NullNode:
			text = ""
		case *ast.SequenceNode:
			isText = !n.IsFlowStyle
		case *ast.MappingNode:
			isText = !n.IsFlowStyle
		}
	}
	if !isText {
		return nil, fmt.Errorf("must be text, is %q", value)
	}
	return textNode(text), nil
}
