package strictyaml

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// parseValue parses a value that is decoded into a t, and checks it.
func parseValue(t reflect.Type, value string) (ast.Node, error) {
	doc, err := Parse("value", []byte(value))
	if t.Kind() == reflect.Pointer && err == nil && doc.body.Type() == ast.NullType {
		return doc.body, nil
	}
	t = base(t)
	if t.Kind() == reflect.String && !hasOwnUnmarshaler(t) {
		return parseText(doc, value)
	}
	if err == nil {
		err = doc.Decode(reflect.New(t).Interface())
	}
	if err != nil {
		msg := fmt.Sprintf("must be %s, is %q", typeName(t), value)
		if e, ok := err.(*Error); ok && hasParts(t) && strings.TrimSpace(e.Msg) != "" {
			msg += ": " + e.Msg
		}
		return nil, errors.New(msg)
	}
	return doc.body, nil
}

// parseText returns the text of a value: the content of quotes or else all of it,
// whether or not it is YAML. Null is empty; lists and mappings in brackets are
// errors. doc is the value as YAML, nil if it is none.
func parseText(doc *Doc, value string) (ast.Node, error) {
	text := strings.TrimSpace(value)
	isText := text != ""
	if doc != nil {
		switch n := doc.body.(type) {
		case *ast.StringNode:
			if quoteOf(n.Token) != 0 {
				text = n.Value
			}
		case *ast.NullNode:
			text = ""
		case *ast.SequenceNode:
			isText = !n.IsFlowStyle
		case *ast.MappingNode:
			isText = !n.IsFlowStyle
		}
	}
	if !isText {
		return nil, fmt.Errorf("must be text, is %q", value)
	}
	return textNode(text), nil
}
