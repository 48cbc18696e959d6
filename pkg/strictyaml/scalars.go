package strictyaml

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"blis/pkg/registry"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// visitFunc is called for a value of a document with the slot that holds it and the
// Go type it is decoded into.
type visitFunc func(slot *ast.Node, t reflect.Type) error

// walk calls f for each value at or below slot, parents first and in order; t is the type that slot
// is decoded into. It ends with the first error: of f, or about an unknown field, an alias without
// an anchor, or a null in a list that cannot have one.
func (d *Doc) walk(slot *ast.Node, t reflect.Type, f visitFunc) error {
	t = base(t)
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

// adviser is implemented by structs that say what to write instead of some unknown fields; "" of others.
type adviser interface{ UnknownField(name string) string }

// walkEntry is walk for one key and its value.
func (d *Doc) walkEntry(v *ast.MappingValueNode, t reflect.Type, f visitFunc) error {
	switch {
	case v.Key.IsMergeKey(), t.Kind() == reflect.Interface: // the type of the values, too
	case t.Kind() == reflect.Map:
		t = t.Elem()
	case t.Kind() == reflect.Struct:
		key, fields := v.Key.GetToken(), fieldsOf(t)
		of := t
		if t = fields.types[key.Value]; t == nil {
			hint := registry.Hint(key.Value, fields.names)
			if hint == "" {
				hint = " (have " + strings.Join(slices.Sorted(slices.Values(fields.names)), ", ") + ")"
			}
			if a, ok := reflect.New(of).Interface().(adviser); ok && a.UnknownField(key.Value) != "" {
				hint = ": " + a.UnknownField(key.Value)
			}
			return d.errorAt(key, fmt.Sprintf("unknown field %q%s", key.Value, hint))
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

func isInteger(k reflect.Kind) bool { return reflect.Int <= k && k <= reflect.Uint64 }

// decimal matches the numbers of YAML 1.2 and JSON. The YAML library reads numbers
// with an exponent and no point, and numbers beyond 64 bits, as strings.
var decimal = regexp.MustCompile(`^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`)

// coerceScalars changes scalars of a document to suit t: in a value of type any, numbers become
// float64, also those that the YAML library reads as strings; in a string, they keep their
// spelling, which the library may change (1.50, 007). With keepIntegers, integers stay integers. It
// returns an error for an unknown field, a number that is not finite and, where t has an integer,
// one with a fraction or beyond 64 bits: the library would truncate it silently.
func (d *Doc) coerceScalars(t reflect.Type, keepIntegers bool) error {
	return d.walk(&d.body, t, func(slot *ast.Node, t reflect.Type) error {
		if tag, ok := (*slot).(*ast.TagNode); ok && tag.Start.Value != string(token.IntegerTag) {
			return nil // the tag decides
		}
		isString := t.Kind() == reflect.String && !hasOwnUnmarshaler(t)
		if err := d.checkOctal(untagged(*slot), isString); err != nil {
			return err
		}
		switch n := untagged(*slot).(type) {
		case *ast.StringNode:
			plain := n.Token.Type == token.StringType && *slot == ast.Node(n) && !hasTag(n.Token)
			if plain && acceptsAny(t) && decimal.MatchString(n.Value) {
				*slot = floatNode(n.Token, n.Value)
			}
		case *ast.IntegerNode:
			if acceptsAny(t) && !keepIntegers {
				*slot = floatNode(n.Token, fmt.Sprint(n.Value))
			} else if isString {
				*slot = ast.String(n.Token)
			}
		case *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
			if isString {
				*slot = ast.String(n.GetToken())
			}
		}
		return d.checkNumber(*slot, t)
	})
}

// leadingZero matches integers that YAML 1.1 reads as octal and people as decimal, or the other way around.
var leadingZero = regexp.MustCompile(`^[-+]?0[0-9_]*[0-9]$`)

// checkOctal returns an error if node is such an integer and not a text.
func (d *Doc) checkOctal(node ast.Node, isString bool) error {
	if scalar, ok := node.(ast.ScalarNode); !ok || isString || quoteOf(scalar.GetToken()) != 0 ||
		!leadingZero.MatchString(scalar.GetToken().Value) {
		return nil
	}
	text := node.GetToken().Value
	sign, digits := "", strings.TrimLeft(text, "+-")
	if text[0] == '-' {
		sign = "-"
	}
	digits = cmp.Or(strings.TrimLeft(digits, "0_"), "0")
	return d.errorAt(node.GetToken(), fmt.Sprintf(
		"%s has a leading zero, which can mean octal; write %s%s, or %q for text", text, sign, digits, text))
}

// checkNumber returns an error if node is a number that t cannot have.
func (d *Doc) checkNumber(node ast.Node, t reflect.Type) error {
	number := math.Inf(1)
	switch n := node.(type) {
	case *ast.FloatNode:
		number = n.Value
	case *ast.InfinityNode, *ast.NanNode:
	default:
		return nil
	}
	switch text := node.GetToken().Value; {
	case math.IsInf(number, 0):
		return d.errorAt(node.GetToken(), "must be a finite number, is "+text)
	case isInteger(t.Kind()) && (number != math.Trunc(number) || math.Abs(number) > 1<<53):
		return d.errorAt(node.GetToken(), "must be an integer, is "+text)
	}
	return nil
}

// floatNode returns a node for a number, infinite beyond the range of float64.
func floatNode(t *token.Token, text string) *ast.FloatNode {
	n := ast.Float(t)
	n.Value, _ = strconv.ParseFloat(text, 64)
	return n
}

// acceptsAny reports whether a value of type t can be decoded from scalars of any
// type. Structs can, by their own unmarshalers.
func acceptsAny(t reflect.Type) bool {
	return t.Kind() == reflect.Interface || t.Kind() == reflect.Struct
}

// hasTag reports whether a scalar has a type tag.
func hasTag(t *token.Token) bool { return t.Prev != nil && t.Prev.Type == token.TagType }
