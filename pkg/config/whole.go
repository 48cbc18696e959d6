package config

import (
	"fmt"
	"math"
	"reflect"

	"github.com/goccy/go-yaml/ast"
)

// checkWhole reports the first number with a fraction, or beyond 64 bits, that
// stands where t wants a whole number: the YAML library would cut it silently;
// and the first one that is not finite, which no file of ours needs.
func (d *Doc) checkWhole(node ast.Node, t reflect.Type) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch n := node.(type) {
	case *ast.AnchorNode:
		return d.checkWhole(n.Value, t)
	case *ast.TagNode:
		return d.checkWhole(n.Value, t)
	case *ast.AliasNode:
		return d.checkWhole(d.anchor(n.Value.GetToken().Value), t)
	case *ast.MappingNode:
		for _, v := range n.Values {
			if err := d.checkValue(v, t); err != nil {
				return err
			}
		}
	case *ast.MappingValueNode:
		return d.checkValue(n, t)
	case *ast.SequenceNode:
		if t.Kind() == reflect.Slice {
			for _, v := range n.Values {
				if _, null := v.(*ast.NullNode); null && t.Elem().Kind() != reflect.Pointer {
					at := v.GetToken().Position
					return &Error{File: d.name, Line: at.Line, Col: at.Column, Msg: "a list has no room for null"}
				}
				if err := d.checkWhole(v, t.Elem()); err != nil {
					return err
				}
			}
		}
	case *ast.InfinityNode, *ast.NanNode:
		at := n.GetToken().Position
		return &Error{File: d.name, Line: at.Line, Col: at.Column, Msg: fmt.Sprintf("must be a finite number, is %s", n.GetToken().Value)}
	case *ast.FloatNode:
		if isWhole(t.Kind()) && (n.Value != math.Trunc(n.Value) || math.Abs(n.Value) > 1<<53) {
			at := n.GetToken().Position
			return &Error{File: d.name, Line: at.Line, Col: at.Column, Msg: fmt.Sprintf("must be a whole number, is %s", n.GetToken().Value)}
		}
	}
	return nil
}

// checkValue is checkWhole for one key and its value.
func (d *Doc) checkValue(v *ast.MappingValueNode, t reflect.Type) error {
	switch t.Kind() {
	case reflect.Map:
		return d.checkWhole(v.Value, t.Elem())
	case reflect.Struct:
		key := v.Key.GetToken().Value
		if key == "<<" { // a merge: the fields of another mapping
			return d.checkWhole(v.Value, t)
		}
		for f := range fields(t) {
			if f.name == key {
				return d.checkWhole(v.Value, t.FieldByIndex(f.index).Type)
			}
		}
	}
	return nil
}

// anchor returns the value that an anchor names, nil if there is none.
func (d *Doc) anchor(name string) ast.Node {
	for _, node := range ast.Filter(ast.AnchorType, d.file.Docs[0].Body) {
		if a := node.(*ast.AnchorNode); a.Name.GetToken().Value == name {
			return a.Value
		}
	}
	return nil
}

func isWhole(k reflect.Kind) bool { return reflect.Int <= k && k <= reflect.Uint64 }
