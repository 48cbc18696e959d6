package strictyaml

import (
	"slices"
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
	parts = slices.DeleteFunc(parts, func(part string) bool { return part == "" })
	return d.below(d.file.Docs[0].Body, parts)
}

// below returns the value that parts lead to from node. Several may be one key,
// which then has dots of its own.
func (d *Doc) below(node ast.Node, parts []string) ast.Node {
	if len(parts) == 0 {
		return node
	}
	for n := 1; n <= len(parts); n++ {
		if c := d.child(node, strings.Join(parts[:n], ".")); c != nil {
			if found := d.below(c, parts[n:]); found != nil {
				return found
			}
		}
	}
	return nil
}

// child returns the value that a node has under a key, or under "[i]".
func (d *Doc) child(node ast.Node, part string) ast.Node {
	switch n := node.(type) {
	case *ast.AnchorNode:
		return d.child(n.Value, part)
	case *ast.TagNode:
		return d.child(n.Value, part)
	case *ast.AliasNode:
		if a := d.anchorOf(n); a != nil {
			return d.child(a.Value, part)
		}
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

// anchorOf returns the anchor that an alias stands for: the last of its name that
// ends before the alias, nil if there is none. So no anchor leads to itself.
func (d *Doc) anchorOf(alias *ast.AliasNode) (anchor *ast.AnchorNode) {
	name, at := alias.Value.GetToken().Value, alias.GetToken().Position
	for _, node := range ast.Filter(ast.AnchorType, d.file.Docs[0].Body) {
		a := node.(*ast.AnchorNode)
		if p := a.GetToken().Position; p.Line > at.Line || p.Line == at.Line && p.Column > at.Column {
			break
		}
		if a.Name.GetToken().Value == name && !slices.Contains(ast.Filter(ast.AliasType, a.Value), ast.Node(alias)) {
			anchor = a
		}
	}
	return anchor
}
