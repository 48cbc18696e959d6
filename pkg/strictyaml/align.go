package strictyaml

import (
	"slices"
	"strconv"
	"unicode/utf16"
)

// charSource is the origin of one character of a text: width characters of the
// file at a position. The origin of blanks is unknown; their width is 0.
type charSource struct {
	position
	width int
}

// align returns the source of each character of a text that begins at begin in
// the file, with quote unless that is 0. Folding changes only blanks and line
// ends, so all other characters keep their order. It returns false if the file
// has a different text there.
func (d *Doc) align(text []rune, begin position, quote rune) ([]charSource, bool) {
	at := begin
	if quote != 0 {
		if r, _ := d.charAt(at); r != quote {
			return nil, false
		}
		at.col++
	}
	sources := make([]charSource, len(text))
	for i := 0; ; {
		if isAllBlank(text[i:]) {
			return sources, true
		}
		r, ok := d.charAt(at)
		switch {
		case !ok && at.line >= len(d.lines):
			return nil, false
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
			return nil, false
		}
		sources[i] = charSource{at, width}
		i++
		at.col += width
	}
}

// locate returns the position of text[i]. A blank has one if it is next to the
// same characters in the file as in the text. The end of the text is the position
// after its last character.
func (d *Doc) locate(text []rune, sources []charSource, i int) (position, bool) {
	if i < len(text) && sources[i].width > 0 {
		return sources[i].position, true
	}
	for before := i - 1; before >= 0; before-- {
		if s := sources[before]; s.width > 0 {
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
		if s := sources[after]; s.width > 0 {
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
