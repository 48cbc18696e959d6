package strictyaml

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestJSONVariants: JSON and text like JSON, as editors and programs write it.
func TestJSONVariants(t *testing.T) {
	type inner struct {
		B string `yaml:"b"`
		C int    `yaml:"c"`
	}
	type file struct {
		A inner `yaml:"a"`
	}
	for _, text := range []string{
		"{\n\t\"a\": {\n\t\t\"b\": \"x\\ty\",\t\"c\":\t5\n\t}\n}\n",
		"\ufeff{\"a\":\t{\"b\":\"x\\ty\",\"c\":5}}",
		"{\r\n\t\"a\": {\r\n\t\t\"b\": \"x\\ty\",\r\n\t\t\"c\": 5\r\n\t}\r\n}\r\n",
		"\n\n \t{\"a\"\n:\t{\"b\"\t: \"x\\ty\", \"c\":\n5}}",
		"{\n\t\"a\": { # one\n\t\t\"b\": \"x\\ty\",\n\t\t\"c\": 5,\n\t},\n}\n", // YAML
		"a:\r\n  b: \"x\\ty\" # two\r\n  c: 5\r\n",
	} {
		var v file
		if err := decode(text, &v); err != nil || v.A != (inner{"x\ty", 5}) {
			t.Errorf("%q: %+v, %v", text, v, err)
		}
	}
	for text, want := range map[string]string{
		"{\n\t\"a\": {\n\t\t\"d\": 1}}":                     "f.yaml:3:3: unknown field \"d\"",
		"{\r\n\t\"a\": {\r\n\t\t\"b\": \"x\", \t\"d\": 1}}": "f.yaml:3:14: unknown field \"d\"",
		"\ufeff{\t\"a\":\t{\"c\":\t\"x\"}}":                 "f.yaml:1:14: c must be an integer",
		"{\n\t\"a\": {\n\t\t\"d\": 1,\n\t},\n}":             "f.yaml:3:3: unknown field \"d\"",
		"{\n\t\"a\": {},\n\t\"a\": {}}":                     "f.yaml:3:2: mapping key \"a\" already defined",
		"{\n\t\"a\": {},\n\t\"a\": {},}":                    "f.yaml:3:2: mapping key \"a\" already defined",
		"{\"a\": {\"b\": \"x\", b: y}}":                     "f.yaml:1:18: mapping key \"b\" already defined",
		"a:\n  b: x\n  c: 1\n  'b': x\n":                    "f.yaml:4:3: mapping key \"b\" already defined",
		"a:\n  c: many   \n":                                "f.yaml:2:6: c must be an integer",
		"a:\n  c:\tmany\n":                                  "f.yaml:2:6: c must be an integer",
		"{\"a\": {\"b\": \"x\"":                             "f.yaml:1:",
		"{\"a\": {\"b\": \"x\"}} {}":                        "f.yaml:1:",
		"{\"a\": {\"b\": \"\\ud800\"}}":                     "f.yaml:1:",
		"a:\n\tb: x\n":                                      "f.yaml:2:1: ",
	} {
		if err := decode(text, &file{}); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// TestNumbersOfAnyTypeAreFloat64: numbers in values of type any are float64, also those
// that the YAML library reads as strings; strings stay strings.
func TestNumbersOfAnyTypeAreFloat64(t *testing.T) {
	var v struct {
		Any    any               `yaml:"any"`
		Params map[string]any    `yaml:"params"`
		List   []map[string]any  `yaml:"list"`
		Text   string            `yaml:"text"`
		Texts  map[string]string `yaml:"texts"`
		Inner  *struct {
			Any any `yaml:"any"`
		} `yaml:"inner"`
		Own  selfDecoding   `yaml:"own"`
		Bare selfDecoding   `yaml:"bare"`
		Ints map[string]int `yaml:"ints"`
	}
	text := `
any: [1, -2, 0x10, 1.5, 1e3, -2.5E-1, 1E+2, .5, 123456789012345678901234567890, &n 7]
params: {a: 1, b: {c: 2, d: [3, {e: 1e2}]}, "t": "1e2", u: '5', v: 1e2x, w: !!str 1e2, x: null, y: true, z: *n,
  e: 1e, "0": 0}
list: [{a: 1}, {<<: &m {b: 2}, c: 3}, *m]
text: 1e2
texts: {a: 1e2, b: 1.50, c: 007, d: +1, e: .inf, f: &o 0x10, g: *o, h: &o 1.0, i: *o}
inner: {any: 1e1}
own: {value: 2}
bare: 3e0
ints: {a: 1}
`
	if err := decode(text, &v); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ got, want any }{
		{v.Any, []any{1.0, -2.0, 16.0, 1.5, 1000.0, -0.25, 100.0, 0.5, 123456789012345678901234567890.0, 7.0}},
		{v.Params, map[string]any{
			"a": 1.0, "b": map[string]any{"c": 2.0, "d": []any{3.0, map[string]any{"e": 100.0}}},
			"t": "1e2", "u": "5", "v": "1e2x",
			"w": "1e2", "x": nil, "y": true, "z": 7.0, "e": "1e", "0": 0.0,
		}},
		{v.List, []map[string]any{{"a": 1.0}, {"b": 2.0, "c": 3.0}, {"b": 2.0}}},
		{v.Text, "1e2"},
		{v.Texts, map[string]string{"a": "1e2", "b": "1.50", "c": "007", "d": "+1", "e": ".inf", "f": "0x10",
			"g": "0x10",
			"h": "1.0", "i": "1.0"}},
		{v.Inner.Any, 10.0},
		{v.Own.Value, 2.0},
		{v.Bare.Value, 3.0},
		{v.Ints, map[string]int{"a": 1}},
	} {
		if diff := cmp.Diff(c.want, c.got); diff != "" {
			t.Error(diff)
		}
	}
	for text, want := range map[string]string{
		"any: [1, {a: .inf}]":    "f.yaml:1:14: must be a finite number, is .inf",
		"params: {a: [1e400]}":   "f.yaml:1:14: must be a finite number, is 1e400",
		"params: {a: {b: .nan}}": "f.yaml:1:17: must be a finite number, is .nan",
		"any: &a [*a]":           "f.yaml:",
		"any: [&a [*b], &b *a]":  "f.yaml:",
	} {
		if err := decode(text, &v); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	var tagged struct {
		Any any `yaml:"any"`
	}
	err := decode("any: [!!int 5, !!float 5, !!str 5, !!int &n 6, *n, 18446744073709551615, -9223372036854775808, "+
		"0o17]", &tagged)
	want := []any{5.0, 5.0, "5", 6.0, 6.0, float64(1 << 64), -float64(1 << 63), 15.0}
	if diff := cmp.Diff(want, tagged.Any); err != nil || diff != "" {
		t.Error(err, diff)
	}
}

// selfDecoding has its own unmarshaler: a value, or a mapping with a value.
type selfDecoding struct {
	Value any `yaml:"value"`
}

func (o *selfDecoding) UnmarshalYAML(decode func(any) error) error {
	type plain selfDecoding
	if err := decode(&o.Value); err != nil {
		return err
	}
	if _, ok := o.Value.(map[string]any); ok {
		return decode((*plain)(o))
	}
	return nil
}

// FuzzJSON: a JSON object decodes as encoding/json decodes it.
func FuzzJSON(f *testing.F) {
	for _, text := range []string{
		`{"a": {"b": [1, -2.5e3, 1E2, true, false, null, "x"], "c": {}}, "d": []}`,
		"{\n\t\"a\":\t\"one\\ttwo\\u00e9\\ud83d\\ude00\\/\",\r\n\t\"b\"\n:\n1}",
		`{"a": "1e2", "b": " x ", "c": "", "": 0, "d": "- x", "e": "{", "f": "# y", "g": "a: b", "h": "*x", "i": "~"}`,
		`{"a":123456789012345678901234567890,"b":-0,"c":0.1e-7,"d":9007199254740993,"e":1e21}`,
		`{"a":[[[]],[{}],[{"b":[1,[2]]}]]}`,
		"{\"a\":\"\u2028\u0085\u007f\u00a0\ufeff\"}",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var want, got map[string]any
		if !strings.HasPrefix(strings.TrimSpace(text), "{") || json.Unmarshal([]byte(text), &want) != nil {
			return
		}
		doc, err := Parse("f", []byte(text))
		if err == nil {
			err = doc.Decode(&got)
		}
		if err != nil && (strings.Contains(err.Error(), "already defined") || strings.Contains(err.Error(),
			"surrogate")) {
			return // a duplicate key, half of a surrogate pair
		}
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if !reflect.DeepEqual(want, got) {
			t.Errorf("%q is %#v, want %#v", text, got, want)
		}
	})
}
