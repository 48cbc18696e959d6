package strictyaml

import (
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// Has reports whether the document sets the value at path.
func (d *Doc) Has(path string) bool { return d.find(path) != nil }

// find returns the value at path ("clients[2].arrival.cv"), nil if there is
// none. It follows aliases and merge keys.
func (d *Doc) find(path string) ast.Node {
	parts := strings.Split(strings.ReplaceAll(path, "[", ".["), ".")
	parts = slices.DeleteFunc(parts, func(part string) bool { return part == "" })
	return d.descend(d.file.Docs[0].Body, parts)
}

// descend returns the value at parts below node. Several parts may form one key
// that contains dots.
func (d *Doc) descend(node ast.Node, parts []string) ast.Node {
	if len(parts) == 0 {
		return node
	}
	for n := 1; n <= len(parts); n++ {
		if c := d.child(node, strings.Join(parts[:n], ".")); c != nil {
			if found := d.descend(c, parts[n:]); found != nil {
				return found
			}
		}
	}
	return nil
}

// child returns the value of a node for a key or for an index "[i]".
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
		return d.lookupKey([]*ast.MappingValueNode{n}, part)
	case *ast.MappingNode:
		return d.lookupKey(n.Values, part)
	case *ast.SequenceNode:
		i, err := strconv.Atoi(strings.Trim(part, "[]"))
		if err != nil || i < 0 || i >= len(n.Values) {
			return nil
		}
		return n.Values[i]
	}
	return nil
}

// lookupKey returns the value of a key in values or else in a merged mapping.
func (d *Doc) lookupKey(values []*ast.MappingValueNode, key string) ast.Node {
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

// anchorOf returns the anchor that an alias refers to: the last of its name that
// ends before the alias, nil if there is none. So no anchor contains itself.
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
