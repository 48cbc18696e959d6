package config

import (
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// Has reports whether the document says what is at path.
func (d *Doc) Has(path string) bool { return d.find(path) != nil }

// find returns the value at path ("clients[2].arrival.cv"), nil if there is
// none. Aliases and merged mappings are followed.
func (d *Doc) find(path string) ast.Node {
	parts := strings.Split(strings.ReplaceAll(path, "[", ".["), ".")
	node := d.file.Docs[0].Body
	for _, part := range parts {
		if part == "" {
			continue
		}
		if node = d.child(node, part); node == nil {
			return nil
		}
	}
	return node
}

// child returns the value that a node has under a key, or under "[i]".
func (d *Doc) child(node ast.Node, part string) ast.Node {
	switch n := node.(type) {
	case *ast.AnchorNode:
		return d.child(n.Value, part)
	case *ast.TagNode:
		return d.child(n.Value, part)
	case *ast.AliasNode:
		return d.child(d.anchor(n.Value.GetToken().Value), part)
	case *ast.MappingValueNode:
		return d.among([]*ast.MappingValueNode{n}, part)
	case *ast.MappingNode:
		return d.among(n.Values, part)
	case *ast.SequenceNode:
		i, err := strconv.Atoi(strings.Trim(part, "[]"))
		if err != nil || i < 0 || i >= len(n.Values) {
			return nil
		}
		return n.Values[i]
	}
	return nil
}

// among returns the value of a key, or else what a merged mapping has under it.
func (d *Doc) among(values []*ast.MappingValueNode, key string) ast.Node {
	var merged ast.Node
	for _, v := range values {
		switch v.Key.GetToken().Value {
		case key:
			return v.Value
		case "<<":
			if found := d.child(v.Value, key); found != nil {
				merged = found
			}
		}
	}
	return merged
}
