package hardware

import (
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"blis/pkg/latency"
)

const ownSet = `version: 1
coefficients:
  - model: org/Model
    gpu: x-one
    tensor_parallel_size: 2
    engine: vLLM 0.15.1
    settings: {async_scheduling: true}
    latency: {model: linear, alpha_us: [1, 2, 3], beta_us: [4, 5, 6]}
    range: {decode_sequences: [1, 64], context_tokens: [100, 800]}
    source: measured here
    recordings: [{file: a.jsonl, digest: "ab", requests: 7}]
    ci: {level: 0.95, beta_us: [[3, 5], [4, 6], [6, 6]]}
    errors: [{metric: e2e.mean, data: another day, percent: -1.5}]
    warnings: [mind the gap]
`

// coefficients returns the coefficients for a key, which may have any name of a GPU.
func coefficients(c *Catalog, key Key) (*Set, bool) {
	g, err := c.GPU(key.GPU)
	if err != nil {
		return nil, false
	}
	key.GPU = g.ID
	i := slices.IndexFunc(c.sets, func(s *Set) bool { return s.Key.same(key) })
	if i < 0 {
		return nil, false
	}
	return c.sets[i], true
}

func TestSets(t *testing.T) {
	// The set comes before the GPU that it names.
	dir := write(t, map[string]string{"a.yaml": ownSet, "b.yaml": ownGPU})
	c := open(t, dir)
	key := Key{Model: "org/model", GPU: "X1", TensorParallelSize: 2, PipelineParallelSize: 1, DataParallelSize: 1}
	s, ok := coefficients(c, key)
	if !ok {
		t.Fatalf("no coefficients for %+v", key)
	}
	if s.GPU != "X1" || !*s.Settings.AsyncScheduling || s.Recordings[0].Requests != 7 ||
		s.Errors[0].Percent != -1.5 || s.Warnings[0] != "mind the gap" {
		t.Errorf("read %+v", s)
	}
	m, err := s.Latency.Build(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if us := m.Step(latency.Batch{Prefill: 1, Decode: 1}); us != 15 {
		t.Errorf("a step takes %d µs, want 4 + 5 + 6", us)
	}
	for _, other := range []func(*Key){
		func(k *Key) { k.Model = "org/Mode" },
		func(k *Key) { k.GPU = "H100" },
		func(k *Key) { k.GPU = "unheard of" },
		func(k *Key) { k.TensorParallelSize = 1 },
		func(k *Key) { k.PipelineParallelSize = 2 },
		func(k *Key) { k.DataParallelSize = 2 },
	} {
		k := key
		other(&k)
		if _, ok := coefficients(c, k); ok {
			t.Errorf("coefficients for %+v", k)
		}
	}
	// A later file's replace them, and a file may be given by itself.
	again := write(t, map[string]string{"c.yaml": strings.Replace(ownSet, "[4, 5, 6]", "[40, 5, 6]", 1)})
	c = open(t, dir, filepath.Join(again, "c.yaml"))
	if s, ok := coefficients(c, key); !ok || s.Latency.BetaUS[0] != 40 {
		t.Errorf("replaced by %+v", s)
	}
	if n := len(c.Sets()); n != len(open(t).Sets())+1 {
		t.Errorf("%d sets", n)
	}
}

// TestBuiltInSets: each has its errors, range or warnings.
func TestBuiltInSets(t *testing.T) {
	c := open(t)
	for _, s := range c.Sets() {
		if have, ok := coefficients(c, s.Key); !ok || have != s {
			t.Errorf("%+v is not found", s.Key)
		}
		if s.Engine == "" || s.Method == "" || len(s.Errors) == 0 || len(s.Range.DecodeSequences) == 0 {
			t.Errorf("%+v has no accuracy", s.Key)
		}
	}
	if _, ok := coefficients(c, Key{"meta-llama/Llama-3.1-8B", "H100", 1, 1, 1}); !ok {
		t.Error("no Llama-3.1-8B on one H100")
	}
}

func TestOutside(t *testing.T) {
	measured := Range{DecodeSequences: Span{8, 64}, ContextTokens: Span{100, 800}, InputTokens: Span{1, 2}}
	got := measured.Extrapolations(Range{DecodeSequences: Span{1, 300}, ContextTokens: Span{100, 800},
		PrefillTokens: Span{0, 9}})
	want := []string{"decode_sequences go down to 1; the measured range is 8 to 64",
		"decode_sequences go up to 300; the measured range is 8 to 64"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestInvalidSets(t *testing.T) {
	for _, x := range []struct{ old, new, want string }{
		{"model: org/Model", `model: ""`, "a.yaml:3:12: coefficients[0].model: must be given"},
		{"gpu: x-one", "gpu: x-ome", `coefficients[0].gpu: unknown GPU "x-ome"; did you mean "X-One"?`},
		{"size: 2", "size: 0", "a.yaml:5:27: coefficients[0].tensor_parallel_size: must be between 1 and 4096, is 0"},
		{"size: 2", "size: 2\n    data_parallel: 1",
			`unknown field "data_parallel"; did you mean "data_parallel_size"?`},
		{"model: linear", "model: liner",
			`coefficients[0].latency: unknown latency model "liner"; did you mean "linear"?`},
		{"model: linear", "model: table", "coefficients[0].latency: beta_us has no effect on a table"},
		{"model: linear", "model: roofline", "coefficients[0].latency: "},
		{"beta_us: [4, 5, 6]}", "beta_us: [4, 5, 6], table: {step_us: [1]}}",
			"a table has no effect on the model linear"},
		{"model: linear", "model: tabel, table: {step_us: [1]}",
			`coefficients[0].latency: unknown latency model "tabel"; did you mean "table"?`},
		{"beta_us: [4, 5, 6]", "beta_us: [4, 5]", "coefficients[0].latency: beta_us must have 3 or 4 numbers, has 2"},
		{"[1, 64]", "[64, 1]",
			"a.yaml:9:31: coefficients[0].range.decode_sequences: must be [least, largest], is [64 1]"},
		{"[1, 64]", "[1, 2e12]", "must be [least, largest], is [1 2e+12]"},
		{"[4, 6]", "[4]", "ci.beta_us[1]: must be [lo, hi], is [4]"},
		{"[1, 64]", "[64]", "must be [least, largest], is [64]"},
		{"source: measured here", `source: " "`, "coefficients[0].source: must say what was measured"},
		{"metric: e2e.mean, ", "", "coefficients[0].errors[0]: must have metric and data"},
		{"level: 0.95", "level: 95", "coefficients[0].ci.level: must be a probability"},
		{"[[3, 5], [4, 6], [6, 6]]", "[[3, 5]]", "ci.beta_us: must have 3 intervals, one for each coefficient, has 1"},
		{"[4, 6]", "[6, 4]", "ci.beta_us[1]: must be [lo, hi], is [6 4]"},
		{"coefficients:\n", "coefficients:\n  - {model: org/model, gpu: X1, tensor_parallel_size: 2, source: s, " +
			"latency: {model: linear, alpha_us: [0, 0, 0], beta_us: [1, 1, 1]}}\n",
			"an earlier entry of this file is for the same"},
	} {
		dir := write(t, map[string]string{"a.yaml": strings.Replace(ownSet, x.old, x.new, 1), "b.yaml": ownGPU})
		if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: error %v, want %q", x.new, err, x.want)
		}
	}
}

// TestTableInAFile: a table of steps is read as blis-calibrate writes it.
func TestTableInAFile(t *testing.T) {
	text := strings.Replace(ownSet, "{model: linear, alpha_us: [1, 2, 3], beta_us: [4, 5, 6]}",
		"{model: table, alpha_us: [0, 0, 0], table: {prefill_tokens: [0], decode_sequences: [0, 10], "+
			"context_tokens: [0], step_us: [100, 200.5]}}", 1)
	text = strings.Replace(text, ", beta_us: [[3, 5], [4, 6], [6, 6]]", "", 1)
	c := open(t, write(t, map[string]string{"a.yaml": text, "b.yaml": ownGPU}))
	s, ok := coefficients(c, Key{"org/Model", "X1", 2, 1, 1})
	if !ok {
		t.Fatal("not found")
	}
	m, err := s.Latency.Build(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if us := m.Step(latency.Batch{Decode: 10, Context: 5000}); us != 201 {
		t.Errorf("a step takes %d µs, want 201", us)
	}
}

// factorSet is a set with the factors of kernels.
var factorSet = strings.NewReplacer("{model: linear, alpha_us: [1, 2, 3], beta_us: [4, 5, 6]}", "{model: operators, "+
	"alpha_us: [1, 2, 3], factors: {step_us: 4, prefill: 1, sequence_us: 5, context_us: 6}}",
	", beta_us: [[3, 5], [4, 6], [6, 6]]", ", factors: {prefill: [0.5, 2]}").Replace(ownSet)

// TestIntervalsOfFactors: they are two numbers in order.
func TestIntervalsOfFactors(t *testing.T) {
	for interval, ok := range map[string]bool{"[0.5, 2]": true, "[2, 2]": true, "[2, 0.5]": false, "[1]": false,
		"[1, 2, 3]": false} {
		text := strings.Replace(factorSet, "[0.5, 2]", interval, 1)
		_, err := Open(write(t, map[string]string{"a.yaml": text, "b.yaml": ownGPU}))
		if (err == nil) != ok || err != nil && !strings.Contains(err.Error(), "ci.factors.prefill: must be [lo, hi]") {
			t.Errorf("%s: error %v", interval, err)
		}
	}
}

// TestSetAsYAML: a written set is read again as it was. Parallelism that a file does not state is 1.
func TestSetAsYAML(t *testing.T) {
	read := func(text string) *Set {
		t.Helper()
		c := open(t, write(t, map[string]string{"a.yaml": text, "b.yaml": ownGPU}))
		i := slices.IndexFunc(c.Sets(), func(s *Set) bool { return s.Model == "org/Model" })
		return c.Sets()[i]
	}
	for _, text := range []string{ownSet, factorSet} {
		s := read(text)
		written := s.YAML()
		if again := read(written); !reflect.DeepEqual(again, s) {
			t.Errorf("%+v, want %+v", again, s)
		}
		if strings.Contains(written, `""`) || strings.Contains(written, " {}") || strings.Contains(written, "method") {
			t.Errorf("what is empty is written:\n%s", written)
		}
	}
	if text := read(ownSet).YAML(); !strings.Contains(text, "alpha_us: [1, 2, 3], beta_us: [4, 5, 6]") {
		t.Error(text)
	}
	// With intervals of both kinds, a comment says which is which.
	s := read(ownSet)
	if text := s.YAML(); strings.Contains(text, "#") {
		t.Errorf("a comment without intervals:\n%s", text)
	}
	s.CI.Level, s.Uncertainty.Level = 0.9, 0.9
	if text := s.YAML(); strings.Count(text, "#") != 2 ||
		!strings.Contains(text, "\n    # of a fit to the data alone: ") ||
		!strings.Contains(text, "\n    # of the coefficients above\n    uncertainty: {level: 0.9}") {
		t.Errorf("comments of intervals:\n%s", text)
	}
	key := read(strings.Replace(ownSet, "    tensor_parallel_size: 2\n", "", 1)).Key
	if key.TensorParallelSize != 1 || key.String() != "org/Model on X1, tensor parallelism 1" {
		t.Errorf("%s", key)
	}
	key.PipelineParallelSize, key.DataParallelSize = 2, 3
	const want = "org/Model on X1, tensor parallelism 1, pipeline parallelism 2, data parallelism 3"
	if key.String() != want {
		t.Errorf("%s, want %s", key, want)
	}
}

// TestWiden: a span begins with its first value.
func TestWiden(t *testing.T) {
	var s Span
	s.Widen()
	if s.Widen(5, 3, 4); !slices.Equal(s, Span{3, 5}) {
		t.Errorf("%v", s)
	}
	if s.Widen(9); !slices.Equal(s, Span{3, 9}) {
		t.Errorf("%v", s)
	}
}
