package strictyaml

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

type cluster struct {
	Routing  policy             `yaml:"routing"`
	Weights  map[string]float64 `yaml:"weights"`
	Classes  map[string]class   `yaml:"classes"`
	Words    map[word]word      `yaml:"words"`
	Lists    map[string][]int   `yaml:"lists"`
	Parts    []part             `yaml:"parts"`
	Printed  any                `yaml:"printed"`
	Limit    *int               `yaml:"limit"`
	Note     *string            `yaml:"note"`
	Numbered map[int]string     `yaml:"numbered"`
	Level    level              `yaml:"level"`
}

type policy struct {
	Type   string         `yaml:"type"`
	Admit  string         `yaml:"admit"`
	Params map[string]any `yaml:"params"`
	Use    *policy        `yaml:"use"`
	Of     []policy       `yaml:"of"`
}

type class struct {
	Tier    string `yaml:"tier"`
	Targets *struct {
		TTFT float64 `yaml:"ttft_ms"`
	} `yaml:"targets"`
}

type word string

// level is text with its own unmarshaler: high or low.
type level string

func (l *level) UnmarshalText(text []byte) error {
	if s := string(text); s != "high" && s != "low" {
		return errors.New("must be high or low")
	}
	*l = level(text)
	return nil
}

const sampleCluster = `
routing:
  type: weighted
  params: {threshold: {standard: 20, sheddable: 5}, queue-depth: 0.3, per.model: {a: 1},
    list: [1, {id: x, n: 2}], auto: null}
  of: [{type: a, params: {n: 1}}]
classes: {gold: {tier: critical}, v1.5: {tier: standard}}
lists: {a: [1, 2]}
limit: 3
level: low
parts: [{id: a, count: 1}]
printed: {a: {b: 1}}
`

// TestSetChanges: the result of a path and a value equals that of an equivalent file.
func TestSetChanges(t *testing.T) {
	get := func(c *cluster) map[string]any {
		return map[string]any{"params": c.Routing.Params, "use": c.Routing.Use,
			"of": c.Routing.Of, "weights": c.Weights,
			"classes": c.Classes, "words": c.Words, "lists": c.Lists, "parts": c.Parts, "printed": c.Printed,
			"limit": c.Limit,
			"note":  c.Note,
			"admit": c.Routing.Admit, "level": c.Level}
	}
	for _, c := range []struct{ path, value, field, want string }{
		// In maps of values of type any.
		{"routing.params.queue-depth", "1", "params", "routing: {params: {threshold: {standard: 20, sheddable: 5}, " +
			"queue-depth: 1, per.model: {a: 1}, list: [1, {id: x, n: 2}], auto: null}}"},
		{"routing.params.threshold.standard", "1e2", "params",
			"routing: {params: {threshold: {standard: 100, sheddable: 5}, queue-depth: 0.3, per.model: {a: 1}, " +
				"list: [1, " +
				"{id: x, n: 2}], auto: null}}"},
		{"routing.params.threshold.best-effort", "true", "params",
			"routing: {params: {threshold: {standard: 20, sheddable: 5, best-effort: true}, queue-depth: 0.3, " +
				"per.model: {a: " +
				"1}, list: [1, {id: x, n: 2}], auto: null}}"},
		{"routing.params.per.model.b-c", "x y", "params", "routing: {params: {threshold: {standard: 20, " +
			"sheddable: 5}, " +
			"queue-depth: 0.3, per.model: {a: 1, b-c: x y}, list: [1, {id: x, n: 2}], auto: null}}"},
		{"routing.params.list.x.n", "[3, {a: 4}]", "params", "routing: {params: {threshold: {standard: 20, " +
			"sheddable: 5}, " +
			"queue-depth: 0.3, per.model: {a: 1}, list: [1, {id: x, n: [3, {a: 4}]}], auto: null}}"},
		{"routing.params.list.0", "{a: 1}", "params", "routing: {params: {threshold: {standard: 20, sheddable: 5}, " +
			"queue-depth: 0.3, per.model: {a: 1}, list: [{a: 1}, {id: x, n: 2}], auto: null}}"},
		{"routing.params.auto.new.deep", "'5'", "params", "routing: {params: {threshold: {standard: 20, " +
			"sheddable: 5}, " +
			"queue-depth: 0.3, per.model: {a: 1}, list: [1, {id: x, n: 2}], auto: {new: {deep: '5'}}}}"},
		{"routing.params", "{a: 1}", "params", "routing: {params: {a: 1}}"},
		{"routing.params.list", "null", "params", "routing: {params: {threshold: {standard: 20, sheddable: 5}, " +
			"queue-depth: 0.3, per.model: {a: 1}, list: null, auto: null}}"},
		{"printed.a.c", "2", "printed", "printed: {a: {b: 1, c: 2}}"},
		{"printed", "[1]", "printed", "printed: [1]"},
		{"printed", "a", "printed", "printed: a"},
		// Through pointers and lists of structs.
		{"routing.use.params.a.b", "1", "use", "routing: {use: {params: {a: {b: 1}}}}"},
		{"routing.use.use.type", "x", "use", "routing: {use: {use: {type: x}}}"},
		{"routing.of.0.params.n", "2", "of", "routing: {of: [{type: a, params: {n: 2}}]}"},
		{"limit", "5", "limit", "limit: 5"},
		{"limit", "null", "limit", "{}"},
		{"note", "a: b", "note", "note: 'a: b'"},
		// In typed maps.
		{"weights.queue-depth", "0.5", "weights", "weights: {queue-depth: 0.5}"},
		{"weights.main.x", "1e1", "weights", "weights: {main.x: 10}"},
		{"words.a.b", "c", "words", "words: {a.b: c}"},
		{"classes.gold.targets.ttft_ms", "200", "classes", "classes: {gold: {tier: critical, targets: " +
			"{ttft_ms: 200}}, " +
			"v1.5: {tier: standard}}"},
		{"classes.v1.5.tier", "x", "classes", "classes: {gold: {tier: critical}, v1.5: {tier: x}}"},
		{"classes.new.tier", "x", "classes", "classes: {gold: {tier: critical}, v1.5: {tier: standard}, new: " +
			"{tier: x}}"},
		{"lists.a.1", "7", "lists", "lists: {a: [1, 7]}"},
		{"lists.b", "[3]", "lists", "lists: {a: [1, 2], b: [3]}"},
		// Strings.
		{"level", "high", "level", "level: high"},
		{"routing.admit", `req.input_tokens > 5 ? "reject" : "admit"`, "admit",
			`routing: {admit: 'req.input_tokens > 5 ? "reject" : "admit"'}`},
		{"routing.admit", "!tenant.burst", "admit", "routing: {admit: '!tenant.burst'}"},
		{"routing.admit", `'a' == req.tenant`, "admit", `routing: {admit: "'a' == req.tenant"}`},
		{"routing.admit", `["a"].exists(x, x == req.tenant)`, "admit",
			`routing: {admit: '["a"].exists(x, x == req.tenant)'}`},
		{"routing.admit", ` "a b" `, "admit", "routing: {admit: a b}"},
		{"routing.admit", "1.50", "admit", "routing: {admit: '1.50'}"},
		{"routing.admit", "null", "admit", "routing: {admit: ''}"},
	} {
		var got, want cluster
		if err := decode(c.want, &want); err != nil {
			t.Fatalf("%s: %v", c.want, err)
		}
		if err := decodeSet(t, sampleCluster, &got, [2]string{c.path, c.value}); err != nil {
			t.Errorf("%s=%s: %v", c.path, c.value, err)
			continue
		}
		if diff := cmp.Diff(get(&want)[c.field], get(&got)[c.field]); diff != "" {
			t.Errorf("%s=%s: %s", c.path, c.value, diff)
		}
	}
}

// TestSetErrors: a failed set says why and changes nothing.
func TestSetErrors(t *testing.T) {
	for _, c := range []struct{ path, value, want string }{
		{"routing.params.queue-depth.x", "1", `"x" does not exist: its parent is 0.3, which has no fields`},
		{"routing.params.list.y", "1", `no element "y" among 2`},
		{"routing.params.list.2", "1", `no element "2" among 2`},
		{"routing.params.list.x.n.m", "1", `"m" does not exist: its parent is 2`},
		{"routing.params.a", "[1", `must be a value in YAML, is "[1": `},
		{"routing.params.a", ".inf", "must be a finite number"},
		{"routing.params", "5", "must be fields with values"},
		{"routing.use.tpye", "x", `did you mean "type"?`},
		{"routing.use.use.params", "x", "must be fields with values"},
		{"routing.admit", "[a]", `must be text, is "[a]"`},
		{"routing.admit", "{a: b}", "must be text"},
		{"routing.admit", "", "must be text"},
		{"weights.a", "x", `must be a number, is "x"`},
		{"weights.a", "[1]", `must be a number, is "[1]"`},
		{"classes.new.teir", "x", `did you mean "tier"?`},
		{"classes.gold.tier.x", "x", `"x" does not exist: its parent is text, which has no fields`},
		{"lists.a.5", "7", `no element "5" among 2`},
		{"lists.a.1", "x", `must be an integer, is "x"`},
		{"limit", "many", `must be an integer, is "many"`},
		{"parts.a.count", "1.5", `must be an integer, is "1.5"`},
		{"parts", "[{id: a, cuont: 1}]", `must be a list, is "[{id: a, cuont: 1}]": unknown field "cuont"; ` +
			`did you mean ` +
			`"count"?`},
		{"numbered.1", "x", `"1" cannot be a key here`},
		{"level", "x", `must be text, is "x"`},
		{"limit.x", "1", `"x" does not exist: its parent is an integer`},
		{"routing..type", "x", "has an empty part"},
		{"admit", "x", `unknown field "admit"; did you mean "routing.admit"?`},
		{"params.a", "1", `unknown field "params"; did you mean "routing.params.a"?`},
		{"count", "1", `unknown field "count"; did you mean "parts.a.count"?`},
		{"Limit", "1", `unknown field "Limit"; did you mean "limit"?`},
	} {
		var got, want cluster
		if err := decode(sampleCluster, &want); err != nil {
			t.Fatal(err)
		}
		err := decodeSet(t, sampleCluster, &got, [2]string{c.path, c.value})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s=%s: %v, want %s", c.path, c.value, err, c.want)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s=%s has changed: %s", c.path, c.value, diff)
		}
	}
}

// TestDeeperFieldsOfLists: a suggestion names elements by their ids where a path can, and not all of many.
func TestDeeperFieldsOfLists(t *testing.T) {
	for text, want := range map[string]string{
		"parts: [{id: a}, {count: 2}]": `did you mean "parts.a.count" or "parts.1.count"?`,
		"parts: [{id: a}, {id: b.c}, {id: d}, {id: e}]": `did you mean "parts.a.count" or "parts.1.count" or ` +
			`"parts.d.count", ...?`,
		"parts: []": `unknown field "count" (have routing, weights, `,
	} {
		err := decodeSet(t, text, new(cluster), [2]string{"count", "1"})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// TestCaseOfFields: a field in other letters is meant, not one further down.
func TestCaseOfFields(t *testing.T) {
	var v struct {
		Limit int `yaml:"limit"`
		Deep  struct {
			Limit int `yaml:"Limit"`
		} `yaml:"deep"`
	}
	err := decodeSet(t, "limit: 1", &v, [2]string{"Limit", "2"})
	if want := `unknown field "Limit"; did you mean "limit"?`; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}

// TestSetDoesNotChangeSharedValues: an anchor and its aliases are set one by one.
func TestSetDoesNotChangeSharedValues(t *testing.T) {
	const text = "weights: &w {a: 1}\nprinted: {of: *w, list: &l [1, *w]}\n" +
		"routing: {params: {threshold: *w, list: *l}, use: &u {params: {n: 1}, type: x}, of: [*u, {<<: *u, " +
		"admit: y}]}\n"
	for _, c := range []struct{ path, value, want string }{
		{"weights.a", "2", "weights: {a: 2}"},
		{"weights.b", "2", "weights: {a: 1, b: 2}"},
		{"printed.of.a", "3", "printed: {of: {a: 3}, list: [1, {a: 1}]}"},
		{"printed.list.0", "2", "printed: {of: {a: 1}, list: [2, {a: 1}]}"},
		{"printed.list.1.b", "2", "printed: {of: {a: 1}, list: [1, {a: 1, b: 2}]}"},
		{"routing.params.threshold.b", "20",
			"routing: {params: {threshold: {a: 1, b: 20}, list: [1, {a: 1}]}, use: USE, of: [USE, {params: {n: " +
				"1}, type: x, " +
				"admit: y}]}"},
		{"routing.use.params.n", "2",
			"routing: {params: PARAMS, use: {params: {n: 2}, type: x}, of: [USE, {params: {n: 1}, type: x, " +
				"admit: y}]}"},
		{"routing.of.0.params.n", "2",
			"routing: {params: PARAMS, use: USE, of: [{params: {n: 2}, type: x}, {params: {n: 1}, type: x, " +
				"admit: y}]}"},
		{"routing.of.1.type", "z",
			"routing: {params: PARAMS, use: USE, of: [USE, {params: {n: 1}, type: z, admit: y}]}"},
		{"routing.of.1.params.m", "2",
			"routing: {params: PARAMS, use: USE, of: [USE, {params: {n: 1, m: 2}, type: x, admit: y}]}"},
	} {
		want := strings.NewReplacer("USE", "{params: {n: 1}, type: x}",
			"PARAMS", "{threshold: {a: 1}, list: [1, {a: 1}]}").Replace(c.want)
		for _, rest := range []string{
			"weights: {a: 1}", "printed: {of: {a: 1}, list: [1, {a: 1}]}",
			"routing: {params: {threshold: {a: 1}, list: [1, {a: 1}]}, use: {params: {n: 1}, type: x}, " +
				"of: [{params: {n: 1}, type: x}, {params: {n: 1}, type: x, admit: y}]}",
		} {
			if name, _, _ := strings.Cut(rest, ":"); !strings.HasPrefix(want, name) && !strings.Contains(want,
				"\n"+name) {
				want += "\n" + rest
			}
		}
		var expected, got cluster
		if err := decode(want, &expected); err != nil {
			t.Fatalf("%s\n%v", want, err)
		}
		err := decodeSet(t, text, &got, [2]string{c.path, c.value})
		if diff := cmp.Diff(expected, got); err != nil || diff != "" {
			t.Errorf("%s=%s: %v\n%s", c.path, c.value, err, diff)
		}
	}
}

// decodeSet decodes text with some values set. If one cannot be set, it decodes the
// rest.
func decodeSet(t *testing.T, text string, v any, sets ...[2]string) (failed error) {
	t.Helper()
	doc, err := Parse("f.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, set := range sets {
		if err := doc.Set(v, set[0], set[1], &Setting{Path: set[0], Value: set[1]}); err != nil {
			failed = err
		}
	}
	if err := doc.Decode(v); err != nil {
		t.Fatalf("%v: %v", sets, err)
	}
	return failed
}
