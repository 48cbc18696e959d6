package strictyaml

import (
	"strings"
	"testing"
)

// TestPositionsInTexts: line and col are a position within the text at a.b; the error
// must point at the X in the file.
func TestPositionsInTexts(t *testing.T) {
	for _, c := range []struct {
		name, file string
		line, col  int
	}{
		{"plain", "a:\n  b: one X", 1, 5},
		{"plain, its first character", "a:\n  b: X one", 1, 1},
		{"trailing blanks", "a:\n  b: one X   \n", 1, 5},
		{"trailing blanks and a comment", "a:\n  b: one X   # X\n", 1, 5},
		{"on the line below", "a:\n  b:\n    one X", 1, 5},
		{"a tab before", "a:\n  b:\tone X", 1, 5},
		{"a tab within", "a:\n  b: \"one\t X\"", 1, 6},
		{"double quotes", "a:\n  b: \"one X\"", 1, 5},
		{"single quotes", "a: {b: 'one X'}", 1, 5},
		{"flow", "a: {b: one X, c: one X}", 1, 5},
		{"a list before", "a: {c: [one X, one], b: one X}", 1, 5},
		{"the same as its key", "{a: {b: 'b X'}}", 1, 3},
		{"JSON", "{\"a\": {\"b\": \"one X\"}}", 1, 5},
		{"JSON with tabs", "{\n\t\"a\": {\n\t\t\"b\":\t\"one X\"}}", 1, 5},
		{"JSON with tabs and a comma too many", "{\n\t\"a\": {\n\t\t\"b\":\t\"one X\",}}", 1, 5},
		{"JSON, CRLF", "{\r\n\t\"a\":\r\n{\"b\": \"one X\"}}\r\n", 1, 5},
		{"JSON, an escape after it", `{"a": {"b": "one X\"\n"}}`, 1, 5},
		{"JSON, escapes before", `{"a": {"b": "\"one\" \\ \u00e9\ud83d\ude00\/ X"}}`, 1, 13},
		{"JSON, lines", `{"a": {"b": "one\n  two\n\n X"}}`, 4, 2},
		{"CRLF", "a:\r\n  b: one X\r\n", 1, 5},
		{"CR", "a:\r  b: one X\r", 1, 5},
		{"a byte order mark", "\ufeffa: {b: one X}", 1, 5},
		{"letters of two bytes", "a:\n  b: \"é µ X\"", 1, 5},
		{"letters of two bytes before", "a: {é: ü, b: one X}", 1, 5},
		{"quotes in quotes", "a: {b: 'it''s one X'}", 1, 10},
		{"a quote in quotes", "a: {b: 'X''s'}", 1, 1},
		{"hexadecimal", `a: {b: "\x41\U0001F600\e\ X"}`, 1, 5},
		{"a number", "a: {b: 1X}", 1, 2},
		{"tag", "a: {b: !!str one X}", 1, 5},
		{"anchor and tag", "a: {b: &n !!str 'one X'}", 1, 5},
		{"alias", "a:\n  c: &n one X\n  b: *n", 1, 5},
		{"alias of the latter of two", "a:\n  c: &n X one\n  d: &n one X\n  b: *n\n  e: &n X", 1, 5},
		{"merged", "c: &n {b: one X}\na: {<<: *n}", 1, 5},
		{"block", "a:\n  b: |\n    one\n    two X", 2, 5},
		{"block, its first character", "a:\n  b: |\n    X\n", 1, 1},
		{"block, kept", "a:\n  b: |+\n    one\n    two X\n\n", 2, 5},
		{"block, CRLF", "a:\r\n  b: |\r\n    one\r\n    two X\r\n", 2, 5},
		{"block with a comment", "a:\n  b: |- # text | more\n    one\n      two X\nc: 1", 2, 7},
		{"block with trailing blanks in its header", "a:\n  b: |  \n    one\n    two X\n", 2, 5},
		{"block that begins with an empty line", "a:\n  b: |\n\n    two X\n", 2, 5},
		{"block that begins with blanks", "a:\n  b: |\n    \n    two X\n", 2, 5},
		{"block with an empty line", "a:\n  b: |\n    one\n\n    two X\n", 3, 5},
		{"block with its indentation", "a:\n  b: |2\n      one\n    two X\n", 2, 5},
		{"block with its indentation, chomped", "a:\n  b: |-1\n      one\n    two X\n", 2, 6},
		{"block, anchored", "a:\n  b: &n |\n    one\n    two X\n", 2, 5},
		{"block in a list", "a:\n  b: |\n   one\n   X\n  c:\n   - |\n     X", 2, 1},
		{"block of letters of two bytes", "a:\n  b: |\n    é µ X\n", 1, 5},
		{"block with what looks like a comment", "a:\n  b: |\n    # one\n    X\n", 2, 1},
		{"folded", "a:\n  b: >\n    one\n    two X", 1, 9},
		{"folded, with an empty line", "a:\n  b: >-\n    one\n\n    two X\n", 2, 5},
		{"folded, with a line that is not", "a:\n  b: >\n    one\n      X\n    two\n", 2, 3},
		{"plain lines", "a:\n  b: one\n    two X", 1, 9},
		{"plain lines, one empty", "a:\n  b: one\n\n    two X", 2, 5},
		{"lines in double quotes", "a:\n  b: \"one  \n    two X\"", 1, 9},
		{"lines in double quotes, CRLF", "a:\r\n  b: \"one\r\n    two X\"\r\n", 1, 9},
		{"lines in double quotes, continued", "a:\n  b: \"one\\\n    two X\"", 1, 8},
		{"lines in single quotes", "a:\n  b: 'one\n\n    it''s X'", 2, 6},
	} {
		doc, err := Parse("f", []byte(c.file))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		located := doc.TextErrorf("a.b", c.line, c.col, "wrong").(*Error)
		if charAtError(c.file, located) != "X" || located.Msg != "a.b: wrong" {
			t.Errorf("%s: the position is %v", c.name, located)
		}
	}
}

// charAtError returns the character of file at the position of an error, "" if
// there is none.
func charAtError(file string, e *Error) string {
	lines := strings.Split(strings.NewReplacer("\ufeff", "", "\r\n", "\n", "\r", "\n").Replace(file), "\n")
	if e.Line < 1 || e.Line > len(lines) {
		return ""
	}
	if line := []rune(lines[e.Line-1]); 1 <= e.Col && e.Col <= len(line) {
		return string(line[e.Col-1])
	}
	return ""
}

// TestPositionsOfValues: an error about a value has the position where it begins.
func TestPositionsOfValues(t *testing.T) {
	for _, c := range []struct{ file, path, want string }{
		{"a:\n  bc: 1\n  d: 2\n", "a", "f:2:3: a: wrong"},
		{"a:\n  'b' : 1\n", "a", "f:2:3: a: wrong"},
		{"a:\n  - b: 1\n  - 2\n", "a[0]", "f:2:5: a[0]: wrong"},
		{"a:\n  - 1\n  - 2  \n", "a[1]", "f:3:5: a[1]: wrong"},
		{"a:\n  - 1\n", "a", "f:2:3: a: wrong"},
		{"a: {b: 1}", "a", "f:1:4: a: wrong"},
		{"a: |  # text\n  b\n", "a", "f:1:4: a: wrong"},
		{"a: 'b'   \n", "a", "f:1:4: a: wrong"},
		{"a: {v1.5: {b: 1}}", "a.v1.5.b", "f:1:15: a.v1.5.b: wrong"},
		{"a: {v1.5: {b: 1}}", "a.v1.5.c", "f:1:11: a.v1.5.c is not in the file: wrong"},
		{"a: !!map {b: [1, 2]}", "a.b[1]", "f:1:18: a.b[1]: wrong"},
		{"a: &n {b: 1}\nc: *n\n", "c.b", "f:1:11: c.b: wrong"},
		{"c: *n\na: &n {b: 1}\n", "c.b", "f:1:4: c.b is not in the file: wrong"},
		{"a: &n {b: *n}\n", "a.b.b", "f:1:11: a.b.b is not in the file: wrong"},
		{"&n a: 1\n", "x", "f: x is not in the file: wrong"},
	} {
		doc, err := Parse("f", []byte(c.file))
		if err != nil {
			t.Errorf("%q: %v", c.file, err)
			continue
		}
		if err := doc.Errorf(c.path, "wrong"); err.Error() != c.want {
			t.Errorf("%q: %v, want %s", c.file, err, c.want)
		}
	}
}

// TestPositionsOfBlanks: blanks have a position if the file and the text have the same
// ones; so has the end of a text.
func TestPositionsOfBlanks(t *testing.T) {
	for _, c := range []struct {
		name, file string
		line, col  int
		want       string
	}{
		{"between", "b: one two", 1, 4, "f:1:7: b: wrong"},
		{"end", "b: one", 1, 4, "f:1:7: b: wrong"},
		{"end in quotes", `b: "one"`, 1, 4, "f:1:8: b: wrong"},
		{"end after an escape", `b: "one\""`, 1, 5, "f:1:10: b: wrong"},
		{"blanks at the end", `b: "one  "`, 1, 6, "f:1:10: b: wrong"},
		{"indentation", "b: |\n  if\n    one", 2, 2, "f:3:4: b: wrong"},
		{"a line's end", "b: |\n  if\n    one", 1, 3, "f:2:5: b: wrong"},
		{"below the last line", "b: |\n  if\n  one\n", 3, 1, "f:3:6: b: wrong"},
		{"between, escaped", `b: "one\ttwo"`, 1, 4, "f:1:8: b: wrong"},
		{"folded", "b: >\n  one\n  two", 1, 4, "f:2:6: b: wrong"},
		{"an empty line", "b: |\n  one\n\n  two", 2, 1, "f:2:3: b: wrong (line 2, column 1 of the text)"},
		{"blank text", `b: "  "`, 1, 2, "f:1:4: b: wrong (line 1, column 2 of the text)"},
		{"no text", `b: ""`, 1, 1, "f:1:4: b: wrong (line 1, column 1 of the text)"},
		{"beyond the line", "b: one two", 1, 9, "f:1:4: b: wrong (line 1, column 9 of the text)"},
		{"beyond the text", "b: |\n  one", 7, 1, "f:2:3: b: wrong (line 7, column 1 of the text)"},
		{"before the text", "b: one", 1, 0, "f:1:4: b: wrong (line 1, column 0 of the text)"},
		{"no line", "b: one", 0, 1, "f:1:4: b: wrong (line 0, column 1 of the text)"},
		{"a mapping", "b: {c: d}", 1, 1, "f:1:4: b: wrong (line 1, column 1 of the text)"},
		{"nothing", "b:\nc: 1", 1, 1, "f:1:"},
		{"no such path", "c: 1", 1, 1, "f: b is not in the file: wrong"},
	} {
		doc, err := Parse("f", []byte(c.file))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if err := doc.TextErrorf("b", c.line, c.col, "wrong"); err.Error() != c.want && (c.name != "nothing" ||
			!strings.HasPrefix(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
}

// FuzzTextErrorf: an exact position has the character that the text has there.
func FuzzTextErrorf(f *testing.F) {
	for _, text := range []string{
		"b: one two", `b: "one \"two\" \u00e9"`, "b: 'it''s'", "b: |\n  one\n   two\n",
		"b: >-\n  one\n  two\n\n    three\n",
		"b: one\n  two\n\n  three", "b: \"one\\\n  two\n  three\"", "{\n\t\"b\": \"one\\ntwo\",}",
		"c: &x one\r\nb: *x   ", "b: 0\n 00", "b: !!str |2+ # x\n   one\n\n",
	} {
		for _, at := range []int{0, 1, 4, 7} {
			f.Add(text, at)
		}
	}
	f.Fuzz(func(t *testing.T, file string, at int) {
		doc, err := Parse("f", []byte(file))
		var v struct {
			B string `yaml:"b"`
		}
		if err != nil || doc.Decode(&v) != nil || at < 0 {
			return
		}
		text := []rune(v.B)
		if at >= len(text) || text[at] == '\n' {
			return
		}
		line, col := 1, 1
		for _, r := range text[:at] {
			if col++; r == '\n' {
				line, col = line+1, 1
			}
		}
		located := doc.TextErrorf("b", line, col, "wrong").(*Error)
		if located.Msg != "b: wrong" {
			return
		}
		got := charAtError(file, located)
		folded := text[at] == ' ' && (got == "" || got == "\t") // a line end or a tab
		if got != string(text[at]) && got != `\` && !folded {
			t.Errorf("%q: character %d is %q, and %d:%d has %q", file, at, text[at], located.Line, located.Col, got)
		}
	})
}

// TestUnescape: an escape in double quotes is one character, two surrogates are together one.
func TestUnescape(t *testing.T) {
	for text, want := range map[string]struct {
		char   rune
		length int
	}{
		"n a": {'\n', 2}, "x41 a": {'A', 4}, "u00e9 a": {'é', 6}, "U0001F600 a": {'😀', 10},
		`ud83d\ude00 a`: {'😀', 12}, "ud83d a": {0xd83d, 6}, "": {'\\', 1}, "q a": {-1, 1}, "x4": {-1, 1},
	} {
		if char, length := unescape([]rune(text)); char != want.char || length != want.length {
			t.Errorf("%q: %q of length %d, want %q of %d", text, char, length, want.char, want.length)
		}
	}
}
