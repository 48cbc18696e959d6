package strictyaml

import (
	"slices"
	"strconv"
	"unicode/utf16"
)

// source is what a character of a text comes from: width characters of the file
// at a place. Those of blanks are not known, their width is 0.
type source struct {
	place
	width int
}

// follow returns the source of each character of a text, which begins at begin,
// with quote if that is not 0. Folding changes nothing but blanks and ends of
// lines, so all other characters have theirs in the same order. It is false if
// the text does not stand there.
func (d *Doc) follow(text []rune, begin place, quote rune) ([]source, bool) {
	at := begin
	if quote != 0 {
		if r, _ := d.char(at); r != quote {
			return nil, false
		}
		at.col++
	}
	sources := make([]source, len(text))
	for i := 0; ; {
		if allBlank(text[i:]) {
			return sources, true
		}
		r, ok := d.char(at)
		switch {
		case !ok && at.line >= len(d.lines):
			return nil, false
		case !ok:
			at = place{at.line + 1, 1}
			continue
		case blank(r):
			at.col++
			continue
		}
		width := 1
		switch {
		case r == '\\' && quote == '"':
			r, width = escaped(d.lines[at.line-1][at.col:])
		case r == quote && quote == '\'':
			width = 2 // two of them stand for one
		}
		if width == 1 && r == '\\' && quote == '"' { // the line goes on below
			at.col++
			continue
		}
		for i < len(text)-1 && blank(text[i]) && text[i] != r {
			i++
		}
		if text[i] != r {
			return nil, false
		}
		sources[i] = source{at, width}
		i++
		at.col += width
	}
}

// resolve returns the place of text[i], given the sources of the others if it is
// a blank: one that stands beside them in the file as in the text. The place of
// the text's end is behind its last character.
func (d *Doc) resolve(text []rune, sources []source, i int) (place, bool) {
	if i < len(text) && sources[i].width > 0 {
		return sources[i].place, true
	}
	for before := i - 1; before >= 0; before-- {
		if s := sources[before]; s.width > 0 {
			behind := place{s.line, s.col + s.width}
			if allBlank(text[i:]) && slices.Contains(text[before+1:i], '\n') {
				return behind, true
			}
			at := place{s.line, behind.col + i - before - 1}
			if d.gap(behind, at.col) {
				return at, true
			}
			break
		}
		if text[before] == '\n' && !allBlank(text[i:]) {
			break
		}
	}
	for after := i + 1; after < len(text) && text[i] != '\n' && text[after-1] != '\n'; after++ {
		if s := sources[after]; s.width > 0 {
			at := place{s.line, s.col - (after - i)}
			return at, at.col >= 1 && d.gap(at, s.col)
		}
	}
	return place{}, false
}

// gap reports whether nothing but blanks stands from a place up to a column.
func (d *Doc) gap(from place, to int) bool {
	line := d.lines[from.line-1]
	return to-1 <= len(line) && allBlank(line[from.col-1:to-1])
}

// char returns the character at a place, if there is one.
func (d *Doc) char(at place) (rune, bool) {
	if at.line > len(d.lines) || at.col > len(d.lines[at.line-1]) {
		return 0, false
	}
	return d.lines[at.line-1][at.col-1], true
}

// simpleEscapes are what single characters behind a backslash stand for in
// double quotes (YAML 1.2.2 §5.7; JSON's are among them).
var simpleEscapes = map[rune]rune{
	'0': 0, 'a': '\a', 'b': '\b', 't': '\t', '\t': '\t', 'n': '\n', 'v': '\v', 'f': '\f', 'r': '\r', 'e': 0x1b,
	' ': ' ', '"': '"', '/': '/', '\\': '\\', 'N': 0x85, '_': 0xa0, 'L': 0x2028, 'P': 0x2029,
}

// escaped returns the character that a backslash and what follows it stand for,
// and their number; the backslash itself and 1 if it is at the end of its line.
func escaped(rest []rune) (rune, int) {
	if len(rest) == 0 {
		return '\\', 1
	}
	if r, ok := simpleEscapes[rest[0]]; ok {
		return r, 2
	}
	digits := map[rune]int{'x': 2, 'u': 4, 'U': 8}[rest[0]]
	r, ok := hexadecimal(rest[1:], digits)
	if !ok {
		return -1, 1 // stands for nothing
	}
	if utf16.IsSurrogate(r) && len(rest) > 7 && rest[5] == '\\' {
		low, _ := hexadecimal(rest[7:], 4)
		return utf16.DecodeRune(r, low), 12
	}
	return r, 2 + digits
}

func hexadecimal(text []rune, digits int) (rune, bool) {
	if digits == 0 || len(text) < digits {
		return 0, false
	}
	n, err := strconv.ParseUint(string(text[:digits]), 16, 31)
	return rune(n), err == nil
}

func blank(r rune) bool { return r == ' ' || r == '\t' || r == '\n' }

func allBlank(text []rune) bool {
	return !slices.ContainsFunc(text, func(r rune) bool { return !blank(r) })
}
