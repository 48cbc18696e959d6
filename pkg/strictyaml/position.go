package strictyaml

import (
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// position is a line and column, from 1, in a file or in a text; columns count
// characters, not bytes.
type position struct{ line, col int }

// positionOf returns the position of a token. The YAML library's column is wrong
// after tabs and for plain values with trailing blanks, so the token is searched
// for in its line.
func (d *Doc) positionOf(t *token.Token) (position, bool) {
	if t == nil || t.Position == nil {
		return position{}, false
	}
	reported := position{t.Position.Line, t.Position.Column}
	outside := reported.line < 1 || reported.line > len(d.lines)
	if t.Type == token.ImplicitNullType || t.Type == token.InvalidType || t.Value == "" || outside {
		return reported, true
	}
	value, line := []rune(t.Value), d.lines[reported.line-1]
	matches := func(col int) bool {
		if isBlank(line[col-1]) {
			return false
		}
		_, ok := d.align(value, position{reported.line, col}, quoteOf(t))
		return ok
	}
	for col := max(reported.col, 1); col <= len(line); col++ {
		if matches(col) {
			return position{reported.line, col}, true
		}
	}
	for col := min(reported.col-1, len(line)); col >= 1; col-- {
		if matches(col) {
			return position{reported.line, col}, true
		}
	}
	return reported, true
}

// startOf returns the position where a value begins.
func (d *Doc) startOf(node ast.Node) (position, bool) {
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
	e := &Error{File: d.name, Msg: msg}
	if at, ok := d.positionOf(t); ok {
		e.Line, e.Col = at.line, at.col
	}
	return e
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
