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

// cheat is an admission policy that improves some number by serving less or later.
type cheat struct{ name, admit string }

// cheats are those that no score may prefer, with or without a gate.
var cheats = []cheat{
	{"reject everything", `"reject"`},
	{"delay everything forever", `"delay"`},
	{"delay everything a little", `req.delays < 5 ? "delay" : "admit"`},
	{"leave the rest unfinished at the horizon", `cluster.inflight > 20 ? "delay" : "admit"`},
	{"shed long prompts", `req.input_tokens < 800`},
	{"admit only critical", `req.slo_class == "critical"`},
	{"break sessions at their first call", `req.turn == 0.0 && cluster.inflight > 2.0 ? "reject" : "admit"`},
	{"serve the easy class only", `req.slo_class != "critical" && req.slo_class != "interactive"`},
}

// thresholdCheat is a kind of cheat with thresholds.
type thresholdCheat struct {
	name, admit string
	thresholds  []string
}

// sweeps are the cheats that a gate must stop at each threshold.
var sweeps = []thresholdCheat{
	{"reject prompts from", `req.input_tokens < %s`, []string{"300", "1000", "2000", "4000", "8000", "30000"}},
	{"reject short prompts up to", `req.input_tokens > %s`, []string{"100", "300", "1000"}},
	{"delay times", `req.delays < %s ? "delay" : "admit"`, []string{"1", "3", "20"}},
	{"delay above", `cluster.inflight > %s ? "delay" : "admit"`, []string{"5", "40", "100"}},
	{"retry and give up above", `cluster.inflight > %s ? (req.delays < 3.0 ? "delay" : "reject") : "admit"`,
		[]string{"10", "30", "60", "100"}},
	{"reject above", `cluster.inflight <= %s`, []string{"10", "40", "80", "160"}}, // clients may retry
}

// sessionSweeps are those about sessions.
var sessionSweeps = []thresholdCheat{
	{"starve sessions above", `req.turn == 0.0 && cluster.inflight > %s ? "reject" : "admit"`, []string{"4", "20"}},
	{"end sessions at turn", `req.turn < %s`, []string{"1", "5", "15", "30"}},
}

// retrySweeps are those about clients that send rejected requests again: they reject first and serve a later attempt.
var retrySweeps = []thresholdCheat{
	{"reject with probability", `rand() >= %s`, []string{"0.02", "0.05", "0.1", "0.2", "0.5", "0.9"}},
	{"reject one in", `state.turn %% %s != 0`, []string{"2", "3", "5", "10", "30"}},
	{"reject until s", `req.arrival_s >= %s`, []string{"0.5", "2", "5", "10", "20"}},
	{"reject half of each requests", `state.turn %% %[1]s * 2 >= %[1]s`,
		[]string{"4", "20", "80", "300"}},
	{"reject long prompts half of each requests", `req.input_tokens < 2000 || state.turn %% %[1]s * 2 >= %[1]s`,
		[]string{"4", "20", "80", "300"}},
	{"reject the class half of each requests", `req.slo_class != "batch" || state.turn %% %[1]s * 2 >= %[1]s`,
		[]string{"4", "20", "80", "300"}},
	{"reject every other one above", `cluster.inflight <= %s || state.turn %% 2 == 0`,
		[]string{"10", "40", "80", "160"}},
	{"let it time out, ms", `req.age_ms < %s ? "delay" : "admit"`, []string{"100", "1000", "10000", "19000"}},
}

// documented are the fitnesses of the guide and of the manual page.
var documented = []struct{ name, in, text string }{
	{"guide's", "../../docs/guide.md", `gates:
  - {name: served, expr: m.requests.completed >= m.requests.offered + m.requests.not_issued}
  - {name: at once, expr: m.requests.retries <= 0}
score: wmean(0.6, m.goodput.ratio, 0.4, soft(m.ttft.p99, 500, 3))
`},
	{"guide's relative", "../../docs/guide.md", `gates:
  - {name: served, expr: m.requests.completed >= base.requests.completed}
  - {name: at once, expr: m.requests.retries <= base.requests.retries}
score: wmean(0.6, m.goodput.ratio, 0.4, ratio(base.ttft.p99, m.ttft.p99))
`},
	{"manual's", "../../cmd/blis-summarize/main.go", `gates:
  - {name: served, expr: m.requests.completed >= base.requests.completed}
  - {name: at once, expr: m.requests.retries <= base.requests.retries}
score: ratio(base.ttft.p99, m.ttft.p99)
`},
}

// ungated are fitnesses whose terms alone must stop cheats.
var ungated = []struct{ name, text string }{
	{"attainment", "score: m.goodput.ratio\n"},
	{"weighted", `score: |
  wmean(0.5, m.goodput.ratio,
        0.3, ratio(base.ttft.p99, m.ttft.p99),
        0.2, gain(m.throughput.output_tok_s, base.throughput.output_tok_s))
`},
	{"latency and attainment", "score: wmean(0.6, m.goodput.ratio, 0.4, soft(m.ttft.p99, 200, 3))\n"},
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

// gamedWorkloads are those on which cheats are tried: their classes, tenants and the arguments of blis-sim, and the
// sweeps that only such workloads have.
// Deep research has enough replicas: with two, all sessions are late, and drawn ties move the score
// more than half a second of delays does.
var gamedWorkloads = []struct {
	scenario, requests, seed string // a scenario or the file of a spec
	classes, tenants         []string
	sim                      []string
	more                     []thresholdCheat
}{
	{"mixed-slo", "600", "5", []string{"critical", "standard", "sheddable"}, []string{"voice", "office", "archive"},
		[]string{"--horizon", "30s"}, nil},
	{"abusive-tenant", "600", "6", []string{"interactive", "standard"}, []string{"assistant", "office", "abuser"},
		[]string{"--horizon", "30s"}, nil},
	{"mixed-slo", "2000", "9", []string{"critical", "standard", "sheddable"}, nil,
		[]string{"--set", "deployments.main.replicas=3"}, nil},
	{"deep-research", "80", "3", nil, nil, []string{"--set", "deployments.main.replicas=4"}, sessionSweeps},
	{"../../testdata/feedback/retries.yaml", "900", "7", []string{"interactive", "batch"}, []string{"chat", "reports"},
		[]string{"--set", "deployments.main.replicas=1"}, retrySweeps}, // 91 attempts time out
	{"../../testdata/feedback/retries.yaml", "900", "7", []string{"interactive", "batch"}, []string{"chat", "reports"},
		[]string{"--set", "deployments.main.replicas=2"}, retrySweeps}, // none does
}

// allCheats are the cheats and all thresholds of the sweeps.
func allCheats(classes, tenants []string, more []thresholdCheat) []cheat {
	all := slices.Clone(cheats)
	for _, s := range slices.Concat(sweeps, more, []thresholdCheat{
		{"reject the class", `req.slo_class != "%s"`, classes},
		{"reject the tenant", `req.tenant != "%s"`, tenants}}) {
		for _, x := range s.thresholds {
			all = append(all, cheat{s.name + " " + x, fmt.Sprintf(s.admit, x)})
		}
	}
	return all
}

// scores are the scores of runs in a directory by their names, with a fitness and the run baseline.
func scores(t *testing.T, dir, fitness string, names []string) map[string]float64 {
	t.Helper()
	file := filepath.Join(dir, "fitness.yaml")
	if err := os.WriteFile(file, []byte("version: 1\n"+fitness), 0o666); err != nil {
		t.Fatal(err)
	}
	args := []string{"--fitness", file, "--baseline", filepath.Join(dir, "baseline"), "--format", "json"}
	for _, name := range names {
		args = append(args, fmt.Sprintf("run %s=%s", name, filepath.Join(dir, name)))
	}
	var d struct {
		Candidates []struct {
			Runs []struct {
				Name  string
				Score float64
			}
		}
	}
	if err := json.NewDecoder(strings.NewReader(ran(t, Summarize, args...))).Decode(&d); err != nil && err != io.EOF {
		t.Fatal(err)
	}
	found := map[string]float64{}
	for _, c := range d.Candidates {
		for _, r := range c.Runs {
			found[strings.TrimPrefix(r.Name, "run ")] = r.Score
		}
	}
	return found
}

// No cheat scores above the honest baseline: with the documented fitnesses, whose gates ask that requests
// are served at once, at any threshold, and with others that have no gate, where requests that are not served count
// as missed and as infinitely late.
func TestCheatsScoreBelowBaseline(t *testing.T) {
	if testing.Short() {
		t.Skip("simulates all cheats on all workloads; run without -short")
	}
	for _, w := range gamedWorkloads {
		dir, names := t.TempDir(), []string{"baseline"}
		at := func(name string) string { return filepath.Join(dir, name) }
		spec := []string{"--scenario", w.scenario}
		if strings.HasSuffix(w.scenario, ".yaml") {
			spec = []string{w.scenario}
		}
		ran(t, Gen, append(spec, "--requests", w.requests, "--seed", w.seed, "-o", at("w"))...)
		simulate := func(name string, more ...string) {
			ran(t, Sim, slices.Concat([]string{"--trace", "minimal", "-o", at(name), at("w")}, w.sim, more)...)
		}
		simulate("baseline")
		tried := allCheats(w.classes, w.tenants, w.more)
		for i, c := range tried {
			names = append(names, fmt.Sprint(i))
			simulate(names[i+1], "--set", "admission={type: expression, admit: '"+c.admit+
				"', state: {turn: {init: 0, update: state.turn + 1}}}")
		}
		check := func(fitness, text string, names []string) {
			found := scores(t, dir, text, names)
			honest := found["baseline"]
			t.Logf("%-15s %-22s %.4f  baseline", w.scenario, fitness, honest)
			for i := range names[1:] {
				x := found[names[i+1]]
				t.Logf("%-15s %-22s %.4f  %s", w.scenario, fitness, x, tried[i].name)
				if x > honest || x <= 0 {
					t.Errorf("%s, %s: %s scores %v, the baseline %v", w.scenario, fitness, tried[i].name, x, honest)
				}
			}
		}
		for _, f := range documented {
			check(f.name, f.text, names)
		}
		for _, f := range ungated {
			check(f.name, f.text, names[:1+len(cheats)])
		}
	}
}

// The fitnesses of the test above are those of the documents.
func TestFitnessesAreDocumented(t *testing.T) {
	for _, f := range documented {
		doc, err := os.ReadFile(f.in)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(f.text) {
			if !bytes.Contains(doc, []byte(line)) {
				t.Errorf("%s does not have %q", f.in, line)
			}
		}
	}
}
