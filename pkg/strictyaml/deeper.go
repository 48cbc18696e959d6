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

const (
	// maxDeeperPaths is the most paths that a message suggests.
	maxDeeperPaths = 3
	// maxDeeperParts is the most parts that a suggested path adds.
	maxDeeperParts = 4
)

// unknownField is the error for parts of a path that begin with no field of a struct. before are the parts that lead
// to the struct, whose value is node.
func unknownField(node ast.Node, t reflect.Type, known structFields, before, parts []string) error {
	if slices.ContainsFunc(known.names, func(name string) bool { return strings.EqualFold(name, parts[0]) }) {
		return registry.Unknown("field", parts[0], known.names)
	}
	var paths []string
	for _, deeper := range deeperFields(node, t, parts[0]) {
		path := slices.Concat(before, deeper, parts[1:])
		paths = append(paths, strconv.Quote(strings.Join(path, ".")))
	}
	if paths == nil {
		return registry.Unknown("field", parts[0], known.names)
	}
	more := ""
	if len(paths) > maxDeeperPaths {
		paths, more = paths[:maxDeeperPaths], ", ..."
	}
	return fmt.Errorf("unknown field %q; did you mean %s%s?", parts[0], strings.Join(paths, " or "), more)
}

// deeperFields returns the shortest paths from node, of type t, to a field of the name below it: fields of structs,
// whether or not the document has them, and elements of lists that it has.
func deeperFields(node ast.Node, t reflect.Type, name string) (found [][]string) {
	type place struct {
		node ast.Node
		t    reflect.Type
		path []string
	}
	level := []place{{node, base(t), nil}}
	for depth := 0; depth < maxDeeperParts && found == nil; depth++ {
		var next []place
		for _, p := range level {
			switch p.t.Kind() {
			case reflect.Struct:
				known := fieldsOf(p.t)
				if depth > 0 && known.types[name] != nil {
					found = append(found, append(slices.Clone(p.path), name))
				}
				for _, field := range known.names {
					next = append(next, place{child(p.node, field), base(known.types[field]),
						append(slices.Clone(p.path), field)})
				}
			case reflect.Slice:
				if list, ok := untagged(p.node).(*ast.SequenceNode); ok {
					for i, element := range list.Values {
						next = append(next, place{element, base(p.t.Elem()),
							append(slices.Clone(p.path), idOf(element, i))})
					}
				}
			}
		}
		level = next
	}
	return found
}

// idOf is the id of an element i of a list, or i if it has none that a path can name.
func idOf(element ast.Node, i int) string {
	if id := child(element, "id"); isScalar(id) && !strings.Contains(scalarText(id), ".") {
		return scalarText(id)
	}
	return strconv.Itoa(i)
}
