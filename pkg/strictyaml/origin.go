package strictyaml

import (
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// origin is where a value comes from: a setting, the value at path of another
// document, or, if both are nil, the document's own file.
type origin struct {
	set  *Setting
	doc  *Doc
	path string
}

// within returns the path in o.doc of a path in the document that includes it.
func (o origin) within(path string) string {
	return strings.TrimPrefix(strings.TrimPrefix(path, o.path), ".")
}

// origins are the origins of nodes that are not from the document's own file.
type origins struct {
	// whole are the origins of nodes including all nodes below them.
	whole map[ast.Node]origin
	// part are the last settings that changed a part of a node.
	part map[ast.Node]*Setting
}

func newOrigins() origins {
	return origins{map[ast.Node]origin{}, map[ast.Node]*Setting{}}
}

// of returns the origin of the value that nodes lead to; found is false if they end
// at a parent of it.
func (o *origins) of(nodes []ast.Node, found bool) (last origin) {
	for _, n := range nodes {
		if from, ok := o.whole[n]; ok {
			last = from
		}
	}
	if s := o.part[nodes[len(nodes)-1]]; found && s != nil {
		last = origin{set: s}
	}
	return last
}

// inherit gives a changed copy of a node its origin, and notes the setting that
// changed it.
func (o *origins) inherit(node, copied ast.Node, s *Setting) {
	if from, ok := o.whole[node]; ok {
		o.whole[copied] = from
	}
	if s == nil {
		s = o.part[node]
	}
	if s != nil {
		o.part[copied] = s
	}
}

// SetBy returns the last setting that set the value at path or a part of it, nil if
// none did.
func (d *Doc) SetBy(path string) *Setting {
	nodes, found := d.lookup(path)
	return d.origins.of(nodes, found).set
}
