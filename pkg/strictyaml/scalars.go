package strictyaml

import (
	"fmt"
	"math"
	"reflect"

	"github.com/goccy/go-yaml/ast"
)

// visitFunc is called for a value of a document with the slot that holds it and the
// Go type it is decoded into.
type visitFunc func(slot *ast.Node, t reflect.Type) error

// walk calls f for each value at or below slot, parents first and in order, until f
// returns an error; t is the type that slot is decoded into. It skips unknown
// fields.
func (d *Doc) walk(slot *ast.Node, t reflect.Type, f visitFunc) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if err := f(slot, t); err != nil {
		return err
	}
	switch n := (*slot).(type) {
	case *ast.TagNode:
		return d.walk(&n.Value, t, f)
	case *ast.AliasNode:
		return d.errorAt(n.GetToken(), "*"+n.Value.GetToken().Value+" is no anchor that ends before it")
	case *ast.SequenceNode:
		return d.walkElements(n, t, f)
	case *ast.MappingNode, *ast.MappingValueNode:
		for _, v := range entriesOf(n) {
			if err := d.walkEntry(v, t, f); err != nil {
				return err
			}
		}
	}
	return nil
}

// walkEntry is walk for one key and its value.
func (d *Doc) walkEntry(v *ast.MappingValueNode, t reflect.Type, f visitFunc) error {
	switch {
	case v.Key.IsMergeKey(), t.Kind() == reflect.Interface: // the type of the values, too
	case t.Kind() == reflect.Map:
		t = t.Elem()
	case t.Kind() == reflect.Struct:
		types, _ := fields(t)
		if t = types[v.Key.GetToken().Value]; t == nil {
			return nil
		}
	default:
		return nil
	}
	return d.walk(&v.Value, t, f)
}

// walkElements is walk for a list.
func (d *Doc) walkElements(n *ast.SequenceNode, t reflect.Type, f visitFunc) error {
	switch t.Kind() {
	case reflect.Slice:
		t = t.Elem()
	case reflect.Interface: // the type of the elements, too
	default:
		return nil
	}
	for i := range n.Values {
		_, null := n.Values[i].(*ast.NullNode)
		if null && t.Kind() != reflect.Pointer && t.Kind() != reflect.Interface {
			return d.errorAt(n.Values[i].GetToken(), "null is not allowed in this list")
		}
		if err := d.walk(&n.Values[i], t, f); err != nil {
			return err
		}
	}
	return nil
}

// checkNumbers returns an error for the first number with a fraction, or beyond
// 64 bits, where t has an integer: the YAML library would truncate it silently.
// It also rejects numbers that are not finite.
func (d *Doc) checkNumbers(t reflect.Type) error {
	return d.walk(&d.body, t, func(slot *ast.Node, t reflect.Type) error {
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
			return d.errorAt((*slot).GetToken(), fmt.Sprintf("must be a finite number, is %s",
				(*slot).GetToken().Value))
		}
		return nil
	})
}

func isInteger(k reflect.Kind) bool { return reflect.Int <= k && k <= reflect.Uint64 }
