package strictyaml

import (
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// Set changes one value of a document that is decoded into a value of v's type, a
// pointer to a struct: path names it ("deployments.main.replicas": elements of a
// list by their id or index, of a map by their key), and value is YAML. Errors about
// the value will name the setting by.
//
// A string is set to value as it is, so that expressions need no quotes; only quoted
// text is read as YAML, and lists and mappings are rejected.
//
// In a map of strings or numbers the rest of the path is the key. In other maps the
// key is the longest part of the path that is a key of the map or else its next
// part: set the whole map to add a key that contains dots. In a value of type any,
// missing maps are created.
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
		keys := strings.Split(strings.NewReplacer("[", ".", "]", "").Replace(path), ".")
		d.body = d.replace(d.body, keys, nil, nil)
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
