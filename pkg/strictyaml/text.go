package strictyaml

import (
	"fmt"
	"slices"

	"github.com/goccy/go-yaml/ast"
)

// TextErrorf returns an error like Errorf about line and col, from 1 and in
// characters, of the decoded text at path. Its position is that of the character
// in the file, also in block, folded and multi-line texts and after escapes; the
// end of a text is the position after its last character. Where the file has no
// such character (beyond the text, on an empty line, in folded blanks), the error
// has the position where the text begins, and its message has line and column.
func (d *Doc) TextErrorf(path string, line, col int, format string, args ...any) error {
	nodes, found := d.lookup(path)
	if o := d.origins.of(nodes, found); o.doc != nil {
		return o.doc.TextErrorf(o.within(path), line, col, format, args...)
	}
	node := nodes[len(nodes)-1]
	err, ok := d.Errorf(path, format, args...).(*Error)
	if !ok || !found {
		return err
	}
	at, exact := d.textPosition(node, line, col)
	if at.line > 0 {
		err.Line, err.Col = at.line, at.col
	}
	if !exact {
		err.Msg += fmt.Sprintf(" (line %d, column %d of the text)", line, col)
	}
	return err
}

// textPosition returns the position in the file of line and col of the text in
// node or else, with false, where the text begins if that is known.
func (d *Doc) textPosition(node ast.Node, line, col int) (position, bool) {
	begin, text, quote, ok := d.textOf(node)
	if !ok {
		return position{}, false
	}
	sources, ok := d.align(text, begin, quote)
	if !ok {
		return begin, false
	}
	if i, ok := textIndex(text, line, col); ok {
		if at, ok := d.locate(text, sources, i); ok {
			return at, true
		}
	}
	for _, s := range sources {
		if s.width > 0 {
			return s.position, false
		}
	}
	return begin, false
}

// textOf returns where the text of a node begins (below the header of a block),
// the text, and its opening quote, 0 if it has none.
func (d *Doc) textOf(node ast.Node) (begin position, text []rune, quote rune, ok bool) {
	switch n := node.(type) {
	case *ast.TagNode:
		return d.textOf(n.Value)
	case *ast.LiteralNode:
		return position{n.Start.Position.Line + 1, 1}, []rune(n.Value.Value), 0, true
	case ast.ScalarNode:
		t := n.GetToken()
		begin, ok = d.positionOf(t)
		return begin, []rune(t.Value), quoteOf(t), ok
	}
	return position{}, nil, 0, false
}

// textIndex returns the index in text of a line and column, including the line's
// end.
func textIndex(text []rune, line, col int) (int, bool) {
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
