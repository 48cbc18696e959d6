package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPlacesInTexts: X stands at a place of the text at a.b; the error must point
// at the X in the file.
func TestPlacesInTexts(t *testing.T) {
	for _, c := range []struct {
		name, file string
		line, col  int // within the text
	}{
		{"plain", "a:\n  b: one X", 1, 5},
		{"quoted", "a:\n  b: \"one X\"", 1, 5},
		{"single quotes", "a: {b: 'one X'}", 1, 5},
		{"JSON", "{\"a\": {\"b\": \"one X\"}}", 1, 5},
		{"JSON with tabs", "{\n\t\"a\": {\n\t\t\"b\": \"one X\"}}", 1, 5},
		{"CRLF", "a:\r\n  b: one X\r\n", 1, 5},
		{"letters of two bytes", "a:\n  b: \"é µ X\"", 1, 5},
		{"block", "a:\n  b: |\n    one\n    two X", 2, 5},
		{"block with a comment", "a:\n  b: |- # text\n    one\n      two X\nc: 1", 2, 7},
		{"block that begins with an empty line", "a:\n  b: |\n\n    two X\n", 2, 5},
		{"alias", "a:\n  b: &n one X\nc: *n", 1, 5},
	} {
		doc, err := Parse("f", []byte(c.file))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		fault, _ := doc.TextErrorf("a.b", c.line, c.col, "wrong").(*Error)
		lines := strings.Split(c.file, "\n")
		if fault.Line < 1 || fault.Line > len(lines) || fault.Col > len([]rune(lines[fault.Line-1])) || []rune(lines[fault.Line-1])[fault.Col-1] != 'X' {
			t.Errorf("%s: the place is %v", c.name, fault)
		}
	}
	for name, file := range map[string]string{
		"folded":  "a:\n  b: >\n    one\n    two X",
		"escapes": `a: {b: "\"one\" X"}`,
		"quotes":  `a: {b: 'it''s X'}`,
		"lines":   "a:\n  b: one\n    two X",
	} {
		doc, err := Parse("f", []byte(file))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		line := 1
		if name == "lines" {
			line = 2
		}
		if err := doc.TextErrorf("a.b", line, 7, "wrong"); !strings.HasSuffix(err.Error(), "column 7 of the text)") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestJSONWithTabs(t *testing.T) {
	var v struct {
		A struct {
			B string `yaml:"b"`
			C int    `yaml:"c"`
		} `yaml:"a"`
	}
	for _, text := range []string{"{\n\t\"a\": {\n\t\t\"b\": \"x\\ty\",\t\"c\":\t5\n\t}\n}\n", "\ufeff{\"a\":\t{\"b\":\"x\\ty\",\"c\":5}}"} {
		doc, err := Parse("f", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if err := doc.Decode(&v); err != nil || v.A.B != "x\ty" || v.A.C != 5 {
			t.Errorf("%q: %+v, %v", text, v, err)
		}
	}
	doc, err := Parse("f", []byte("{\n\t\"a\": {\n\t\t\"d\": 1}}"))
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Decode(&v); err == nil || !strings.HasPrefix(err.Error(), "f:3:3: unknown field") {
		t.Errorf("a misspelt field: %v", err)
	}
}

func TestReadSets(t *testing.T) {
	read := func(text string) ([]string, error) {
		name := filepath.Join(t.TempDir(), "sets.json")
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		sets, err := ReadSets(name)
		if err != nil {
			err = &Error{File: strings.ReplaceAll(err.Error(), name, "f")}
		}
		return sets, err
	}
	got, err := read(`{"routing.params.queue-depth": 0.3, "b": [1, 2], "a": "x y", "c": true, "d": 10000000000}`)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"routing.params.queue-depth=0.3", "b=[1,2]", `a="x y"`, "c=true", "d=10000000000"}, got); diff != "" {
		t.Error(diff)
	}
	for text, want := range map[string]string{
		`{"routing": {"params": {}}}`: "f:1:2: routing has an object; give each value its own path",
		`[1, 2]`:                      "f:1:1: must be an object of paths and values",
		``:                            "f: is empty",
		"{\"a\": 1,\n\"a\": 2}":       "f:2:1: ",
	} {
		if _, err := read(text); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// TestSetAny: paths lead through maps of any values, which are made where they
// are not there, and are not changed where they are somebody else's.
func TestSetAny(t *testing.T) {
	inner := map[string]any{"low": 1.0}
	var v struct {
		Params map[string]any `yaml:"params"`
	}
	v.Params = map[string]any{"threshold": inner, "x": 1.0}
	for _, set := range [][2]string{{"params.threshold.high", "20"}, {"params.new.deep", "yes"}, {"params.x", "auto"}, {"params.list", "[1, 2.5]"}} {
		if err := Set(&v, set[0], set[1]); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]any{"threshold": map[string]any{"low": 1.0, "high": 20.0}, "new": map[string]any{"deep": "yes"}, "x": "auto", "list": []any{1.0, 2.5}}
	if diff := cmp.Diff(want, v.Params); diff != "" {
		t.Error(diff)
	}
	if len(inner) != 1 {
		t.Errorf("the map that was given is now %v", inner)
	}
	if err := Set(&v, "params.x.y", "1"); err == nil {
		t.Error("a text has fields")
	}
}
