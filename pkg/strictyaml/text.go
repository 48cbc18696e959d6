package strictyaml

import (
	"fmt"
	"slices"

	"github.com/goccy/go-yaml/ast"
)

// TextErrorf makes an error like Errorf about a place within the text at path:
// line and col, from 1 and in characters, of the text as a program has it. The
// error is placed at the character of the file that this one comes from, also in
// block, folded and many-line texts and behind escapes; the end of a text is
// the place behind its last character. Where there is no such place (beyond the
// text, on an empty line, in blanks that the file has otherwise), the error is
// placed at the text's beginning, and its message tells the place within.
func (d *Doc) TextErrorf(path string, line, col int, format string, args ...any) error {
	err, ok := d.Errorf(path, format, args...).(*Error)
	node := d.find(path)
	if !ok || node == nil {
		return err
	}
	at, exact := d.within(node, line, col)
	if at.line > 0 {
		err.Line, err.Col = at.line, at.col
	}
	if !exact {
		err.Msg += fmt.Sprintf(" (line %d, column %d of the text)", line, col)
	}
	return err
}

// within returns where line and col of the text that node holds stand in the
// file, or else, and false, where the text begins if that is known.
func (d *Doc) within(node ast.Node, line, col int) (place, bool) {
	begin, text, quote, ok := d.textOf(node)
	if !ok {
		return place{}, false
	}
	sources, ok := d.follow(text, begin, quote)
	if !ok {
		return begin, false
	}
	if i, ok := index(text, line, col); ok {
		if at, ok := d.resolve(text, sources, i); ok {
			return at, true
		}
	}
	for _, s := range sources {
		if s.width > 0 {
			return s.place, false
		}
	}
	return begin, false
}

// textOf returns where the text of a node begins (below the header of a block),
// the text, and the quote that it begins with, 0 if none.
func (d *Doc) textOf(node ast.Node) (begin place, text []rune, quote rune, ok bool) {
	switch n := node.(type) {
	case *ast.AnchorNode:
		return d.textOf(n.Value)
	case *ast.TagNode:
		return d.textOf(n.Value)
	case *ast.AliasNode:
		if a := d.anchorOf(n); a != nil {
			return d.textOf(a.Value)
		}
	case *ast.LiteralNode:
		return place{n.Start.Position.Line + 1, 1}, []rune(n.Value.Value), 0, true
	case ast.ScalarNode:
		t := n.GetToken()
		begin, ok = d.at(t)
		return begin, []rune(t.Value), quoteOf(t), ok
	}
	return place{}, nil, 0, false
}

// index returns the index in text of a line and column, that of the line's end
// included.
func index(text []rune, line, col int) (int, bool) {
	begin := 0
	for ; line > 1; line-- {
		end := slices.Index(text[begin:], '\n')
		if end < 0 {
			return 0, false
		}
		begin += end + 1
	}
	end := slices.Index(text[begin:], '\n')
	if end < 0 {
		end = len(text) - begin
	}
	return begin + col - 1, line == 1 && 1 <= col && col <= end+1
}
