package gen

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"blis/pkg/stream"
)

// TestSet: --set changes values of a spec before the other options, and the workload is that of a spec with them.
func TestSet(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const spec = "version: \"2\"\nseed: 1\n" +
		"aggregate_rate: 5\nrequests: 30\nclients:\n  - id: a\n" +
		"    rate_fraction: 1\n    arrival: {process: poisson}\n" +
		"    input_distribution: {type: constant, params: {value: 100}}\n" +
		"    output_distribution: {type: constant, params: {value: 10}}\n"
	file := write("spec.yaml", spec)
	run := func(o Options) (string, error) {
		var out bytes.Buffer
		o.Plain, o.Version = true, stream.Version
		err := Run(context.Background(), strings.NewReader(""), &out, o)
		return out.String(), err
	}
	want, err := run(Options{Spec: write("other.yaml", strings.NewReplacer("value: 100", "value: 70", "rate: 5",
		"rate: 9").Replace(spec))})
	if err != nil {
		t.Fatal(err)
	}
	settings := write("set.json", `{"aggregate_rate": 9}`)
	for _, sets := range [][]string{
		{"clients.a.input_distribution.params.value=70", "aggregate_rate=9"},
		{"clients.0.input_distribution={type: constant, params: {value: 70}}", "@" + settings},
	} {
		got, err := run(Options{Spec: file, Set: sets})
		if err != nil || got != want {
			t.Errorf("%q: %v, or other bytes than those of the spec", sets, err)
		}
	}
	if got, err := run(Options{Spec: file, Rate: 9, Set: []string{"aggregate_rate=7",
		"clients.a.input_distribution.params.value=70"}}); err != nil || got != want {
		t.Errorf("--rate does not replace the rate of --set: %v", err)
	}
	printed, err := run(Options{Spec: file, Set: []string{"aggregate_rate=9"}, PrintSpec: true})
	if err != nil || !strings.Contains(printed, `"aggregate_rate": 9`) {
		t.Errorf("--print-spec: %v %s", err, printed)
	}
	for set, want := range map[string]string{
		"aggregate_rat=9":              `unknown field "aggregate_rat"; did you mean "aggregate_rate"?`,
		"clients.b.id=x":               `unknown element "b"; did you mean "a"? (have a)`,
		"aggregate_rate=x":             `must be a number, is "x"`,
		"clients.a.rate_fraction=-1":   "--set clients.a.rate_fraction=-1",
		"clients.a.arrival.process=ux": `unknown arrival process "ux"`,
		"aggregate_rate":               "must be PATH=VALUE or @FILE",
	} {
		if _, err := run(Options{Spec: file, Set: []string{set}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("--set %s: %v", set, err)
		}
	}
	_, err = run(Options{Import: []Import{{Format: "csv", File: file}}, Set: []string{"a=1"}})
	if err == nil || !strings.Contains(err.Error(), "--set overrides a value of a spec, which --import does not have") {
		t.Errorf("--set of an import: %v", err)
	}
}
