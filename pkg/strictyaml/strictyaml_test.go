package strictyaml

import (
	"fmt"
	"strings"
	"testing"
)

type file struct {
	Name  string             `yaml:"name"`
	Parts []part             `yaml:"parts"`
	Extra map[string]float64 `yaml:"extra"`
}

type part struct {
	Size  `yaml:",inline"`
	ID    string  `yaml:"id"`
	Count int     `yaml:"count"`
	Ratio float64 `yaml:"ratio"`
	On    bool    `yaml:"on"`
}

// Size is inline in part.
type Size struct {
	Width int `yaml:"width"`
}

const sampleFile = "name: x\nparts:\n  - {id: a, count: 1}\n  - id: b\n    count: 2\n"

// TestErrorsHavePositions: errors have file, line and column, and name the right value.
func TestErrorsHavePositions(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "f.yaml: is empty"},
		{"(\xb5/\xfd\x00", "f.yaml: is not text, and must be YAML or JSON"},
		{"name: x\nnmae: y\n", `f.yaml:2:1: unknown field "nmae"; did you mean "name"?`},
		{"name: x\nparts:\n - cuont: 1\n", `f.yaml:3:4: unknown field "cuont"; did you mean "count"?`},
		{"name: x\nname: y\n", "f.yaml:2"},
		{"name: [\n", "f.yaml:1"},
		{"parts:\n - {id: a, count: many}", "f.yaml:2:"},
		{"parts:\n - {id: a, count: 1.5}", "f.yaml:2:19: must be an integer, is 1.5"},
		{"parts:\n - {id: a, count: 99999999999999999999}", "f.yaml:2:"},
		{"parts:\n - {id: a, on: maybe}", `f.yaml:2:16: on must be true or false, is "maybe"`},
		{"parts:\n - {id: a, ratio: [1]}", "f.yaml:2:"},
		{"parts:\n - {id: a, count: lots}", `f.yaml:2:19: count must be an integer, is "lots"`},
		{"extra: {x: high}", `f.yaml:1:12: x must be a number, is "high"`},
		{"parts:\n - {id: a, count: &x 1.9}", "f.yaml:2:22: must be an integer"},
		{"extra: {a: &x 1.9}\nparts:\n - {id: a, count: *x}", "must be an integer, is 1.9"},
		{"parts:\n - &p {id: a, count: 1}\n - {<<: *p, id: b, count: !!int 2.5}", "f.yaml:3:"},
		{"parts:\n - {id: a, count: true}", "f.yaml:2:"},
		{"parts:\n - {id: a, ratio: .inf}", "f.yaml:2:19: must be a finite number, is .inf"},
		{"extra: {x: -.inf}", "must be a finite number"},
		{"extra: {x: .nan}", "must be a finite number"},
		{"parts:\n - {id: a, ratio: many}", "f.yaml:2:"},
		{"parts:\n - {id: a, on: 1}", "f.yaml:2:"},
		{"parts:\n - {id: [1], count: 2}", "f.yaml:2:"},
		{"parts:\n - {id: a, widht: 1}", `f.yaml:2:12: unknown field "widht"; did you mean "width"?`},
		{"parts:\n - {id: a, width: 1.5}", "f.yaml:2:19: must be an integer, is 1.5"},
		{"parts: {id: a}", "f.yaml:1:8: parts must be a list ([a, b]), is fields with values (key: value)"},
		{"parts: 3", "f.yaml:1:8: parts must be a list ([a, b]), is a number"},
		{"extra: [a]", "f.yaml:1:8: extra must be fields with values (key: value), is a list ([a, b])"},
		{"timestamp,tokens\n1,2\n", "f.yaml:1:1: must be fields with values (key: value), is text"},
		{"parts: &a\n", "f.yaml"},
		{"name: x\n---\nname: y\n", "one file, one document"},
		{`{"name": "x", "parts": [{"i": 1}]}`, `unknown field "i"`},
	} {
		text, want := c.text, c.want
		err := decode(text, &file{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
}

func decode(text string, v any) error {
	doc, err := Parse("f.yaml", []byte(text))
	if err != nil {
		return err
	}
	return doc.Decode(v)
}

func TestErrorf(t *testing.T) {
	doc, err := Parse("f.yaml", []byte(sampleFile))
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"parts[1].count": "f.yaml:5:12: parts[1].count: must be 3",
		"parts[0].ratio": "f.yaml:3:", // missing: the position of its parent
		"elsewhere":      "f.yaml: elsewhere is not in the file: must be 3",
	} {
		if err := doc.Errorf(path, "must be %d", 3); !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", path, err, want)
		}
	}
}

// TestNearestParent: where keys contain dots, the position is that of what has most of the path.
func TestNearestParent(t *testing.T) {
	for _, text := range []string{"a: {b: {c: 1}}\na.b: 5\n", "a.b: {c: 1}\na: 5\n"} {
		doc, err := Parse("f.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if err := doc.Errorf("a.b.c.d", "wrong"); !strings.HasPrefix(err.Error(), "f.yaml:1:") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestMerge: entries of one mapping get what another one states, completed by a third one.
func TestMerge(t *testing.T) {
	const text = "parts:\n- {engine: {a: 1, deep: {b: 2}}, name: x, size: 5, prefill: {engine: {deep: {c: 3}, a: 4}}}\n"
	doc, err := Parse("f.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	doc.Merge("parts[0].prefill", "parts[0].prefill", "parts[0]", "engine", "name", "missing")
	var got struct {
		Parts []any `yaml:"parts"`
	}
	if err := doc.Decode(&got); err != nil {
		t.Fatal(err)
	}
	const want = "[map[engine:map[a:1 deep:map[b:2]] name:x " +
		"prefill:map[engine:map[a:4 deep:map[b:2 c:3]] name:x] size:5]]"
	if fmt.Sprint(got.Parts) != want {
		t.Errorf("%v, want %s", got.Parts, want)
	}
}

// TestKeysOfAliases: a key may have an anchor, and be an alias.
func TestKeysOfAliases(t *testing.T) {
	doc, err := Parse("f.yaml", []byte("&k a: 1\nb: {*k : 2}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if !doc.Has("a") || !doc.Has("b.a") {
		t.Errorf("a: %v, b.a: %v", doc.Has("a"), doc.Has("b.a"))
	}
}

func TestHas(t *testing.T) {
	doc, err := Parse("f.yaml", []byte("extra: &x {a: 1}\nparts:\n - {id: a}\n - {<<: &p {count: 1}, id: b}\n - "+
		"*p\nname:\n"))
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{
		"extra.a": true, "extra.b": false, "parts": true, "parts[0].id": true,
		"parts[0].count": false, "parts[1].count": true,
		"parts[2].count": true, "parts[3]": false, "parts.id": false, "name": true, "nothing.here": false,
	} {
		if doc.Has(path) != want {
			t.Errorf("%s: %v, want %v", path, !want, want)
		}
	}
}

func TestSet(t *testing.T) {
	var f file
	err := decodeSet(t, sampleFile, &f, [2]string{"name", "y"}, [2]string{"parts.b.count", "7"},
		[2]string{"parts.0.ratio", "0.5"},
		[2]string{"parts.0.width", "4"}, [2]string{"parts.a.on", "true"}, [2]string{"extra.queue-depth", "0.3"})
	if err != nil {
		t.Error(err)
	}
	if f.Name != "y" || f.Parts[1].Count != 7 || f.Parts[0].Ratio != 0.5 || f.Parts[0].Width != 4 || !f.Parts[0].On ||
		f.Extra["queue-depth"] != 0.3 {
		t.Errorf("set to %+v", f)
	}
	for path, want := range map[string]string{
		"nam":           `did you mean "name"?`,
		"parts.c.count": `unknown element "c"`,
		"parts.b.cout":  `did you mean "count"?`,
		"parts.b.count": `must be an integer, is "lots"`,
		"name.x":        "has no fields",
		"parts..count":  "empty part",
	} {
		err := decodeSet(t, sampleFile, &f, [2]string{path, "lots"})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", path, err, want)
		}
	}
}

// FuzzDecode: no document crashes the reader.
func FuzzDecode(f *testing.F) {
	f.Add(sampleFile)
	f.Add("parts: !!seq\n")
	f.Add(`{"name": "x", "parts": [{"id": "a", "count": 1e2}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		err := decode(text, &file{})
		if err != nil && !strings.HasPrefix(err.Error(), "f.yaml:") {
			t.Errorf("%q: error without a position: %v", text, err)
		}
	})
}

// TestFirstUnknownField: of several unknown fields the first is reported, always.
func TestFirstUnknownField(t *testing.T) {
	for range 50 {
		for text, want := range map[string]string{
			"zz: 1\nname: x\nyy: 2\nxx: 3\n":                          `f.yaml:1:1: unknown field "zz"`,
			"name: x\nparts:\n - {id: a, ww: {u: 1}, vv: 2, uu: 3}\n": `f.yaml:3:12: unknown field "ww"`,
			`{"name": "x", "b": 1, "a": [1, 2], "c": 3}`:              `f.yaml:1:15: unknown field "b"`,
		} {
			d, err := Parse("f.yaml", []byte(text))
			if err == nil {
				err = d.Decode(new(file))
			}
			if err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Fatalf("%s\n%v, want %s", text, err, want)
			}
		}
	}
}
