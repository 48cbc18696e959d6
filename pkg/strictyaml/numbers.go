package strictyaml

import (
	"fmt"
	"reflect"
	"regexp"
	"strconv"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// decimal matches the numbers of YAML 1.2 and JSON. The YAML library reads numbers
// with an exponent and no point, and numbers beyond 64 bits, as strings.
var decimal = regexp.MustCompile(`^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`)

// coerceScalars changes scalars of a document to suit t, until restore is called:
// in a value of type any, numbers become float64, also those that the YAML library
// reads as strings; in a string, they keep their spelling, which the library may
// change (1.50, 007). With keepIntegers, integers stay integers.
func (d *Doc) coerceScalars(t reflect.Type, keepIntegers bool) (restore func()) {
	var undo []func()
	// The callback returns no error, and checkNumbers reports those of walk.
	_ = d.walk(&d.body, t, func(slot *ast.Node, t reflect.Type) error {
		old := *slot
		isString := t.Kind() == reflect.String && !hasOwnUnmarshaler(t)
		if tag, ok := old.(*ast.TagNode); ok && tag.Start.Value != string(token.IntegerTag) {
			return nil // the tag decides
		}
		switch n := untagged(old).(type) {
		case *ast.StringNode:
			plain := n.Token.Type == token.StringType && old == ast.Node(n) && !hasTag(n.Token)
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
		if *slot != old {
			undo = append(undo, func() { *slot = old })
		}
		return nil
	})
	return func() {
		for _, f := range undo {
			f()
		}
	}
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
