package strictyaml

import (
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// Has reports whether the document sets the value at path.
func (d *Doc) Has(path string) bool { return d.find(path) != nil }

// find returns the value at path ("clients[2].arrival.cv"), nil if there is none.
func (d *Doc) find(path string) ast.Node {
	nodes, found := d.lookup(path)
	if !found {
		return nil
	}
	return nodes[len(nodes)-1]
}

// lookup returns the nodes on path, from the root to the value or, if there is no
// such value, to its nearest parent.
func (d *Doc) lookup(path string) (nodes []ast.Node, found bool) {
	parts := strings.FieldsFunc(path, func(r rune) bool { return r == '.' || r == '[' || r == ']' })
	nodes, missing := descend(d.body, parts)
	return nodes, missing == 0
}

// descend returns the nodes on the way along parts, from node on, and how many parts
// are missing. Several parts may form one key that contains dots.
func descend(node ast.Node, parts []string) (nodes []ast.Node, missing int) {
	missing = len(parts)
	for n := 1; n <= len(parts) && missing > 0; n++ {
		if n == 2 && !mayHaveDots(node) {
			break
		}
		if c := child(node, strings.Join(parts[:n], ".")); c != nil {
			if below, m := descend(c, parts[n:]); m < missing {
				nodes, missing = below, m
			}
		}
	}
	return append([]ast.Node{node}, nodes...), missing
}

// mayHaveDots reports whether a key of a node contains a dot, or may in a merged mapping.
func mayHaveDots(node ast.Node) bool {
	return slices.ContainsFunc(entriesOf(untagged(node)), func(v *ast.MappingValueNode) bool {
		return v.Key.IsMergeKey() || strings.Contains(v.Key.GetToken().Value, ".")
	})
}

// child returns the value of a node for a key or an index, nil if there is none. It
// follows merge keys.
func child(node ast.Node, key string) (value ast.Node) {
	node = untagged(node)
	if list, ok := node.(*ast.SequenceNode); ok {
		if i, err := strconv.Atoi(key); err == nil && 0 <= i && i < len(list.Values) {
			return list.Values[i]
		}
		return nil
	}
	for _, v := range entriesOf(node) {
		if v.Key.GetToken().Value == key {
			return v.Value
		}
		if v.Key.IsMergeKey() {
			if merged := child(v.Value, key); merged != nil {
				value = merged
			}
		}
	}
	return value
}

// untagged returns the node that a tag is for, or node.
func untagged(node ast.Node) ast.Node {
	if tagged, ok := node.(*ast.TagNode); ok {
		return tagged.Value
	}
	return node
}

// isScalar reports whether a node is a text, a number or a truth value.
func isScalar(node ast.Node) bool {
	_, scalar := node.(ast.ScalarNode)
	_, null := node.(*ast.NullNode)
	return scalar && !null
}

// scalarText returns a scalar as text.
func scalarText(node ast.Node) string {
	switch n := node.(type) {
	case *ast.StringNode:
		return n.Value
	case *ast.LiteralNode:
		return n.Value.Value
	}
	return node.GetToken().Value
}

// entriesOf returns the entries of a mapping, nil for other nodes.
func entriesOf(node ast.Node) []*ast.MappingValueNode {
	switch n := node.(type) {
	case *ast.MappingNode:
		return n.Values
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}
	}
	return nil
}

// resolveAliases removes the anchors at or below slot and replaces each alias by the
// value of the last anchor of its name that ends before it. An alias without one
// stays. anchors are the values of the anchors so far.
func resolveAliases(slot *ast.Node, anchors map[string]ast.Node) {
	switch n := (*slot).(type) {
	case *ast.AnchorNode:
		if n.Value != nil {
			resolveAliases(&n.Value, anchors)
			anchors[n.Name.GetToken().Value] = n.Value
			*slot = n.Value
		}
	case *ast.AliasNode:
		if value := anchors[n.Value.GetToken().Value]; value != nil {
			*slot = value
		}
	case *ast.TagNode:
		resolveAliases(&n.Value, anchors)
	case *ast.SequenceNode:
		for i := range n.Values {
			resolveAliases(&n.Values[i], anchors)
		}
	case *ast.MappingNode, *ast.MappingValueNode:
		for _, v := range entriesOf(n) {
			key := ast.Node(v.Key)
			resolveAliases(&key, anchors)
			if k, ok := key.(ast.MapKeyNode); ok {
				v.Key = k
			}
			resolveAliases(&v.Value, anchors)
		}
	}
}
