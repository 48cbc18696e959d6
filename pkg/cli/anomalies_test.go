package cli

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"blis/pkg/gen"
	"blis/pkg/summarize"
)

var rateLine = regexp.MustCompile(`(?m)^aggregate_rate: *([0-9.]+)`)

// atLoad returns a spec file of a scenario, with a rate that gives this load on the
// default cluster if no prefix is found: no routing gives more load.
func atLoad(t *testing.T, scenario string, share float64, requests int) string {
	t.Helper()
	generated := func(o gen.Options) []byte {
		var out bytes.Buffer
		if err := gen.Run(t.Context(), nil, &out, o); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	load := *summarized(t, generated(gen.Options{Scenario: gen.Scenario(scenario), Requests: gen.Count(requests)}),
		summarize.Options{Cluster: new(string)}).Workload.Load.Uncached
	text := generated(gen.Options{Scenario: gen.Scenario(scenario), PrintSpec: true})
	found := rateLine.FindSubmatch(text)
	if found == nil {
		t.Fatalf("scenario %s has no line of aggregate_rate", scenario)
	}
	rate, err := strconv.ParseFloat(string(found[1]), 64)
	if err != nil {
		t.Fatal(err)
	}
	text = rateLine.ReplaceAll(text, fmt.Appendf(nil, "aggregate_rate: %g", rate*share/load))
	file := filepath.Join(t.TempDir(), "spec.yaml")
	if err := os.WriteFile(file, text, 0o666); err != nil {
		t.Fatal(err)
	}
	return file
}

// At half the capacity of the default cluster its policies cause no anomaly in any
// scenario.
func TestNoAnomaliesAtHalfLoad(t *testing.T) {
	if testing.Short() {
		t.Skip("plays every scenario five times")
	}
	const requests = 400
	anomalies := func(spec string, seed uint64) (all []string) {
		var out bytes.Buffer
		if err := gen.Run(t.Context(), nil, &out, gen.Options{Spec: spec, Seed: &seed,
			Requests: requests}); err != nil {
			t.Fatal(err)
		}
		for _, a := range summarized(t, simulated(t, out.Bytes(), ""), summarize.Options{}).Anomalies {
			all = append(all, a.Type+": "+a.Text)
		}
		return all
	}
	for _, scenario := range gen.Scenarios {
		t.Run(scenario.Name, func(t *testing.T) {
			spec := atLoad(t, scenario.Name, 0.5, requests)
			for seed := range uint64(5) {
				for _, a := range anomalies(spec, seed) {
					t.Errorf("seed %d: %s", seed, a)
				}
			}
		})
	}
}
