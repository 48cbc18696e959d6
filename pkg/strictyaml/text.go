package strictyaml

import (
	"fmt"
	"slices"
	"strconv"
	"unicode/utf16"

	"github.com/goccy/go-yaml/ast"
)

// TextErrorf returns an error like Errorf about line and col, from 1 and in characters, of the
// decoded text at path. Its position is that of the character in the file, also in block, folded
// and multi-line texts and after escapes; the end of a text is the position after its last
// character. Where the file has no such character (beyond the text, on an empty line, in folded
// blanks), the error has the position where the text begins, and its message has line and column.
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

// textPosition returns the position in the file of line and col of the text in node or else, with
// false, where the text begins (below the header of a block) if that is known.
func (d *Doc) textPosition(node ast.Node, line, col int) (position, bool) {
	var begin position
	var text []rune
	var quote rune // that begins the text, 0 if there is none
	switch n := untagged(node).(type) {
	case *ast.LiteralNode:
		begin, text = position{n.Start.Position.Line + 1, 1}, []rune(n.Value.Value)
	case ast.ScalarNode:
		t := n.GetToken()
		begin, text, quote = d.positionOf(t), []rune(t.Value), quoteOf(t)
	}
	if begin.line == 0 {
		return begin, false
	}
	sources := d.align(text, begin, quote)
	if i, ok := textIndex(text, line, col); ok && sources != nil {
		if at, ok := d.locate(text, sources, i); ok {
			return at, true
		}
	}
	if i := slices.IndexFunc(sources, charSource.isKnown); i >= 0 {
		begin = sources[i].position
	}
	return begin, false
}

// textIndex returns the index in text of a line and column, including the line's end.
func textIndex(text []rune, line, col int) (int, bool) {
	lines := splitLines(string(text))
	if line < 1 || line > len(lines) || col < 1 || col > len(lines[line-1])+1 {
		return 0, false
	}
	i := col - 1
	for _, before := range lines[:line-1] {
		i += len(before) + 1
	}
	return i, true
}

// charSource is the origin of one character of a text: width characters of the
// file at a position. The origin of blanks is unknown; their width is 0.
type charSource struct {
	position
	width int
}

func (s charSource) isKnown() bool { return s.width > 0 }

// align returns the source of each character of a text that begins at begin in the file, with quote
// unless that is 0. Folding changes only blanks and line ends, so all other characters keep their
// order. It returns nil if the file has a different text there.
func (d *Doc) align(text []rune, begin position, quote rune) []charSource {
	at := begin
	if quote != 0 {
		if r, _ := d.charAt(at); r != quote {
			return nil
		}
		at.col++
	}
	sources := make([]charSource, len(text))
	for i := 0; !isAllBlank(text[i:]); {
		r, ok := d.charAt(at)
		switch {
		case !ok && at.line >= len(d.lines):
			return nil
		case !ok:
			at = position{at.line + 1, 1}
			continue
		case isBlank(r):
			at.col++
			continue
		}
		width := 1
		switch {
		case r == '\\' && quote == '"':
			r, width = unescape(d.lines[at.line-1][at.col:])
		case r == quote && quote == '\'':
			width = 2 // '' is an escaped quote
		}
		if width == 1 && r == '\\' && quote == '"' { // an escaped line end
			at.col++
			continue
		}
		for i < len(text)-1 && isBlank(text[i]) && text[i] != r {
			i++
		}
		if text[i] != r {
			return nil
		}
		sources[i] = charSource{at, width}
		i++
		at.col += width
	}
	return sources
}

// locate returns the position of text[i]. A blank has one if it is next to the same characters in
// the file as in the text. The end of the text is the position after its last character.
func (d *Doc) locate(text []rune, sources []charSource, i int) (position, bool) {
	if i < len(text) && sources[i].isKnown() {
		return sources[i].position, true
	}
	for before := i - 1; before >= 0; before-- {
		if s := sources[before]; s.isKnown() {
			after := position{s.line, s.col + s.width}
			if isAllBlank(text[i:]) && slices.Contains(text[before+1:i], '\n') {
				return after, true
			}
			at := position{s.line, after.col + i - before - 1}
			if d.isBlankBetween(after, at.col) {
				return at, true
			}
			break
		}
		if text[before] == '\n' && !isAllBlank(text[i:]) {
			break
		}
	}
	for after := i + 1; after < len(text) && text[i] != '\n' && text[after-1] != '\n'; after++ {
		if s := sources[after]; s.isKnown() {
			at := position{s.line, s.col - (after - i)}
			return at, at.col >= 1 && d.isBlankBetween(at, s.col)
		}
	}
	return position{}, false
}

// isBlankBetween reports whether the file has only blanks from a position up to a column.
func (d *Doc) isBlankBetween(from position, to int) bool {
	line := d.lines[from.line-1]
	return to-1 <= len(line) && isAllBlank(line[from.col-1:to-1])
}

// charAt returns the character at a position and whether there is one.
func (d *Doc) charAt(at position) (rune, bool) {
	if at.line > len(d.lines) || at.col > len(d.lines[at.line-1]) {
		return 0, false
	}
	return d.lines[at.line-1][at.col-1], true
}

// simpleEscapes maps the character after a backslash in double quotes to the
// character it means (YAML 1.2.2 §5.7, a superset of JSON's).
var simpleEscapes = map[rune]rune{
	'0': 0, 'a': '\a', 'b': '\b', 't': '\t', '\t': '\t', 'n': '\n', 'v': '\v', 'f': '\f', 'r': '\r', 'e': 0x1b,
	' ': ' ', '"': '"', '/': '/', '\\': '\\', 'N': 0x85, '_': 0xa0, 'L': 0x2028, 'P': 0x2029,
}

// unescape returns the character that a backslash and rest begin with and the
// length of the escape; a backslash and 1 at the end of the line.
func unescape(rest []rune) (rune, int) {
	if len(rest) == 0 {
		return '\\', 1
	}
	if r, ok := simpleEscapes[rest[0]]; ok {
		return r, 2
	}
	digits := map[rune]int{'x': 2, 'u': 4, 'U': 8}[rest[0]]
	r, ok := parseHex(rest[1:], digits)
	if !ok {
		return -1, 1 // no valid escape
	}
	if utf16.IsSurrogate(r) && len(rest) > 7 && rest[5] == '\\' {
		low, _ := parseHex(rest[7:], 4)
		return utf16.DecodeRune(r, low), 12
	}
	return r, 2 + digits
}

func parseHex(text []rune, digits int) (rune, bool) {
	if digits == 0 || len(text) < digits {
		return 0, false
	}
	n, err := strconv.ParseUint(string(text[:digits]), 16, 31)
	return rune(n), err == nil
}

func isBlank(r rune) bool { return r == ' ' || r == '\t' || r == '\n' }

func isAllBlank(text []rune) bool {
	return !slices.ContainsFunc(text, func(r rune) bool { return !isBlank(r) })
}
