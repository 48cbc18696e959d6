package strictyaml

import (
	"fmt"
	"math"
	"reflect"

	"github.com/goccy/go-yaml/ast"
)

// visit is called for a scalar of a document: where it hangs, and the type of
// what takes it in.
type visit func(slot *ast.Node, t reflect.Type) error

// scalars calls f for each scalar at or below slot, in order, until one is at
// fault; t is the type of what takes in all that slot holds.
func (d *Doc) scalars(slot *ast.Node, t reflect.Type, f visit) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch n := (*slot).(type) {
	case *ast.AnchorNode:
		return d.scalars(&n.Value, t, f)
	case *ast.TagNode:
		return d.scalars(&n.Value, t, f)
	case *ast.AliasNode:
		a := d.anchorOf(n)
		if a == nil {
			return d.fault(n.GetToken(), "*"+n.Value.GetToken().Value+" is nothing that ends before it")
		}
		return d.scalars(&a.Value, t, f)
	case *ast.MappingNode:
		for _, v := range n.Values {
			if err := d.entry(v, t, f); err != nil {
				return err
			}
		}
	case *ast.MappingValueNode:
		return d.entry(n, t, f)
	case *ast.SequenceNode:
		return d.elements(n, t, f)
	case ast.ScalarNode:
		return f(slot, t)
	}
	return nil
}

// entry is scalars for one key and its value.
func (d *Doc) entry(v *ast.MappingValueNode, t reflect.Type, f visit) error {
	key := v.Key.GetToken().Value
	switch {
	case v.Key.IsMergeKey(): // the entries of another mapping
		return d.scalars(&v.Value, t, f)
	case t.Kind() == reflect.Map:
		return d.scalars(&v.Value, t.Elem(), f)
	case t.Kind() == reflect.Interface:
		return d.scalars(&v.Value, t, f)
	case t.Kind() == reflect.Struct:
		for field := range fields(t) {
			if field.name == key {
				return d.scalars(&v.Value, t.FieldByIndex(field.index).Type, f)
			}
		}
	}
	return nil
}

// elements is scalars for a list.
func (d *Doc) elements(n *ast.SequenceNode, t reflect.Type, f visit) error {
	switch t.Kind() {
	case reflect.Slice:
		t = t.Elem()
	case reflect.Interface: // so are the elements
	default:
		return nil
	}
	for i := range n.Values {
		if _, null := n.Values[i].(*ast.NullNode); null && t.Kind() != reflect.Pointer && t.Kind() != reflect.Interface {
			return d.fault(n.Values[i].GetToken(), "a list has no room for null")
		}
		if err := d.scalars(&n.Values[i], t, f); err != nil {
			return err
		}
	}
	return nil
}

// checkNumbers reports the first number with a fraction, or beyond 64 bits, that
// stands where t wants a whole number: the YAML library would cut it silently;
// and the first one that is not finite, which no file of ours needs.
func (d *Doc) checkNumbers(t reflect.Type) error {
	return d.scalars(&d.file.Docs[0].Body, t, func(slot *ast.Node, t reflect.Type) error {
		finite := true
		switch n := (*slot).(type) {
		case *ast.InfinityNode, *ast.NanNode:
			finite = false
		case *ast.FloatNode:
			finite = !math.IsInf(n.Value, 0)
			if isWhole(t.Kind()) && (n.Value != math.Trunc(n.Value) || math.Abs(n.Value) > 1<<53) {
				return d.fault(n.GetToken(), "must be a whole number, is "+n.GetToken().Value)
			}
		}
		if !finite {
			return d.fault((*slot).GetToken(), fmt.Sprintf("must be a finite number, is %s", (*slot).GetToken().Value))
		}
		return nil
	})
}

func isWhole(k reflect.Kind) bool { return reflect.Int <= k && k <= reflect.Uint64 }
