package strictyaml

import (
	"fmt"
	"math"
	"reflect"

	"github.com/goccy/go-yaml/ast"
)

// scalarFunc is called for a scalar of a document with the slot that holds it and
// the Go type it is decoded into.
type scalarFunc func(slot *ast.Node, t reflect.Type) error

// walkScalars calls f for each scalar at or below slot, in order, until f returns
// an error; t is the type that slot is decoded into.
func (d *Doc) walkScalars(slot *ast.Node, t reflect.Type, f scalarFunc) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch n := (*slot).(type) {
	case *ast.AnchorNode:
		return d.walkScalars(&n.Value, t, f)
	case *ast.TagNode:
		return d.walkScalars(&n.Value, t, f)
	case *ast.AliasNode:
		a := d.anchorOf(n)
		if a == nil {
			return d.errorAt(n.GetToken(), "*"+n.Value.GetToken().Value+" is no anchor that ends before it")
		}
		return d.walkScalars(&a.Value, t, f)
	case *ast.MappingNode:
		for _, v := range n.Values {
			if err := d.walkEntry(v, t, f); err != nil {
				return err
			}
		}
	case *ast.MappingValueNode:
		return d.walkEntry(n, t, f)
	case *ast.SequenceNode:
		return d.walkElements(n, t, f)
	case ast.ScalarNode:
		return f(slot, t)
	}
	return nil
}

// walkEntry is walkScalars for one key and its value.
func (d *Doc) walkEntry(v *ast.MappingValueNode, t reflect.Type, f scalarFunc) error {
	key := v.Key.GetToken().Value
	switch {
	case v.Key.IsMergeKey(): // the entries of another mapping
		return d.walkScalars(&v.Value, t, f)
	case t.Kind() == reflect.Map:
		return d.walkScalars(&v.Value, t.Elem(), f)
	case t.Kind() == reflect.Interface:
		return d.walkScalars(&v.Value, t, f)
	case t.Kind() == reflect.Struct:
		for field := range fields(t) {
			if field.name == key {
				return d.walkScalars(&v.Value, t.FieldByIndex(field.index).Type, f)
			}
		}
	}
	return nil
}

// walkElements is walkScalars for a list.
func (d *Doc) walkElements(n *ast.SequenceNode, t reflect.Type, f scalarFunc) error {
	switch t.Kind() {
	case reflect.Slice:
		t = t.Elem()
	case reflect.Interface: // so are the elements
	default:
		return nil
	}
	for i := range n.Values {
		_, null := n.Values[i].(*ast.NullNode)
		if null && t.Kind() != reflect.Pointer && t.Kind() != reflect.Interface {
			return d.errorAt(n.Values[i].GetToken(), "null is not allowed in this list")
		}
		if err := d.walkScalars(&n.Values[i], t, f); err != nil {
			return err
		}
	}
	return nil
}

// checkNumbers returns an error for the first number with a fraction, or beyond
// 64 bits, where t has an integer: the YAML library would truncate it silently.
// It also rejects numbers that are not finite.
func (d *Doc) checkNumbers(t reflect.Type) error {
	return d.walkScalars(&d.file.Docs[0].Body, t, func(slot *ast.Node, t reflect.Type) error {
		finite := true
		switch n := (*slot).(type) {
		case *ast.InfinityNode, *ast.NanNode:
			finite = false
		case *ast.FloatNode:
			finite = !math.IsInf(n.Value, 0)
			if isInteger(t.Kind()) && (n.Value != math.Trunc(n.Value) || math.Abs(n.Value) > 1<<53) {
				return d.errorAt(n.GetToken(), "must be an integer, is "+n.GetToken().Value)
			}
		}
		if !finite {
			return d.errorAt((*slot).GetToken(), fmt.Sprintf("must be a finite number, is %s", (*slot).GetToken().Value))
		}
		return nil
	})
}

func isInteger(k reflect.Kind) bool { return reflect.Int <= k && k <= reflect.Uint64 }
