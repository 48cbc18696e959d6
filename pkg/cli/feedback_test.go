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

var updateFeedback = flag.Bool("update-feedback", false, "write the summary texts in testdata/feedback anew")

// told is a run whose text is known.
type told struct {
	name string
	// workload and run are the arguments of blis-gen and blis-sim.
	workload, run string
	code          int // of blis-sim
}

// tellings are runs that a text should be worth reading of.
var tellings = []told{
	{name: "healthy", workload: "--scenario prefix-heavy --requests 400", run: "--counterfactual 3"},
	{name: "overloaded", workload: "--scenario sanity --requests 800", run: "--counterfactual 3 --set deployments.main.replicas=2 " +
		"--set admission={type:tree,root:{if:cluster.inflight>5000,then:reject,else:admit}}"},
	{name: "prefix-blind", workload: "--scenario documents --requests 400", run: "--set routing.type=least-loaded --set deployments.main.replicas=3"},
	{name: "stale-signals", workload: "--scenario prefix-heavy --requests 600", run: "--counterfactual exact:1 --set routing={type:weighted,params:{queue-depth:1}} --set control_plane.snapshots.default=periodic\x005s"},
	{name: "abusive-tenant", workload: "--scenario abusive-tenant --requests 900", run: "--set deployments.main.replicas=2 --trace full"},
	{name: "three-tenants", workload: "../../testdata/feedback/three-tenants.yaml", run: "--counterfactual 3 --set routing={type:weighted,params:{queue-depth:2,prefix-affinity:0.2}} --set deployments.main.replicas=3 " +
		"--set control_plane.snapshots.default=periodic\x00200ms"},
	{name: "broken-policy", workload: "--scenario sanity --requests 5", run: "-p ../../testdata/feedback/broken.yaml", code: 1},
}

// args are what stands between the spaces of text; \x00 is a space within one.
func args(text string) (all []string) {
	for _, a := range strings.Fields(text) {
		all = append(all, strings.ReplaceAll(a, "\x00", " "))
	}
	return all
}

// piped runs a tool on in and returns what it writes.
func piped(t *testing.T, tool Tool, in []byte, code int, args ...string) []byte {
	t.Helper()
	var out, diagnostics bytes.Buffer
	if got := tool.run(t.Context(), args, Std{bytes.NewReader(in), &out, &diagnostics}); got != code {
		t.Fatalf("%s %q ends with %d: %s", tool.name, args, got, diagnostics.String())
	}
	return out.Bytes()
}

// play makes the run, plain.
func (x *told) play(t *testing.T) []byte {
	t.Helper()
	workload := piped(t, Gen, nil, 0, append(args(x.workload), "--plain")...)
	return piped(t, Sim, workload, x.code, append(args(x.run), "--plain")...)
}

// The texts of seven runs are those in testdata/feedback, and a second, plain reader of
// the runs finds all their numbers again.
func TestSummaryTexts(t *testing.T) {
	for _, x := range tellings {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			run := x.play(t)
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
			if x.code == 0 && !testing.Short() { // counts anew for every number
				readPlainly(t, run).check(t, string(text))
			}
		})
	}
}

// The examples in texts about what does not load do load.
func TestExamplesInFailuresLoad(t *testing.T) {
	workload := piped(t, Gen, nil, 0, "--scenario", "sanity", "--requests", "5", "--plain")
	dir := t.TempDir()
	for i, broken := range []string{"routing: {type: weighted, params: {x: 1}}", "routing: {type: expression, score: nothing}", "admission: {type: expression, admit: nothing}", "priority: {type: none}",
		"scheduler: {type: none}", "routng: {type: random}", "deployments: [{id: main, replicas: 0}]"} {
		name := filepath.Join(dir, fmt.Sprint(i, ".yaml"))
		must(t, os.WriteFile(name, []byte(broken+"\n"), 0o666))
		flag := "-p"
		if strings.HasPrefix(broken, "deployments") {
			flag = "-c"
		}
		text := string(piped(t, Summarize, piped(t, Sim, workload, 1, flag, name), 0))
		_, example, found := strings.Cut(text, " that loads\n")
		example, _, _ = strings.Cut(example, "[MORE]")
		if !found || !strings.Contains(text, fmt.Sprint("/", i, ".yaml")) || flag == "-p" && !strings.Contains(text, ".yaml, line 1, column ") {
			t.Errorf("of %s the text is\n%s", broken, text)
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

// Planted faults: the first pattern names each, whatever the seed. Runs without
// fault, some of them in want of a little more, have none.
func TestFirstPatternNamesTheFault(t *testing.T) {
	if testing.Short() {
		t.Skip("plays many runs; run without -short")
	}
	for _, x := range []struct{ name, workload, run, want string }{
		{"stale signals", "--scenario prefix-heavy --requests 700", "--set routing={type:weighted,params:{queue-depth:1}} --set control_plane.snapshots.default=periodic\x005s", "P1 stale_signal, routing weighted"},
		{"stale signals, three classes", "--scenario mixed-slo --requests 1200", "--set routing={type:weighted,params:{queue-depth:1}} --set control_plane.snapshots.default=periodic\x005s", "P1 stale_signal, routing weighted"},
		{"hot prefix", "../../testdata/feedback/hot-prefix.yaml", "--set routing={type:weighted,params:{prefix-affinity:10,queue-depth:1}}", "P1 hot_prefix, routing weighted"},
		{"abusive tenant", "--scenario abusive-tenant --requests 2000", "--set deployments.main.replicas=3", "P1 behind_tenant abuser, admission always-admit"},
		{"wrong weights", "--scenario mixed-slo --requests 1200", "--set deployments.main.replicas=2 --set priority.type=inverted-slo --set scheduler.type=priority-fcfs", "P1 behind_lower_class, scheduling inverted-slo + priority-fcfs"},
		{"small cache", "--scenario documents --requests 700", "--set deployments.main.engine.num_gpu_blocks_override=8000", "P1 evicted, cache last-in"},
		{"admission never fires", "--scenario sanity --requests 700", "--set deployments.main.replicas=2 --set admission={type:tree,root:{if:cluster.inflight>5000,then:reject,else:admit}}", "P1 overload, admission tree, rule admission.root.if"},
		{"tiny cache", "--scenario mixed-slo --requests 1200", "--set deployments.main.engine.num_gpu_blocks_override=1500", "P1 cache_full, cache last-in"},
		{"few seats", "--scenario sanity --requests 700", "--set deployments.main.engine.max_num_seqs=3", "P1 seats_full, engine"},
		{"delays", "--scenario mixed-slo --requests 700", "--set admission={type:expression,admit:'req.delays<20?\"delay\":\"admit\"'}", "P1 delayed, admission expression, rule admission.admit"},
		{"limits", "--scenario mixed-slo --requests 700", "--set deployments.main.engine.max_model_len=700", "P1 impossible, engine"},
		{"no fault", "--scenario prefix-heavy --requests 700", "", ""},
		{"no fault, hot prefix", "../../testdata/feedback/hot-prefix.yaml", "", ""},
		{"no fault, documents", "--scenario documents --requests 700", "", ""},
		{"no fault, three classes", "--scenario mixed-slo --requests 1200", "--set deployments.main.replicas=8 --set priority.type=slo-based --set scheduler.type=priority-fcfs", ""},
	} {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			for _, seed := range []string{"1", "2", "3"} {
				workload := piped(t, Gen, nil, 0, append(args(x.workload), "--seed", seed)...)
				text := string(piped(t, Summarize, piped(t, Sim, workload, 0, args(x.run)...), 0, "--max-tokens", "1500"))
				first := firstPattern.FindString(text)
				if first != x.want {
					t.Errorf("seed %s: %q, not %q:\n%s", seed, first, x.want, text)
				}
				if strings.Contains(x.name, "never") && !strings.Contains(text, "NEVER fired, 0 of 700") {
					t.Errorf("seed %s: it is not said that the rule never fired:\n%s", seed, text)
				}
			}
		})
	}
}

var firstPattern = regexp.MustCompile(`(?m)^P1 .*$`)
