package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// cheats are admission policies that improve some number by serving less.
var cheats = []struct{ name, admission string }{
	{"reject everything", `{type: reject-all}`},
	{"delay everything forever", `{type: expression, admit: '"delay"'}`},
	{"delay everything a little", `{type: expression, admit: 'req.delays < 5 ? "delay" : "admit"'}`},
	{"leave the rest unfinished at the horizon",
		`{type: expression, admit: 'cluster.inflight > 20 ? "delay" : "admit"'}`},
	{"shed long prompts", `{type: expression, admit: 'req.input_tokens < 800'}`},
	{"admit only critical", `{type: expression, admit: 'req.slo_class == "critical"'}`},
	{"break sessions at their first call",
		`{type: expression, admit: 'req.turn == 0.0 && cluster.inflight > 2.0 ? "reject" : "admit"'}`},
	{"serve the easy class only",
		`{type: expression, admit: 'req.slo_class != "critical" && req.slo_class != "interactive"'}`},
}

// fitnesses are those that no cheat may improve.
var fitnesses = []struct{ name, text string }{
	{"attainment", "version: 1\nscore: m.goodput.ratio\n"},
	{"weighted", `version: 1
score: |
  wmean(0.5, m.goodput.ratio,
        0.3, ratio(base.ttft.p99, m.ttft.p99),
        0.2, gain(m.throughput.output_tok_s, base.throughput.output_tok_s))
`},
	{"readme's", "version: 1\nscore: wmean(0.6, m.goodput.ratio, 0.4, soft(m.ttft.p99, 200, 3))\n"},
	{"gated", `version: 1
gates: [{name: served, expr: m.requests.completed >= 0.95 * base.requests.completed}]
score: wmean(0.5, ratio(base.ttft.p99, m.ttft.p99), 0.5, soft(m.e2e.p99, base.e2e.p99, 3))
`},
}

// ran runs a tool in this process and returns its output; the test fails if the tool does.
func ran(t *testing.T, tool Tool, args ...string) string {
	t.Helper()
	var out, diagnostics bytes.Buffer
	std := standardStreams{In: strings.NewReader(""), Out: &out, Err: &diagnostics}
	if code := tool.run(t.Context(), args, std); code != exitOK {
		t.Fatalf("%v: exit %d: %s", args, code, &diagnostics)
	}
	return out.String()
}

// gamedWorkloads are those on which cheats are tried, with the arguments of blis-sim and the cheats
// that are honest there: without a horizon delayed requests are served later, and more of the offered
// ones meet their targets; and where all requests are of the easy class, all are served. Half a second of
// delays matters less to long sessions than other draws do, so with some seeds it scores higher.
var gamedWorkloads = []struct {
	scenario, requests, seed string
	sim, honest              []string
}{
	{"mixed-slo", "600", "5", []string{"--horizon", "30s"}, nil},
	{"abusive-tenant", "600", "6", []string{"--horizon", "30s"}, nil},
	{"mixed-slo", "2000", "9", []string{"--set", "deployments.main.replicas=3"}, nil},
	{"deep-research", "150", "3", []string{"--set", "deployments.main.replicas=2"},
		[]string{cheats[2].name, cheats[3].name, cheats[len(cheats)-1].name}},
}

// Each cheat scores below the honest baseline, by attainment, by weighted scores, and by latencies
// alone with a gate. The others have no gate: unserved requests count as missed and reduce the value
// of latencies.
func TestCheatsScoreBelowBaseline(t *testing.T) {
	if testing.Short() {
		t.Skip("simulates all cheats on all workloads; run without -short")
	}
	for _, w := range gamedWorkloads {
		dir := t.TempDir()
		at := func(name string) string { return filepath.Join(dir, name) }
		ran(t, Gen, "--scenario", w.scenario, "--requests", w.requests, "--seed", w.seed, "-o", at("w"))
		simulate := func(name string, more ...string) {
			ran(t, Sim, slices.Concat([]string{"--trace", "minimal", "-o", at(name), at("w")}, w.sim, more)...)
		}
		simulate("baseline")
		for i, c := range cheats {
			simulate(fmt.Sprint(i), "--set", "admission="+c.admission)
		}
		for _, f := range fitnesses {
			if err := os.WriteFile(at("fitness.yaml"), []byte(f.text), 0o666); err != nil {
				t.Fatal(err)
			}
			score := func(name string) float64 {
				var d struct {
					Score float64 `json:"combined_score"`
				}
				text := ran(t, Summarize, "--fitness", at("fitness.yaml"), "--baseline", at("baseline"), "--format",
					"json", at(name))
				if err := json.NewDecoder(strings.NewReader(text)).Decode(&d); err != nil && err != io.EOF {
					t.Fatal(err)
				}
				return d.Score
			}
			honest := score("baseline")
			t.Logf("%-15s %-11s %.4f  baseline", w.scenario, f.name, honest)
			for i, c := range cheats {
				if slices.Contains(w.honest, c.name) {
					continue
				}
				x := score(fmt.Sprint(i))
				t.Logf("%-15s %-11s %.4f  %s", w.scenario, f.name, x, c.name)
				if x >= honest || x <= 0 {
					t.Errorf("%s, %s: %s scores %v, the baseline %v", w.scenario, f.name, c.name, x, honest)
				}
			}
		}
	}
}
