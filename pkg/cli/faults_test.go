package cli

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"blis/pkg/strictyaml"
)

var faultFiles = flag.String("faults", "*.yaml", "files of testdata/faults to judge (a glob; more/*.yaml has others)")

// A plantedFault is a run with one known cause (testdata/faults). A healthy run has none.
type plantedFault struct {
	Name  string `yaml:"name"`
	Cause string `yaml:"cause"` // a key of causes.yaml
	// Cluster and Workload are merged into base.yaml.
	Cluster  map[string]any `yaml:"cluster"`
	Workload map[string]any `yaml:"workload"`
	Horizon  string         `yaml:"horizon"`
	// Score is the fitness; by default the share of requests that met their targets.
	Score string `yaml:"score"`
	// Fix and WorkloadFix remove the cause: paths of the cluster file (or horizon) and of the spec, with values.
	Fix         map[string]any `yaml:"fix"`
	WorkloadFix map[string]any `yaml:"workload_fix"`
}

// faultBase is what faults leave out.
type faultBase struct {
	Cluster  map[string]any `yaml:"cluster"`
	Workload map[string]any `yaml:"workload"`
	Client   map[string]any `yaml:"client"`
}

func readFaultFile(t *testing.T, name string, v any) {
	t.Helper()
	doc, err := strictyaml.Read(filepath.Join(root, "testdata/faults", name))
	if err == nil {
		err = doc.Decode(v)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// faultsIn returns the faults of the files of testdata/faults that match pattern, with what they leave out.
func faultsIn(t *testing.T, pattern string) (all []*plantedFault) {
	t.Helper()
	var base faultBase
	readFaultFile(t, "base.yaml", &base)
	files, err := filepath.Glob(filepath.Join(root, "testdata/faults", pattern))
	if err != nil || len(files) == 0 {
		t.Fatalf("no files %q: %v", pattern, err)
	}
	for _, file := range files {
		if name := filepath.Base(file); name != "base.yaml" && name != "causes.yaml" {
			var faults []*plantedFault
			readFaultFile(t, filepath.Join(filepath.Dir(pattern), name), &faults)
			for _, f := range faults {
				f.Cluster = merged(base.Cluster, f.Cluster)
				f.Workload = merged(base.Workload, f.Workload)
				clients, _ := f.Workload["clients"].([]any)
				for i, c := range clients {
					client, _ := c.(map[string]any)
					clients[i] = merged(base.Client, client)
				}
			}
			all = append(all, faults...)
		}
	}
	return all
}

// merged is a with the fields of b; mappings in both are merged, and null removes a field.
func merged(a, b map[string]any) map[string]any {
	out := map[string]any{}
	for k, v := range a {
		out[k] = v
	}
	for k, v := range b {
		inner, isMap := v.(map[string]any)
		outer, wasMap := out[k].(map[string]any)
		switch {
		case v == nil:
			delete(out, k)
		case isMap && wasMap && inner["type"] == nil:
			out[k] = merged(outer, inner)
		default:
			out[k] = v
		}
	}
	return out
}

// setPath sets a value of a tree; elements of lists are numbered.
func setPath(tree any, path string, value any) {
	keys := strings.Split(path, ".")
	for _, key := range keys[:len(keys)-1] {
		switch at := tree.(type) {
		case map[string]any:
			tree = at[key]
		case []any:
			var i int
			_, _ = fmt.Sscan(key, &i)
			tree = at[i]
		}
	}
	tree.(map[string]any)[keys[len(keys)-1]] = value
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// simulate runs the fault, or its fix, and returns the file of the run.
func (f *plantedFault) simulate(t *testing.T, dir, name string, fixed bool) string {
	t.Helper()
	args := []string{"-c", filepath.Join(dir, "cluster.json")}
	horizon := f.Horizon
	spec, workload := filepath.Join(dir, "spec.json"), filepath.Join(dir, "workload.jsonl")
	if fixed {
		for path, value := range f.Fix {
			if path == "horizon" {
				horizon = fmt.Sprint(value)
				continue
			}
			args = append(args, "--set", path+"="+asJSON(t, value))
		}
		slices.Sort(args[2:])
		args = pairs(args)
		for path, value := range f.WorkloadFix {
			setPath(f.Workload, path, value)
		}
	}
	for file, v := range map[string]any{spec: f.Workload, filepath.Join(dir, "cluster.json"): f.Cluster} {
		if err := os.WriteFile(file, []byte(asJSON(t, v)), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	ran(t, Gen, spec, "-o", workload)
	if horizon != "" {
		args = append(args, "--horizon", horizon)
	}
	run := filepath.Join(dir, name+".jsonl")
	ran(t, Sim, append(args, workload, "-o", run)...)
	return run
}

// pairs puts --set before each setting of sorted arguments.
func pairs(args []string) []string {
	out := args[:2:2]
	for _, a := range args[2:] {
		if a != "--set" {
			out = append(out, "--set", a)
		}
	}
	return out
}

// score is the fitness of a run, from 0 to 1.
func (f *plantedFault) score(t *testing.T, run string, flags ...string) (score float64, envelope map[string]any) {
	t.Helper()
	args := append([]string{"--format", "json", run}, flags...)
	if f.Score != "" {
		args = append(args, "--fitness", f.Score)
	}
	if err := json.Unmarshal([]byte(ran(t, Summarize, args...)), &envelope); err != nil {
		t.Fatal(err)
	}
	combined, _ := envelope["combined_score"].(float64)
	return (combined - 0.1) / 0.9, envelope
}

var patternName = regexp.MustCompile(`(?m)^P\d+ ([a-z_]+)`)

// namedCauses are the conditions of the first two patterns.
func namedCauses(envelope map[string]any) (names []string) {
	artifacts, _ := envelope["artifacts"].(map[string]any)
	text, ok := artifacts["patterns"].(string)
	if !ok { // the section is in the feedback
		feedback, _ := artifacts["feedback"].(string)
		_, text, _ = strings.Cut(feedback, "[PATTERNS]")
	}
	for _, m := range patternName.FindAllStringSubmatch(text, 2) {
		names = append(names, m[1])
	}
	return names
}

// bestHint is the better score with one of the first two hints.
func bestHint(envelope map[string]any) (best float64) {
	hints, _ := envelope["hints"].([]any)
	for _, h := range hints[:min(len(hints), 2)] {
		measured, _ := h.(map[string]any)["measured"].(map[string]any)
		score, _ := measured["score"].(float64)
		best = max(best, (score-0.1)/0.9)
	}
	return best
}

// judged is how the text of a faulty run names its cause.
type judged struct {
	before, after, hinted float64 // hinted is the score with the best of the first two hints
	conditions            []string
	named, first          bool
}

// judge simulates the fault and its fix and compares the first two patterns with its cause.
func (f *plantedFault) judge(t *testing.T, causes map[string][]string) (j judged) {
	t.Helper()
	dir := t.TempDir()
	before, envelope := f.score(t, f.simulate(t, dir, "run", false), "--try", filepath.Join(dir, "workload.jsonl"))
	j.before, j.conditions, j.hinted = before, namedCauses(envelope), bestHint(envelope)
	j.after, _ = f.score(t, f.simulate(t, dir, "fixed", true)) // changes f.Workload
	right := func(name string) bool { return slices.Contains(causes[f.Cause], name) }
	j.named = slices.ContainsFunc(j.conditions, right)
	j.first = len(j.conditions) > 0 && right(j.conditions[0])
	return j
}

// TestPlantedFaults judges the first two patterns of every fault, and that its fix recovers what it costs. -v prints
// a line for each. -faults selects files: the faults of unseen.yaml were written before, and judged after, the
// conditions were made, and more/*.yaml has some that are not judged by default.
func TestPlantedFaults(t *testing.T) {
	if testing.Short() {
		t.Skip("simulates all planted faults")
	}
	causes := map[string][]string{}
	readFaultFile(t, "causes.yaml", &causes)
	named, wrong, recovered := 0, 0, 0
	faults := faultsIn(t, *faultFiles)
	for _, f := range faults {
		t.Run(f.Name, func(t *testing.T) {
			j := f.judge(t, causes)
			if f.Cause != "" && j.after < j.before+0.04 || f.Cause == "" && len(j.conditions) > 0 {
				t.Errorf("%.3f, with the fix %.3f; patterns %v", j.before, j.after, j.conditions)
			}
			if j.named {
				named++
			}
			if len(j.conditions) > 0 && !j.first {
				wrong++
			}
			if f.Cause != "" && j.hinted-j.before >= (j.after-j.before)/2 {
				recovered++
			}
			t.Logf("%-32s %.3f, hint %.3f, fix %.3f  %-17s %-5t %s", f.Name, j.before, j.hinted, j.after, f.Cause,
				j.named, strings.Join(j.conditions, ", "))
		})
	}
	sick := len(faults) - len(slices.DeleteFunc(faults, func(f *plantedFault) bool { return f.Cause != "" }))
	t.Logf("%d of %d causes are in the first two patterns; another condition is first in %d; the best of two hints"+
		" recovers half of the gain in %d", named, sick, wrong, recovered)
	if 40*named < 34*sick || 40*wrong > 2*sick || 40*recovered < 30*sick {
		t.Errorf("want 34 of 40, another one first in at most 2 of 40, and 30 of 40 recovered")
	}
}
