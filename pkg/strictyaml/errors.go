package strictyaml

import (
	"errors"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// Error is an error in a configuration file. Line and Col count from 1; 0 means
// that the position is unknown (an empty file, a value set on the command line).
type Error struct {
	File      string
	Line, Col int
	Msg       string
}

func (e *Error) Error() string {
	switch {
	case e.Line == 0:
		return fmt.Sprintf("%s: %s", e.File, e.Msg)
	case e.Col == 0:
		return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Msg)
	}
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Col, e.Msg)
}

// Errorf returns an error about the value at path ("clients[2].arrival.cv") with the position of
// that value, in the file or the setting that it comes from. If there is no such value, the error
// says so and has the position of the nearest parent.
func (d *Doc) Errorf(path, format string, args ...any) error {
	msg := fmt.Sprintf(format, args...)
	nodes, found := d.lookup(path)
	switch o := d.origins.of(nodes, found); {
	case o.set != nil:
		return o.set.Errorf("%s: %s", path, msg)
	case o.doc != nil:
		return o.doc.Errorf(o.within(path), "%s", msg)
	}
	e := &Error{File: d.name, Msg: path + ": " + msg}
	if !found {
		e.Msg = path + " is not in the file: " + msg
	}
	if found || len(nodes) > 1 {
		at := d.startOf(nodes[len(nodes)-1])
		e.Line, e.Col = at.line, at.col
	}
	return e
}

// Errorf returns an error about the value at path, as Doc.Errorf does.
type Errorf func(path, format string, args ...any) error

// Between returns a function that returns an error about the value at a path, which begins with at,
// unless it is between the limits.
func Between[T int | int64 | float64](errorf Errorf, at string) func(path string, value, least, largest T) error {
	return func(path string, value, least, largest T) error {
		if value >= least && value <= largest {
			return nil
		}
		return errorf(at+path, "must be between %v and %v, is %v", least, largest, value)
	}
}

// convertError turns an error of the YAML library into an *Error.
func (d *Doc) convertError(err error) error {
	var ye yaml.Error
	if !errors.As(err, &ye) {
		return &Error{File: d.name, Msg: err.Error()}
	}
	t := ye.GetToken()
	e := d.errorAt(t, ye.GetMessage())
	var mistyped *yaml.TypeError
	var overflow *yaml.OverflowError
	var unexpected *yaml.UnexpectedNodeTypeError
	switch {
	case errors.As(err, &unexpected):
		e.Msg = keyOf(t) + fmt.Sprintf("must be %s, is %s", nodeName(unexpected.Expected), nodeName(unexpected.Actual))
	case errors.As(err, &mistyped):
		e.Msg = keyOf(t) + fmt.Sprintf("must be %s, is %q", typeName(mistyped.DstType), t.Value)
	case errors.As(err, &overflow):
		e.Msg = keyOf(t) + fmt.Sprintf("must be %s of at most 64 bits, is %s", typeName(overflow.DstType), t.Value)
	}
	return e
}

// nodeName describes a kind of value.
func nodeName(t ast.NodeType) string {
	switch t {
	case ast.MappingType, ast.MappingValueType:
		return "fields with values (key: value)"
	case ast.SequenceType:
		return "a list ([a, b])"
	case ast.StringType, ast.LiteralType:
		return "text"
	case ast.IntegerType, ast.FloatType, ast.InfinityType, ast.NanType:
		return "a number"
	case ast.BoolType:
		return "true or false"
	}
	return strings.ToLower(t.String())
}

// keyOf returns the key of the value t and a space, "" if t has no key.
func keyOf(t *token.Token) string {
	if t.Prev != nil && t.Prev.Type == token.MappingValueType && t.Prev.Prev != nil {
		return t.Prev.Prev.Value + " "
	}
	return ""
}

// recoverToError turns a panic into an error: the YAML library panics on some malformed documents.
func recoverToError(name string, err *error) {
	if r := recover(); r != nil {
		*err = &Error{File: name, Msg: fmt.Sprintf("cannot be read as YAML or JSON: %v", r)}
	}
}

// position is a line and column, from 1, in a file or in a text, 0 if unknown; columns
// count characters, not bytes.
type position struct{ line, col int }

// positionOf returns the position of a token. The YAML library's column is wrong after tabs and for
// plain values with trailing blanks, so the token is searched for in its line.
func (d *Doc) positionOf(t *token.Token) position {
	if t == nil || t.Position == nil {
		return position{}
	}
	reported := position{t.Position.Line, t.Position.Column}
	outside := reported.line < 1 || reported.line > len(d.lines)
	if t.Type == token.ImplicitNullType || t.Type == token.InvalidType || t.Value == "" || outside {
		return reported
	}
	value, line := []rune(t.Value), d.lines[reported.line-1]
	for n := range line {
		col := max(reported.col, 1) + n
		if col > len(line) { // then backward from the reported column
			col = len(line) - n
		}
		at := position{reported.line, col}
		if !isBlank(line[col-1]) && d.align(value, at, quoteOf(t)) != nil {
			return at
		}
	}
	return reported
}

// startOf returns the position where a value begins.
func (d *Doc) startOf(node ast.Node) position {
	switch n := node.(type) {
	case *ast.MappingNode:
		if !n.IsFlowStyle && len(n.Values) > 0 { // the library has the first colon
			return d.positionOf(n.Values[0].Key.GetToken())
		}
	case *ast.MappingValueNode:
		return d.positionOf(n.Key.GetToken())
	}
	return d.positionOf(node.GetToken())
}

// errorAt returns an error with the position of a token.
func (d *Doc) errorAt(t *token.Token, msg string) *Error {
	at := d.positionOf(t)
	return &Error{d.name, at.line, at.col, msg}
}

// quoteOf returns the quote that a token begins with, 0 if it has none.
func quoteOf(t *token.Token) rune {
	switch t.Type {
	case token.DoubleQuoteType:
		return '"'
	case token.SingleQuoteType:
		return '\''
	}
	return 0
}

// splitLines returns the lines of text, which end with "\n", as characters.
func splitLines(text string) [][]rune {
	parts := strings.Split(text, "\n")
	lines := make([][]rune, len(parts))
	for i, part := range parts {
		lines[i] = []rune(part)
	}
	return lines
}
