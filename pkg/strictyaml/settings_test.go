package strictyaml

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func readSettings(t *testing.T, text string) ([]string, error) {
	name := filepath.Join(t.TempDir(), "sets")
	if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	sets, err := settingsIn(name)
	if e, ok := err.(*Error); ok {
		e.File = "f"
	}
	var texts []string
	for _, s := range sets {
		if s.File != name || s.Line < 1 || s.Col < 1 {
			t.Errorf("%s: %s is at %s:%d:%d", text, s.Path, s.File, s.Line, s.Col)
		}
		texts = append(texts, s.Path+"="+s.Value)
	}
	return texts, err
}

func TestReadSettings(t *testing.T) {
	for _, c := range []struct {
		text string
		want []string
	}{
		{`{"routing.params.queue-depth": 0.3, "b": [1, [2]], "a": "x y", "c": true, "d": 10000000000, "e": ` +
			`null}`, []string{
			"routing.params.queue-depth=0.3", "b=[1,[2]]", `a="x y"`, "c=true", "d=10000000000", "e=null"}},
		{"{\n\t\"z\": \"1\",\r\n\t\"y\": 1e6,\n\t\"x\": -1.5E-9,\n\t\"w\": 18446744073709551615\n}", []string{`z="1"`,
			"y=1000000", "x=-1.5e-9", "w=18446744073709551615"}},
		{"# of the third generation\nrouting.score: a < b && b > c # the idle\nadmission.admit: |\n  x\n  ? y\n",
			[]string{`routing.score="a < b && b > c"`, `admission.admit="x\n? y\n"`}},
		{"admission.of: [{type: a, params: {n: 1}}]", []string{`admission.of=[{"params":{"n":1},"type":"a"}]`}},
		{"a: &x 1\nb: *x", []string{"a=1", "b=1"}},
		{"a: !!str 1e2", []string{`a="1e2"`}},
		{"&n\na: 1\nb: 2", []string{"a=1", "b=2"}},
		{"1: 2", []string{"1=2"}},
		{"{}", nil},
		{`{"a": "\u00e9\ud83d\ude00\t\"\\", "b": "", "c": [], "d": "1", "e": " # "}`, []string{`a="é😀\t\"\\"`, `b=""`,
			"c=[]", `d="1"`, `e=" # "`}},
	} {
		text, want := c.text, c.want
		got, err := readSettings(t, text)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v %s", text, err, diff)
		}
	}
	for text, want := range map[string]string{
		`{"routing": {"params": {}}}`: "f:1:2: routing has an object; give each value its own path, such as " +
			"routing.NAME",
		"{\n\t\"a\": 1,\n\t\"routing.x\": {}}": "f:3:2: routing.x has an object; give each value its own " +
			"path, such as " +
			"routing.x.NAME",
		"a: 1\nb:\n  c: 1\n":    "f:2:1: b has an object",
		"a: &x {c: 1}\nb: 1":    "f:1:1: a has an object",
		"a: 1\n<<: {b: 2}":      "f:2:1: ",
		`[1, 2]`:                "f:1:1: must be an object of paths and values",
		"- a: 1":                "f:1:1: must be an object",
		"a=1":                   "f:1:1: must be an object",
		"!!map {a: 1}":          "f:1:1: must be an object",
		"null":                  "f:1:1: must be an object",
		"":                      "f: is empty",
		"# nothing\n":           "f: is empty",
		"{\"a\": 1,\n\"a\": 2}": "f:2:1: mapping key \"a\" already defined",
		"a: 1\n\"a\": 2":        "f:2:1: mapping key \"a\" already defined",
		`{"a": 1e999}`:          "f:1:7: must be a finite number",
		"a: [.inf]":             "f:1:5: must be a finite number",
		`{"a=b": 1}`:            `f:1:2: "a=b" cannot be a path`,
		`{"": 1}`:               `f:1:2: "" cannot be a path`,
		`{"a": 1`:               "f:1:",
		"a: 1\n---\nb: 1":       "f: contains more than one document",
	} {
		if got, err := readSettings(t, text); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, %v, want %s", text, got, err, want)
		}
	}
	if _, err := settingsIn(filepath.Join(t.TempDir(), "none")); !os.IsNotExist(err) {
		t.Errorf("no file: %v", err)
	}
}

// FuzzReadSettings: the settings of a file, one by one, make the object in the file.
func FuzzReadSettings(f *testing.F) {
	for _, text := range []string{
		`{"a": 0.3, "b-c": [1, [2, {"x": "y"}]], "d": "x y", "e": true, "f": 1e21, "g": null}`,
		"{\n\t\"a\": \"\\u2028 \\\" <>& '\",\n}", "a: x # y\nb: |\n  c\n\nd: >\n  e\n  f\n",
		"a: &x [0x10, 0o7, -0.0]\nb: *x\n", "a: ''\nb: ~\nc: !!str 5\n'd': 1_000",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		doc, err := Parse("f", []byte(text))
		if err != nil {
			return
		}
		sets, err := doc.settings()
		if err != nil {
			if !strings.HasPrefix(err.Error(), "f:") {
				t.Errorf("%q: error without a position: %v", text, err)
			}
			return
		}
		var want map[string]any
		if err := doc.Decode(&want); err != nil {
			t.Fatalf("%q: has settings but cannot be decoded: %v", text, err)
		}
		got := map[string]any{}
		for _, s := range sets {
			var v struct {
				X any `yaml:"x"`
			}
			if err := decodeSet(t, "x: 0", &v, [2]string{"x", s.Value}); err != nil {
				t.Fatalf("%q: %+v: %v", text, s, err)
			}
			got[s.Path] = v.X
		}
		if !reflect.DeepEqual(want, got) {
			a, _ := json.Marshal(want)
			b, _ := json.Marshal(got)
			t.Errorf("%q: the settings make %s, the file %s", text, b, a)
		}
	})
}

// FuzzSet: no path and value crash, and a failed set changes nothing.
func FuzzSet(f *testing.F) {
	for _, s := range [][2]string{
		{"routing.params.threshold.standard", "20"}, {"routing.params.list.x.n", "[1, {a: 2}]"},
		{"routing.use.use.admit",
			"a ? b : c"},
		{"routing.of.0.params.n", "'x'"}, {"classes.v1.5.targets.ttft_ms", "1e2"}, {"weights.a.b", ".5"}, {"words.a",
			"!!str x"},
		{"lists.a.0", "1.5"}, {"limit", "~"}, {"note", "&a *a"}, {"printed.a.b.c", "&x [*x]"}, {"numbered.1", "x"},
		{"parts.a.width", "-"},
	} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, path, value string) {
		var got, want cluster
		if err := decode(sampleCluster, &want); err != nil {
			t.Fatal(err)
		}
		err := decodeSet(t, sampleCluster, &got, [2]string{path, value})
		if err != nil && !reflect.DeepEqual(want, got) {
			t.Errorf("%s=%s: %v, but it changed: %s", path, value, err, cmp.Diff(want, got))
		}
	})
}
