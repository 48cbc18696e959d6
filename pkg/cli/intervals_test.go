package cli

import (
	"encoding/json"
	"math"
	"path/filepath"
	"testing"

	"blis/pkg/stat"
)

// TestDiffAndSummarizeAgree: blis-diff and blis-summarize have the same interval for the
// same statistic of the same two runs. A score is 0.1 + 0.9 times its expression.
func TestDiffAndSummarizeAgree(t *testing.T) {
	dir := t.TempDir()
	workload, a, b := filepath.Join(dir, "w.zst"), filepath.Join(dir, "a.zst"), filepath.Join(dir, "b.zst")
	read := func(v any, tool Tool, args ...string) {
		t.Helper()
		code, out, errs := runs(t, tool, args...)
		if code != 0 && (tool.name != Diff.name || code != 1) {
			t.Fatalf("%s %q: exit code %d: %s", tool.name, args, code, errs)
		}
		if v == nil {
			return
		}
		if err := json.Unmarshal([]byte(out), v); err != nil {
			t.Fatal(err)
		}
	}
	read(nil, Gen, "--scenario", "mixed-slo", "--requests", "600", "--seed", "5", "-o", workload)
	read(nil, Sim, workload, "-o", a)
	read(nil, Sim, "--set", "routing={type: random}", "--set", "deployments.main.replicas=2",
		"--set", "admission={type: token-bucket}", workload, "-o", b)
	var d struct {
		Metrics map[string]struct {
			Diff *float64       `json:"diff"`
			CI   *stat.Interval `json:"ci"`
		} `json:"metrics"`
	}
	read(&d, Diff, "--format", "json", a, b)
	for path, scale := range map[string]float64{"throughput.rps": 1e-3, "throughput.output_tok_s": 1e-6,
		"goodput.rps":   1e-3,
		"goodput.ratio": 1, "requests.completed": 1e-4, "e2e.coverage": 1} {
		var s struct {
			Candidates []struct {
				Runs []struct {
					VsBaseline *struct {
						Diff float64       `json:"diff"`
						CI   stat.Interval `json:"ci"`
					} `json:"vs_baseline"`
				} `json:"runs"`
			} `json:"candidates"`
		}
		factor, _ := json.Marshal(scale)
		read(&s, Summarize, "--format", "json", "--fitness", string(factor)+" * m."+path, "--baseline", a, b)
		m, got := d.Metrics[path], s.Candidates[0].Runs[0].VsBaseline
		if got == nil || m.CI == nil {
			t.Errorf("%s: intervals %v and %v", path, m.CI, got)
			continue
		}
		t.Logf("%s: %+.4g, %+.4g to %+.4g", path, *m.Diff, m.CI.Lo, m.CI.Hi)
		for _, x := range [][2]float64{{got.Diff, *m.Diff}, {got.CI.Lo, m.CI.Lo}, {got.CI.Hi, m.CI.Hi}} {
			if want := 0.9 * scale * x[1]; math.Abs(x[0]-want) > 1e-9 {
				t.Errorf("%s: %v in blis-summarize, %v in blis-diff", path, x[0]/0.9/scale, x[1])
			}
		}
		if got.CI.Level != m.CI.Level {
			t.Errorf("%s: levels %v and %v", path, got.CI.Level, m.CI.Level)
		}
	}
}
