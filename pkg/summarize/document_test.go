package summarize

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	_ "blis/pkg/internal/fixedseed"
	"blis/schemas"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"
	"pgregory.net/rapid"
)

// envelope lists the keys that a document always has.
var envelope = []string{"anomalies", "artifacts", "candidates", "combined_score", "config_for_deployment", "error",
	"examples", "features", "fitness", "hints", "integrity", "metrics", "objectives", "patterns", "refs", "regret",
	"scores", "selection", "status", "warnings", "workload"}

// fitnessFile writes a fitness file that uses all features.
func fitnessFile(t *testing.T) string {
	t.Helper()
	return fileOf(t, `version: 1
slo: {critical: {ttft_ms: 250}}
gates: [{name: 'token=secret', expr: served(m.ttft.p99) < 300}, {name: '# served', expr: m.requests.completed > 2}]
score: wmean(1, m.goodput.ratio, 1, ratio(base.e2e.p99, m.e2e.p99))
objectives: {fast: -served(m.ttft.p99), fair: m.fairness.jain}
features: {hits: m.kv.prefix_hit_ratio, ITL: m.itl.p99}
`)
}

// fileOf writes a fitness file.
func fileOf(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "fitness.yaml")
	if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return name
}

func summarySchema(t *testing.T) *jsonschema.Resolved {
	t.Helper()
	text, err := schemas.Files.ReadFile("summary.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	return resolved
}

// Any input gives a document that matches its schema and has all its keys, a score in [0,
// 1), and texts that consumers accept unchanged.
func TestDocument(t *testing.T) {
	schema := summarySchema(t)
	file := fitnessFile(t)
	redacted := regexp.MustCompile(`(?i)token[=:]\s*\S+|[A-Za-z0-9]{32,}`)
	scored := 0
	rapid.Check(t, func(rt *rapid.T) {
		one, other := anyRun.Draw(rt, "run").data(rt), anyRun.Draw(rt, "baseline").data(rt)
		if rapid.IntRange(0, 4).Draw(rt, "whole") == 0 {
			one = one[:rapid.IntRange(0, len(one)-1).Draw(rt, "cut")]
		}
		o := Options{Format: "json", Fitness: &Fitness{src: file}, Baseline: []string{"base"},
			Streams: []string{"-", "more=second"}[:rapid.IntRange(1, 2).Draw(rt, "runs")],
			Open:    func(name string) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(other)), nil }}
		text, failed := summarize(one, o)
		var d map[string]any
		if err := json.Unmarshal([]byte(text), &d); err != nil {
			rt.Fatalf("%v in %s", err, text)
		}
		if err := schema.Validate(d); err != nil {
			rt.Fatalf("%v in %s", err, text)
		}
		keys := func(m any) []string {
			var all []string
			for k := range m.(map[string]any) {
				all = append(all, k)
			}
			slices.Sort(all)
			return all
		}
		if diff := cmp.Diff(envelope, keys(d)) + cmp.Diff([]string{"fair", "fast"}, keys(d["objectives"])) +
			cmp.Diff([]string{"ITL", "hits"}, keys(d["features"])); diff != "" {
			rt.Fatal(diff)
		}
		score := d["combined_score"].(float64)
		if (score == 0) != (failed != nil) || score < 0 || score >= 1 || (d["status"] == "error") != (failed != nil) {
			rt.Fatalf("score %v, status %v, error %v", score, d["status"], failed)
		}
		if score > 0 {
			scored++
		}
		flat := d["scores"].(map[string]any)
		objectives, features := d["objectives"].(map[string]any), d["features"].(map[string]any)
		if diff := cmp.Diff([]any{score, objectives["fast"], features["hits"]},
			[]any{flat["combined_score"], flat["objectives.fast"], flat["features.hits"]}); diff != "" {
			rt.Fatal(diff)
		}
		for name, x := range flat {
			if _, isNumber := x.(float64); !isNumber {
				rt.Fatalf("%s is %v", name, x)
			}
		}
		texts := map[any]bool{"": true}
		for k, v := range d["artifacts"].(map[string]any) {
			if texts[v] {
				rt.Fatalf("%s is empty or there twice: %q", k, v)
			}
			texts[v] = true
			if err := checkArtifact(v.(string)); err != nil || redacted.MatchString(v.(string)) {
				rt.Fatalf("%s: %v: %s", k, err, v)
			}
		}
	})
	// 57 % of the runs are scored: none of the 20 under -short has a probability of 5e-8, of 100 of 1e-36.
	if scored == 0 && !testing.Short() {
		t.Error("no run was scored")
	}
}

// checkArtifact returns an error if consumers do not accept the text unchanged.
func checkArtifact(text string) error {
	if len(text) > 1950 {
		return fmt.Errorf("%d characters", len(text))
	}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") || strings.HasPrefix(line, "```") {
			return fmt.Errorf("line %q", line)
		}
	}
	for _, c := range text {
		if c > '~' || c < ' ' && c != '\n' {
			return fmt.Errorf("character %q", c)
		}
	}
	return nil
}
