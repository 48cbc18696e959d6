package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"blis/pkg/stream"
)

// TestMistakesOfNewUsers: what new users tried first is answered by what they need.
func TestMistakesOfNewUsers(t *testing.T) {
	workload := piped(t, Gen, nil, 0, "--scenario", "documents", "--requests", "150")
	dir := t.TempDir()
	write := func(name string, data []byte) string {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o666); err != nil {
			t.Fatal(err)
		}
		return filepath.Join(dir, name)
	}
	path := write("workload.jsonl.zst", workload)
	const deployment = "version: 1\ndeployments: [{id: main, model: Qwen/Qwen3-8B, gpu: H100, %s: 4}]\n"
	tp := write("tp.yaml", fmt.Appendf(nil, deployment, "tp"))
	seqs := write("seqs.yaml", fmt.Appendf(nil, deployment, "max_num_seqs"))
	bundle := write("bundle.yaml", []byte("policies: {routing: {type: random}}\n"))
	table := write("trace.csv", []byte("TIMESTAMP,ContextTokens\n1,2\n"))
	run := piped(t, Sim, workload, 0, "--plain")
	for _, c := range []struct {
		tool  Tool
		stdin []byte
		args  []string
		want  string
	}{
		{Sim, workload, []string{"--routing", "random"}, "unknown flag --routing; --set routing=VALUE sets it"},
		{Sim, workload, []string{"--gpu", "H100"}, "unknown flag --gpu; --set deployments.main.gpu=VALUE sets it"},
		{Sim, workload, []string{"--replicas=3"},
			"unknown flag --replicas; --set deployments.main.replicas=VALUE sets it"},
		{Sim, workload, []string{"--tp", "2"}, "--set deployments.main.engine.tensor_parallel_size=VALUE sets it"},
		{Sim, workload, []string{"--model", "m"}, "unknown flag --model; --set deployments.main.model=VALUE sets it"},
		{Sim, workload, []string{"--set", "replicas=3"},
			"--set replicas=3: unknown field \"replicas\"; did you mean \"deployments.main.replicas\"?\n"},
		{Sim, workload, []string{"--set", "deployments.main.tensor_parallel_size=2"},
			"; did you mean \"deployments.main.engine.tensor_parallel_size\"?\n"},
		{Sim, workload, []string{"--set", "routing=round_robin"}, "did you mean \"round-robin\"?"},
		{Sim, workload, []string{"--max-num-seqs", "8"},
			"unknown flag --max-num-seqs; --set deployments.main.engine.max_num_seqs=VALUE sets it"},
		{Sim, workload, []string{"--policy", "x.yaml"}, "unknown flag --policy; -p (--policies) names a policy bundle"},
		{Sim, workload, []string{"--rate", "8"}, "blis-gen --import blis:FILE --rate R changes it"},
		{Sim, workload, []string{"-c", tp}, "unknown field \"tp\": write engine: {tensor_parallel_size: VALUE}"},
		{Sim, workload, []string{"-c", seqs}, "unknown field \"max_num_seqs\": write engine: {max_num_seqs: VALUE}"},
		{Sim, workload, []string{"-c", path}, "; it is a workload\n"},
		{Sim, workload, []string{tp, path}, "looks like a cluster file: give it with -c"},
		{Gen, nil, []string{"--rate", "8", path}, "; it is a workload: --import blis:" +
			path + " reads it, and --rate R changes its load"},
		{Sim, workload, []string{"-p", bundle}, "unknown field \"policies\": a bundle has the stages"},
		{Sim, nil, []string{"--plan", tp, path}, "unknown field \"deployments\": it belongs in a cluster file"},
		{Diff, nil, []string{"a", "b", "c"}, "got 3; blis-summarize --html FILE and --format table compare more"},
		{Gen, nil, []string{table}, "; it is a table: --import FORMAT:" + table + " reads traces"},
		{Summarize, []byte("TIMESTAMP,ContextTokens\n"), nil, "a trace is no recording: blis-gen --import converts it"},
		{Sim, []byte("TIMESTAMP,ContextTokens\n"), nil, "blis-gen --import FORMAT:FILE converts traces"},
		{Sim, workload, []string{"--plan", path}, "is not text, and must be YAML or JSON"},
		{Summarize, run, []string{"--explain", "no"},
			"and the p99 of TTFT (--explain p99) is that of " + atP99(t, run)},
		{Summarize, run, []string{"--plot", "ttft", "-o", "x.svg"}, "write a figure with --plot FIGURE --svg x.svg"},
		{Summarize, run, []string{"-o", "x.html"}, "write the report with --html x.html"},
		{Summarize, run, []string{"--explain", "2:3.5"}, "; times have units, such as 2s:3.5s"},
	} {
		var errs bytes.Buffer
		std := standardStreams{bytes.NewReader(c.stdin), new(bytes.Buffer), &errs}
		if code := c.tool.run(t.Context(), c.args, std); code == 0 || !strings.Contains(errs.String(), c.want) {
			t.Errorf("%s %s: exit code %d, %q lacks %q", c.tool.name, c.args, code, errs.String(), c.want)
		}
	}
}

// atP99 is the id of the request with the p99 of TTFT: the 149th of 150.
func atP99(t *testing.T, run []byte) string {
	t.Helper()
	var all []stream.Outcome
	for line := range bytes.Lines(run) {
		var o stream.Outcome
		if bytes.Contains(line, []byte(`"kind":"outcome"`)) {
			if err := json.Unmarshal(line, &o); err != nil {
				t.Fatal(err)
			}
			all = append(all, o)
		}
	}
	if len(all) != 150 {
		t.Fatalf("%d outcomes", len(all))
	}
	slices.SortStableFunc(all, func(a, b stream.Outcome) int {
		return cmp.Compare(a.FirstTokenUS-a.ArrivalUS, b.FirstTokenUS-b.ArrivalUS)
	})
	return all[148].ID
}
