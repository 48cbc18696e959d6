package config

import (
	"fmt"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// TextErrorf makes an error like Errorf about a place within the text at path:
// line and col, from 1, of the text itself. Where the place in the file cannot be
// told (a folded text, one with escapes before it), it is that of the text, and
// the message says the place within.
func (d *Doc) TextErrorf(path string, line, col int, format string, args ...any) error {
	err, ok := d.Errorf(path, format, args...).(*Error)
	node := d.find(path)
	if !ok || node == nil {
		return err
	}
	at, exact := d.within(node, line, col)
	if exact {
		err.Line, err.Col = at.line, at.col
	} else {
		err.Msg = fmt.Sprintf("%s (line %d, column %d of the text)", err.Msg, line, col)
	}
	return err
}

type place struct{ line, col int }

// within returns where line and col of a text stand in the file.
func (d *Doc) within(node ast.Node, line, col int) (place, bool) {
	switch n := node.(type) {
	case *ast.AnchorNode:
		return d.within(n.Value, line, col)
	case *ast.TagNode:
		return d.within(n.Value, line, col)
	case *ast.AliasNode:
		return d.within(d.anchor(n.Value.GetToken().Value), line, col)
	case *ast.LiteralNode:
		return d.withinBlock(n, line, col)
	}
	start := node.GetToken().Position
	if start == nil || line != 1 || start.Line > len(d.lines) {
		return place{}, false
	}
	source := []rune(d.lines[start.Line-1])
	begin := start.Column - 1
	if begin < 0 || begin >= len(source) {
		return place{}, false
	}
	quote := source[begin]
	if quote == '"' || quote == '\'' {
		begin++
	}
	at := begin + col - 1
	if at > len(source) {
		return place{}, false
	}
	passed := string(source[begin:at])
	if quote == '"' && strings.Contains(passed, `\`) || quote == '\'' && strings.Contains(passed, "''") {
		return place{}, false
	}
	return place{start.Line, at + 1}, true
}

// withinBlock is within for a literal block, whose lines stand as they are
// behind its indentation.
func (d *Doc) withinBlock(n *ast.LiteralNode, line, col int) (place, bool) {
	head := n.Start.Position
	if head == nil || !strings.HasPrefix(n.Start.Value, "|") {
		return place{}, false
	}
	at := head.Line + line // the text begins on the line below
	if at > len(d.lines) {
		return place{}, false
	}
	indent := 0
	for _, text := range d.lines[head.Line:] { // that of the first line with anything on it
		if strings.TrimSpace(text) != "" {
			indent = len(text) - len(strings.TrimLeft(text, " "))
			break
		}
	}
	return place{at, indent + col}, true
}
