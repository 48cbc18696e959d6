package strictyaml

import (
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// place is a place in a file or in a text, both from 1; columns count
// characters, not bytes.
type place struct{ line, col int }

// at returns the place of a token. That of the YAML library is off by the blanks
// behind a plain value and by the tabs before any, so the token is looked for in
// its line.
func (d *Doc) at(t *token.Token) (place, bool) {
	if t == nil || t.Position == nil {
		return place{}, false
	}
	told := place{t.Position.Line, t.Position.Column}
	if t.Type == token.ImplicitNullType || t.Type == token.InvalidType || t.Value == "" || told.line < 1 || told.line > len(d.lines) {
		return told, true
	}
	value, line := []rune(t.Value), d.lines[told.line-1]
	fits := func(col int) bool {
		if blank(line[col-1]) {
			return false
		}
		_, ok := d.follow(value, place{told.line, col}, quoteOf(t))
		return ok
	}
	for col := max(told.col, 1); col <= len(line); col++ {
		if fits(col) {
			return place{told.line, col}, true
		}
	}
	for col := min(told.col-1, len(line)); col >= 1; col-- {
		if fits(col) {
			return place{told.line, col}, true
		}
	}
	return told, true
}

// begin returns the place where a value begins.
func (d *Doc) begin(node ast.Node) (place, bool) {
	switch n := node.(type) {
	case *ast.MappingNode:
		if !n.IsFlowStyle && len(n.Values) > 0 { // the library's is that of the first colon
			return d.at(n.Values[0].Key.GetToken())
		}
	case *ast.MappingValueNode:
		return d.at(n.Key.GetToken())
	}
	return d.at(node.GetToken())
}

// fault is an error at the place of a token.
func (d *Doc) fault(t *token.Token, msg string) *Error {
	e := &Error{File: d.name, Msg: msg}
	if at, ok := d.at(t); ok {
		e.Line, e.Col = at.line, at.col
	}
	return e
}

// quoteOf returns the quote that a token begins with, 0 if none.
func quoteOf(t *token.Token) rune {
	switch t.Type {
	case token.DoubleQuoteType:
		return '"'
	case token.SingleQuoteType:
		return '\''
	}
	return 0
}

// splitLines returns the lines of text, whose ends are all "\n", in characters.
func splitLines(text string) [][]rune {
	parts := strings.Split(text, "\n")
	lines := make([][]rune, len(parts))
	for i, part := range parts {
		lines[i] = []rune(part)
	}
	return lines
}
