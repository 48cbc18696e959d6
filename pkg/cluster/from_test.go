package cluster

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestLatencyFrom: latency.from loads the coefficients of a file that are for the
// deployment's model, GPU and parallelism.
func TestLatencyFrom(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return name
	}
	write("own.yaml", `version: 1
coefficients:
  - {model: meta-llama/Llama-3.1-8B, gpu: H100, latency: {model: linear, alpha_us: [1, 2, 3], beta_us: [4, 5, 6, 7]},
     source: made up, range: {decode_sequences: [1, 9]}, settings: {async_scheduling: true}}
`)
	load := func(latency string, more ...string) (*Config, []string, error) {
		var warnings []string
		c, err := Load(write("c.yaml", "version: 1\ndeployments: [{id: main, model: meta-llama/Llama-3.1-8B-Instruct, "+
			"gpu: H100, latency: "+latency+"}]\n"),
			Options{Overrides: more, Warn: func(w string) { warnings = append(warnings, w) }})
		return c, warnings, err
	}
	c, warnings, err := load("{from: own.yaml}")
	if err != nil {
		t.Fatal(err)
	}
	l := &c.Deployments[0].Latency
	if !slices.Equal(l.BetaUS, []float64{4, 5, 6, 7}) || l.Model != "linear" || l.From != "" ||
		l.Range.DecodeSequences[1] != 9 || l.Source != "from own.yaml: made up" {
		t.Errorf("latency %+v", l)
	}
	if len(warnings) != 1 || !strings.Contains(warnings[0], "async_scheduling true") {
		t.Errorf("warnings %q", warnings)
	}
	if c, _, err = load("{from: own.yaml, alpha_us: [9, 0, 0]}"); err != nil ||
		c.Deployments[0].Latency.AlphaUS[0] != 9 {
		t.Errorf("with alpha_us: %+v, %v", c.Deployments[0].Latency, err)
	}
	for _, bad := range []struct{ latency, set, want string }{
		{"{from: none.yaml}", "", "c.yaml:2:94: deployments[0].latency.from: stat " + filepath.Join(dir, "none.yaml")},
		{"{from: own.yaml, beta_us: [1, 2, 3]}", "", "set only one of them"},
		{"{from: own.yaml}", "deployments.main.gpu=A100", "(has meta-llama/Llama-3.1-8B on H100-SXM-80GB, tensor " +
			"parallelism 1)"},
		{"{from: c.yaml}", "", "c.yaml"},
	} {
		var sets []string
		if bad.set != "" {
			sets = append(sets, bad.set)
		}
		if _, _, err := load(bad.latency, sets...); err == nil || !strings.Contains(err.Error(), bad.want) {
			t.Errorf("%s: %v, want %s", bad.latency, err, bad.want)
		}
	}
}
