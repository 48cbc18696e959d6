package cli

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var updateFeedback = flag.Bool("update-feedback", false, "rewrite the summary texts in testdata/feedback")

// goldenRun is a run with a golden text.
type goldenRun struct {
	name string
	// workload and run are the arguments of blis-gen and blis-sim.
	workload, run string
	exitCode      int // of blis-sim
}

// herd are routing and snapshots that send requests in herds to the same replica.
const herd = "--set routing={type:weighted,params:{queue-depth:1,tie:first}} " +
	"--set control_plane.snapshots.default=periodic\x005s"

var goldenRuns = []goldenRun{
	{name: "healthy", workload: "--scenario prefix-heavy --requests 400", run: "--counterfactual 3"},
	{name: "overloaded", workload: "--scenario sanity --requests 800",
		run: "--counterfactual 3 --set deployments.main.replicas=2 " +
			"--set admission={type:tree,root:{if:cluster.inflight>5000,then:reject,else:admit}}"},
	{name: "prefix-blind", workload: "--scenario documents --requests 400",
		run: "--set routing.type=least-loaded --set deployments.main.replicas=3"},
	{name: "stale-signals", workload: "--scenario prefix-heavy --requests 600",
		run: "--counterfactual exact:1 " + herd},
	{name: "abusive-tenant", workload: "--scenario abusive-tenant --requests 900",
		run: "--set deployments.main.replicas=2 --trace full --seed 4"},
	{name: "three-tenants", workload: "../../testdata/feedback/three-tenants.yaml",
		run: "--counterfactual 3 --set routing={type:weighted,params:{queue-depth:2,prefix-affinity:0.4}} " +
			"--set deployments.main.replicas=3 --set control_plane.snapshots.default=periodic\x00200ms --seed 1"},
	{name: "broken-policy", workload: "--scenario sanity --requests 5", run: "-p ../../testdata/feedback/broken.yaml",
		exitCode: 1},
}

// args splits text at spaces; \x00 is a space within an argument.
func args(text string) (all []string) {
	for _, a := range strings.Fields(text) {
		all = append(all, strings.ReplaceAll(a, "\x00", " "))
	}
	return all
}

// piped runs a tool on in and returns what it writes.
func piped(t *testing.T, tool Tool, in []byte, exitCode int, args ...string) []byte {
	t.Helper()
	var out, diagnostics bytes.Buffer
	if got := tool.run(t.Context(), args, standardStreams{bytes.NewReader(in), &out, &diagnostics}); got != exitCode {
		t.Fatalf("%s %q exits with %d: %s", tool.name, args, got, diagnostics.String())
	}
	return out.Bytes()
}

// simulate makes the run, uncompressed.
func (x *goldenRun) simulate(t *testing.T) []byte {
	t.Helper()
	workload := piped(t, Gen, nil, 0, append(args(x.workload), "--plain")...)
	return piped(t, Sim, workload, x.exitCode, append(args(x.run), "--plain")...)
}

// The texts of seven runs equal those in testdata/feedback, and a second, independent reader of the
// runs computes the same numbers.
func TestSummaryTexts(t *testing.T) {
	for _, x := range goldenRuns {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			run := x.simulate(t)
			text := piped(t, Summarize, run, 0, "--max-tokens", "1500")
			golden := filepath.Join(root, "testdata", "feedback", x.name+".txt")
			if *updateFeedback {
				must(t, os.WriteFile(golden, text, 0o666))
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(text)); diff != "" {
				t.Errorf("-golden +now (go test ./pkg/cli -run SummaryTexts -update-feedback):\n%s", diff)
			}
			if x.exitCode == 0 && !testing.Short() { // slow: every number is counted again
				readPlainly(t, run).check(t, string(text))
			}
		})
	}
}

// The examples in texts about files that do not load are files that load.
func TestExamplesInFailuresLoad(t *testing.T) {
	workload := piped(t, Gen, nil, 0, "--scenario", "sanity", "--requests", "5", "--plain")
	dir := t.TempDir()
	for i, broken := range []string{"routing: {type: weighted, params: {x: 1}}",
		"routing: {type: expression, score: nothing}", "admission: {type: expression, admit: nothing}",
		"priority: {type: none}", "scheduler: {type: none}", "routng: {type: random}",
		"deployments: [{id: main, replicas: 0}]"} {
		name := filepath.Join(dir, fmt.Sprint(i, ".yaml"))
		must(t, os.WriteFile(name, []byte(broken+"\n"), 0o666))
		flag := "-p"
		if strings.HasPrefix(broken, "deployments") {
			flag = "-c"
		}
		text := string(piped(t, Summarize, piped(t, Sim, workload, 1, flag, name), 0))
		_, example, found := strings.Cut(text, " that loads\n")
		example, _, _ = strings.Cut(example, "[MORE]")
		if !found || !strings.Contains(text, fmt.Sprint("/", i, ".yaml")) ||
			flag == "-p" && !strings.Contains(text, ".yaml, line 1, column ") {
			t.Errorf("the text about %s is\n%s", broken, text)
			continue
		}
		flag = "-p"
		if strings.Contains(example, "deployments:") {
			flag = "-c"
		}
		must(t, os.WriteFile(name, []byte(regexp.MustCompile(`(?m)^  `).ReplaceAllString(example, "")), 0o666))
		piped(t, Sim, workload, 0, flag, name)
	}
}

// faultyRuns are runs with a planted fault and the first pattern that reports it, and runs without a
// fault, some of them near their capacity, without a pattern.
var faultyRuns = []struct{ name, workload, run, want string }{
	{"stale signals", "--scenario prefix-heavy --requests 700", herd, "P1 stale_signal, routing weighted"},
	{"stale signals, three classes", "--scenario mixed-slo --requests 1200", herd, "P1 stale_signal, routing weighted"},
	{"hot prefix", "../../testdata/feedback/hot-prefix.yaml",
		"--set routing={type:weighted,params:{prefix-affinity:10,queue-depth:1}}",
		"P1 hot_prefix, routing weighted"},
	{"abusive tenant", "--scenario abusive-tenant --requests 2000",
		"--set deployments.main.replicas=3", "P1 behind_tenant abuser, admission always-admit"},
	{"wrong weights", "--scenario mixed-slo --requests 1200",
		"--set deployments.main.replicas=2 --set priority.type=inverted-slo --set scheduler.type=priority-fcfs",
		"P1 overtaken, scheduling inverted-slo + priority-fcfs"},
	{"small cache", "--scenario documents --requests 700",
		"--set deployments.main.engine.num_gpu_blocks_override=8000", "P1 evicted, cache last-in"},
	{"admission never fires", "--scenario sanity --requests 700",
		"--set deployments.main.replicas=2 " +
			"--set admission={type:tree,root:{if:cluster.inflight>5000,then:reject,else:admit}}",
		"P1 overload, admission tree, rule admission.root.if"},
	{"tiny cache", "--scenario mixed-slo --requests 1200",
		"--set deployments.main.engine.num_gpu_blocks_override=1500", "P1 cache_full, cache last-in"},
	{"few batch slots", "--scenario sanity --requests 700",
		"--set deployments.main.engine.max_num_seqs=3", "P1 batch_slots_full, engine"},
	{"delays", "--scenario mixed-slo --requests 700",
		"--set admission={type:expression,admit:'req.delays<20?\"delay\":\"admit\"'}",
		"P1 delayed, admission expression, rule admission.admit"},
	{"limits of engines", "--scenario mixed-slo --requests 700",
		"--set deployments.main.engine.max_model_len=700", "P1 unservable, engine"},
	{"no fault", "--scenario prefix-heavy --requests 700", "", ""},
	{"no fault, hot prefix", "../../testdata/feedback/hot-prefix.yaml", "", ""},
	{"no fault, documents", "--scenario documents --requests 700", "", ""},
	{"no fault, three classes", "--scenario mixed-slo --requests 1200",
		"--set deployments.main.replicas=8 --set priority.type=slo-based --set scheduler.type=priority-fcfs", ""},
}

// The first pattern reports the planted fault, whatever the seed.
func TestFirstPatternReportsTheFault(t *testing.T) {
	if testing.Short() {
		t.Skip("simulates many runs; run without -short")
	}
	for _, x := range faultyRuns {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			for _, seed := range []string{"1", "2", "3"} {
				workload := piped(t, Gen, nil, 0, append(args(x.workload), "--seed", seed)...)
				run := piped(t, Sim, workload, 0, args(x.run)...)
				text := string(piped(t, Summarize, run, 0, "--max-tokens", "1500"))
				first := firstPattern.FindString(text)
				if first != x.want {
					t.Errorf("seed %s: %q, not %q:\n%s", seed, first, x.want, text)
				}
				if strings.Contains(x.name, "never") && !strings.Contains(text, "NEVER fired, 0 of 700") {
					t.Errorf("seed %s: the text does not report that the rule never fired:\n%s", seed, text)
				}
			}
		})
	}
}

var firstPattern = regexp.MustCompile(`(?m)^P1 .*$`)
