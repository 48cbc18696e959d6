package textio

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// table reads a text whose header must be n,at_us,wait_MS,t.
func table(t *testing.T, text string) *Table {
	t.Helper()
	s, err := NewTable("in", strings.NewReader(text), "n,at_us,wait_MS,t")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestTable: values by their columns, with units of times by the names of these.
func TestTable(t *testing.T) {
	s := table(t, "n, at_us,wait_MS,t\n512.0,3,0, 1.5\n,1,2,3\n")
	n, at, wait, seconds := s.RequireColumn("N"), s.RequireColumn("x", "at_us"), s.Column("wait_ms"), s.TimeColumn("t")
	if none := s.Column("x"); n != 0 || at != 1 || wait != 2 || seconds != 3 || none != -1 || s.Value(none) != "" {
		t.Errorf("columns %d, %d, %d, %d and %d", n, at, wait, seconds, none)
	}
	if err := s.Read(); err != nil || s.Line != 2 {
		t.Fatalf("line %d, %v", s.Line, err)
	}
	if s.Integer(n) != 512 || s.TimeUS(at) != 3 || s.TimeUS(wait) != 0 || s.TimeUS(seconds) != 1.5e6 {
		t.Errorf("%q are %d, %g, %g and %g", s.Row, s.Integer(n), s.TimeUS(at), s.TimeUS(wait), s.TimeUS(seconds))
	}
	if unused := s.UnusedColumns(n, seconds); !slices.Equal(unused, []string{"at_us", "wait_MS"}) {
		t.Errorf("unused columns %q", unused)
	}
	err := s.Read()
	if err != nil || s.Optional(n) != 0 || s.Optional(at) != 1 || s.TimeUS(wait) != 2000 || s.Err() != nil {
		t.Errorf("%q: %v, %v", s.Row, err, s.Err())
	}
	if err := s.Read(); err != io.EOF {
		t.Errorf("after the last line: %v", err)
	}
}

// TestTableErrors: the first error of a value has its line, and the value is 0.
func TestTableErrors(t *testing.T) {
	for value, want := range map[string]string{"-1": "t must be a number of at least 0", "Inf": "t must be a number",
		"NaN": "t must be a number", "x": "t must be a number", "": "t must be a number"} {
		s := table(t, "n,t\n1.5,"+value+"\n")
		if err := s.Read(); err != nil {
			t.Fatal(err)
		}
		if x := s.Time(1); x != 0 || s.Err() == nil || !strings.HasPrefix(s.Err().Error(), "in:2: "+want) {
			t.Errorf("%q is %v, error %v", value, x, s.Err())
		}
		if n := s.Integer(0); n != 0 || strings.Contains(s.Err().Error(), "integer") {
			t.Errorf("a later error replaces the first: %d, %v", n, s.Err())
		}
	}
	for text, want := range map[string]string{"": "in:1: is missing: the first line must be a,b",
		"a,a\n": `in:1: duplicate column "a"`, " [1]": "in:1: is JSON", "[": "in:1: is JSON",
		"{\"a\": 1}": "in:1: is JSON"} {
		_, err := NewTable("in", strings.NewReader(text), "a,b")
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	s := table(t, "a,b\n1\n")
	if err := s.Read(); err == nil || err.Error() != "in:2: must have the 2 columns a,b, has 1" {
		t.Errorf("a line with one value: %v", err)
	}
	s = table(t, "n,at_us,at_ms\n")
	if at := s.RequireTimeColumn("at_us", "at_ms"); at != 1 || s.Err() == nil ||
		s.Err().Error() != "in:1: has both at_us and at_ms; remove one of them" {
		t.Errorf("two times: column %d, %v", at, s.Err())
	}
	s = table(t, "n\n")
	if at := s.RequireColumn("x", "y"); at != -1 || s.Err() == nil ||
		s.Err().Error() != "in:1: the column x or y is missing, the line has n" {
		t.Errorf("no column: %d, %v", at, s.Err())
	}
	broken, err := NewTable("in", io.MultiReader(strings.NewReader("a,b\n1,2\n"), iotest.ErrReader(errors.New("torn"))),
		"a,b")
	if err == nil {
		if err = broken.Read(); err == nil {
			err = broken.Read()
		}
	}
	if err == nil || err.Error() != "in: torn" {
		t.Errorf("a torn text: %v", err)
	}
}

// TestSeparator: the first of comma, tab and semicolon that the first line has.
func TestSeparator(t *testing.T) {
	for text, want := range map[string]rune{"a;b\nc,d": ';', "a\tb;c": '\t', "\r\na,b\tc": ',', "a": ','} {
		if got := Separator([]byte(text)); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// TestOpen: a file is decompressed, its byte order mark skipped, and a folder is an error.
func TestOpen(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	fmt.Fprint(z, "\ufeffa,b\n")
	z.Close()
	dir := t.TempDir()
	for name, text := range map[string]string{"plain": "a,b\n", "mark": "\ufeffa,b\n", "packed": packed.String()} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		s, err := OpenTable(Input{Name: name, Path: path}, "a,b")
		if err != nil || !slices.Equal(s.Header, []string{"a", "b"}) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	for text, want := range map[string]string{packed.String()[:12]: "the compressed data are cut off",
		"\x1f\x8bxxxxxxxxxx": "the compressed data are corrupt"} {
		_, err := OpenTable(Input{Name: "in", Stream: strings.NewReader(text)}, "a,b")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	if _, err := (Input{Name: "dir", Path: dir}).Open(); err == nil || !strings.Contains(err.Error(), "is a folder") {
		t.Errorf("a folder: %v", err)
	}
}

// TestCloseOnce: what was opened last is closed first, and nothing twice.
func TestCloseOnce(t *testing.T) {
	closed := ""
	x := &Text{closers: []func(){func() { closed += "1" }, func() { closed += "2" }}}
	p := Position{Name: "in", text: x}
	if p.Close(); closed != "21" {
		t.Errorf("closed %s", closed)
	}
	if p.Close(); closed != "21" {
		t.Errorf("closed again: %s", closed)
	}
	p.Warn("a: first")
	p.Warnf("%d", 2)
	if got := p.Warnings(); !slices.Equal(got, []string{"a: first", "in: 2"}) {
		t.Errorf("warnings %q", got)
	}
}

// TestLineValues: a pointer that a line leaves nil must be given, and times are at least 0.
func TestLineValues(t *testing.T) {
	var row struct {
		A *int `json:"a"`
		B int  `json:"b"`
	}
	l := NewLines("in", strings.NewReader("{\"a\": 0}\n{\"b\": 1}\n"))
	if err := l.Read(&row); err != nil {
		t.Error(err)
	}
	row.A = nil
	if err := l.Read(&row); err == nil || err.Error() != "in:2: a must be given" {
		t.Errorf("without a: %v", err)
	}
	if err := l.Read(&row); err != io.EOF {
		t.Errorf("after the last line: %v", err)
	}
	for x, ok := range map[float64]bool{0: true, 1: true, -1: false, math.Inf(1): false} {
		if err := l.Time("t", x, "s"); (err == nil) != ok {
			t.Errorf("%v s: %v", x, err)
		}
	}
}

// TestLinesOfDocuments: each value has the line on which it begins.
func TestLinesOfDocuments(t *testing.T) {
	d, err := NewDocuments("in", strings.NewReader("{}\n\n {\n}{}\n"))
	if err != nil {
		t.Fatal(err)
	}
	var lines []int
	for {
		var value map[string]any
		if err := d.Read(&value); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, d.Line)
	}
	if !slices.Equal(lines, []int{1, 3, 4}) {
		t.Errorf("lines %v", lines)
	}
}

// TestJSONMessages: errors of encoding/json in the words of users.
func TestJSONMessages(t *testing.T) {
	for text, want := range map[string]string{`{"a": 1.5}`: "a must be an integer, not number 1.5",
		`{"a": {}}`: "a must be an integer, not object", `{"b": {}}`: "b cannot be an object",
		`{"b": 1}`: "b cannot be a number",
		`[]`:       "must be an object, not array", `{"a": NaN}`: "NaN and Infinity are not valid JSON",
		`{"a": -Infinity}`: "NaN and Infinity are not valid JSON", `{"a": 1`: "ends in the middle of a value",
		`{"a": x}`: "invalid character 'x'", `{"c": 1}`: `unknown field "c"`} {
		var row struct {
			A int64  `json:"a"`
			B string `json:"b"`
		}
		if err := NewLines("in", strings.NewReader(text)).Read(&row); err == nil ||
			!strings.HasPrefix(err.Error(), "in:1: "+want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
