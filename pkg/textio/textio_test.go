package textio

import (
	"errors"
	"io"
	"strings"
	"testing"

	"blis/pkg/stream"
)

// Documents are read in sequence, in any layout, and errors have line numbers.
func TestDocuments(t *testing.T) {
	type row struct {
		A []int64 `json:"a"`
		B string  `json:"b"`
	}
	for _, c := range []struct {
		text, want string
		rows       int
	}{
		{"", "", 0},
		{" \n ", "", 0},
		{`{"a": [1]}{"a": [2]}` + "\n\n" + `{"b": "x"}`, "", 3},
		{"{\"a\": [1]}\n{\"a\":\n [1.5]}", "in:3: a must be an integer, not number 1.5", 1},
		{"{\"a\": [1]}\n{\"a\":\n [1, }", "in:3: invalid character '}'", 1},
		{"{\"a\": [1]}\n{\"a\":\n [1,\n\n", "in:3: the text ends in the middle of a value; is the file truncated?", 1},
		{"[1]", "in:1: must be an object, not array", 0},
		{`{"b": "` + strings.Repeat("x", 300) + `", "a": 1}`, "in:1: at column 316: a cannot be a number", 0},
		{"hello", "in:1: invalid character 'h'", 0},
	} {
		d, err := NewDocuments("in", strings.NewReader(c.text))
		if err != nil {
			t.Fatal(err)
		}
		rows := 0
		for {
			var r row
			if err = d.Read(&r); err != nil {
				break
			}
			rows++
		}
		if err == io.EOF {
			err = nil
		}
		var located *stream.SyntaxError
		if rows != c.rows || (err == nil) != (c.want == "") || err != nil && (!errors.As(err, &located) ||
			!strings.HasPrefix(err.Error(), c.want)) {
			t.Errorf("%q: %d values, %v, want %q", c.text, rows, err, c.want)
		}
	}
}

// ReadDocument accepts exactly one value.
func TestSingleDocument(t *testing.T) {
	for text, want := range map[string]string{"[1]": "", " [1]\n": "", "": "in: is empty",
		"[1]\n[2]": "in:2: unexpected data after the first value"} {
		var list []int
		err := ReadDocument("in", strings.NewReader(text), &list)
		if (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// Read rejects unknown fields, ReadLenient ignores them.
func TestLines(t *testing.T) {
	const text = "{\"a\": 1}\n\n{\"a\": 2, \"b\": 3}\n{\"a\": 4} x\n"
	var row struct {
		A int `json:"a"`
	}
	l := NewLines("in", strings.NewReader(text))
	if err := l.Read(&row); err != nil || row.A != 1 {
		t.Errorf("the first: %v, %v", row, err)
	}
	if err := l.Read(&row); err == nil || !strings.Contains(err.Error(), `in:3: unknown field "b"`) {
		t.Errorf("an unknown field: %v", err)
	}
	l = NewLines("in", strings.NewReader(text))
	for _, want := range []int{1, 2} {
		if err := l.ReadLenient(&row); err != nil || row.A != want {
			t.Errorf("%d: %v, %v", want, row, err)
		}
	}
	if err := l.ReadLenient(&row); err == nil || err.Error() != "in:4: unexpected data after the object" {
		t.Errorf("more on the line: %v", err)
	}
}
