package config

import (
	"encoding/json"
	"fmt"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
)

// ReadSets reads a file of one flat object, {"routing.params.queue-depth": 0.3},
// and returns its entries as Set takes them, path=value, in their order.
func ReadSets(name string) ([]string, error) {
	doc, err := Read(name)
	if err != nil {
		return nil, err
	}
	return doc.sets()
}

func (d *Doc) sets() (sets []string, err error) {
	defer recovered(d.name, &err)
	var values []*ast.MappingValueNode
	switch n := d.file.Docs[0].Body.(type) {
	case *ast.MappingNode:
		values = n.Values
	case *ast.MappingValueNode:
		values = []*ast.MappingValueNode{n}
	default:
		return nil, &Error{File: d.name, Line: 1, Col: 1, Msg: `must be an object of paths and values, such as {"routing.params.queue-depth": 0.3}`}
	}
	for _, v := range values {
		path := v.Key.GetToken().Value
		at := v.Key.GetToken().Position
		if _, nested := v.Value.(ast.MapNode); nested {
			return nil, &Error{d.name, at.Line, at.Column, fmt.Sprintf("%s has an object; give each value its own path, such as %s.NAME", path, path)}
		}
		var value any
		if err := yaml.NodeToValue(v.Value, &value); err != nil {
			return nil, located(d.name, err, nil)
		}
		text, err := json.Marshal(value)
		if err != nil {
			return nil, &Error{d.name, at.Line, at.Column, fmt.Sprintf("%s: %v", path, err)}
		}
		sets = append(sets, path+"="+string(text))
	}
	return sets, nil
}
