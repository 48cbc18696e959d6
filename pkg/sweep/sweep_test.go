package sweep

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"blis/pkg/sim"
	"blis/pkg/stream"
)

// Seeds that change no run are warned of, and only these.
func TestSeedsWithoutEffect(t *testing.T) {
	const fixed, random = `{"set": {"routing.type": "round-robin"`, `{"set": {"routing.type": "random"`
	dir := setUp(t, map[string]string{"w.jsonl": workload(20)})
	for _, c := range []struct {
		points string
		want   bool
	}{
		{fixed + `}, "seed": 1}` + "\n" + fixed + `}, "seed": 2}`, true},
		{fixed + `}, "seed": 1}` + "\n" + fixed + `}, "seed": 1}`, false},
		{fixed + `}, "seed": 1}` + "\n" + fixed + `, "deployments.main.replicas": 1}, "seed": 2}`, false},
		{random + `}, "seed": 1}` + "\n" + random + `}, "seed": 2}`, false},
		{fixed + `}, "seed": 1}` + "\n" + fixed + `}, "seed": 2}` + "\n" + random + `}, "seed": 1}` + "\n" +
			random + `}, "seed": 2}`, false},
		{fixed + `}, "seed": 1}`, false},
	} {
		var warnings []string
		err := Run(context.Background(), strings.NewReader(c.points), func(*Result) error { return nil },
			Options{Sweep: "-"}, Call{Run: sim.Options{Trace: "minimal", Version: stream.Version},
				Workloads: []string{filepath.Join(dir, "w.jsonl")},
				Open:      func(name string) (io.ReadCloser, error) { return os.Open(name) },
				Warn:      func(text string) { warnings = append(warnings, text) }})
		if err != nil || (len(warnings) == 1) != c.want {
			t.Errorf("%s: %v, %q", c.points, err, warnings)
		}
	}
}

// workload is n requests, 4 of which share a prefix each.
func workload(n int) string { return workloadEvery(n, 30_000) }

// workloadEvery has a request in each interval of that many µs.
func workloadEvery(n int, us float64) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `{"kind":"request","id":"r%d","arrival_us":%d,"input_tokens":%d,"output_tokens":%d,`+
			`"prompt":[{"id":"p%d","tokens":320}]}`+"\n", i, int(float64(i)*us), 400+i%7*50, 20+i%5*9, i%4)
	}
	return b.String()
}

const gridText = `version: 1
set:
  deployments.main.replicas: [1, 2]
  routing.type: [least-loaded, weighted, nonsense]
seeds: [0, 5]
`

// setUp writes files into a new folder and returns it.
func setUp(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// results runs a sweep and returns its lines.
func results(t *testing.T, o Options, in string, trace string, workloads ...string) (lines string, all []*Result,
	err error) {
	t.Helper()
	var out bytes.Buffer
	err = Run(context.Background(), strings.NewReader(in), func(r *Result) error {
		all = append(all, r)
		return json.NewEncoder(&out).Encode(r)
	}, o, Call{Run: sim.Options{Trace: trace, Version: stream.Version}, Workloads: workloads,
		Open: func(name string) (io.ReadCloser, error) {
			file, n, isPrefix := strings.Cut(name, "#")
			file, rate, isScaled := strings.Cut(file, "@")
			text, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			lines := strings.SplitAfter(string(text), "\n")
			if isScaled {
				perSecond, err := strconv.ParseFloat(rate, 64)
				if err != nil {
					return nil, err
				}
				lines = strings.SplitAfter(workloadEvery(len(lines)-1, 1e6/perSecond), "\n")
			}
			if isPrefix {
				k, err := strconv.Atoi(n)
				if err != nil {
					return nil, err
				}
				lines = lines[:k]
			}
			return io.NopCloser(strings.NewReader(strings.Join(lines, ""))), nil
		}, AtRate: func(workload string, rate float64) string { return fmt.Sprint(workload, "@", rate) },
		Prefix: func(workload string, n int) string { return fmt.Sprint(workload, "#", n) }})
	return out.String(), all, err
}

// TestRunsEqualSingleRuns: kept runs have the bytes of single runs, and results their metrics, at any number of
// cores.
func TestRunsEqualSingleRuns(t *testing.T) {
	text := workload(60)
	dir := setUp(t, map[string]string{"grid.yaml": gridText, "w.jsonl": text})
	for _, level := range stream.TraceLevels {
		kept := Options{Sweep: filepath.Join(dir, "grid.yaml"), Results: filepath.Join(dir, level), KeepRuns: true}
		lines, all, err := results(t, kept, "", level, filepath.Join(dir, "w.jsonl"))
		if err != nil || len(all) != 12 {
			t.Fatal(len(all), err)
		}
		before := runtime.GOMAXPROCS(1)
		again, _, _ := results(t, Options{Sweep: kept.Sweep}, "", level, filepath.Join(dir, "w.jsonl"))
		runtime.GOMAXPROCS(before)
		if again != lines {
			t.Errorf("%s: one core or no folder gives other results", level)
		}
		for _, r := range all {
			if r.Set["routing.type"] == "nonsense" {
				if r.Metrics != nil || !strings.Contains(r.Error, "nonsense") {
					t.Errorf("point %d: error %q, metrics %s", r.Index, r.Error, r.Metrics)
				}
				continue
			}
			var single bytes.Buffer
			err := sim.Run(context.Background(), strings.NewReader(text), &single, sim.Options{Trace: level,
				Version: stream.Version, Seed: r.Seed, Set: []string{
					fmt.Sprintf("deployments.main.replicas=%v", r.Set["deployments.main.replicas"]),
					fmt.Sprintf("routing.type=%v", r.Set["routing.type"])}})
			if err != nil {
				t.Fatal(err)
			}
			run, err := os.ReadFile(filepath.Join(kept.Results, r.ID+".jsonl.zst"))
			if err != nil || !bytes.Equal(run, single.Bytes()) {
				t.Errorf("%s, point %d differs from the single run (%v)", level, r.Index, err)
			}
			plain, stop := stream.Decompress(bytes.NewReader(run))
			whole, err := io.ReadAll(plain)
			stop()
			if err != nil || !bytes.Contains(whole, r.Metrics[1:]) {
				t.Errorf("%s, point %d has other metrics than its run (%v)", level, r.Index, err)
			}
		}
	}
}

// TestFinishedRunsAreNotRepeated: results that are in the folder are used, others are simulated, and a damaged one
// is reported.
func TestFinishedRunsAreNotRepeated(t *testing.T) {
	dir := setUp(t, map[string]string{"grid.yaml": gridText, "w.jsonl": workload(40)})
	o := Options{Sweep: filepath.Join(dir, "grid.yaml"), Results: filepath.Join(dir, "results")}
	name := filepath.Join(dir, "w.jsonl")
	lines, all, err := results(t, o, "", "minimal", name)
	if err != nil {
		t.Fatal(err)
	}
	file := func(i int) string { return filepath.Join(o.Results, all[i].ID+".json") }
	marked, err := os.ReadFile(file(0))
	if err != nil {
		t.Fatal(err)
	}
	marked = bytes.Replace(marked, []byte(`"metrics":`), []byte(`"warnings":["marked"],"metrics":`), 1)
	for _, err := range []error{os.WriteFile(file(0), marked, 0o666), os.Remove(file(1))} {
		if err != nil {
			t.Fatal(err)
		}
	}
	_, again, err := results(t, o, "", "minimal", name)
	if err != nil || fmt.Sprint(again[0].Warnings) != "[marked]" || again[1].Metrics == nil {
		t.Errorf("%v, the first result is %+v", err, again[0])
	}
	if err := os.Remove(file(0)); err != nil {
		t.Fatal(err)
	}
	if third, _, _ := results(t, o, "", "minimal", name); third != lines {
		t.Error("the results differ after some were removed")
	}
	if err := os.WriteFile(file(2), []byte(`{"id":`), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, damaged, _ := results(t, o, "", "minimal", name); !strings.Contains(damaged[2].Error, "is damaged") {
		t.Errorf("the damaged result has error %q", damaged[2].Error)
	}
	o.KeepRuns = true
	_, kept, _ := results(t, o, "", "minimal", name)
	if kept[1].Metrics == nil || !exists(filepath.Join(o.Results, kept[1].ID+".jsonl.zst")) {
		t.Error("a result without its run was used though runs are kept")
	}
}

func exists(name string) bool { _, err := os.Stat(name); return err == nil }

// TestShardsAreThePoints: the shards have each point once.
func TestShardsAreThePoints(t *testing.T) {
	dir := setUp(t, map[string]string{"grid.yaml": gridText, "w.jsonl": workload(10)})
	grid, name := filepath.Join(dir, "grid.yaml"), filepath.Join(dir, "w.jsonl")
	_, whole, err := results(t, Options{Sweep: grid}, "", "minimal", name)
	if err != nil {
		t.Fatal(err)
	}
	found := map[int]string{}
	for k := range 5 {
		o := Options{Sweep: grid}
		if err := o.Shard.UnmarshalText(fmt.Appendf(nil, "%d/5", k+1)); err != nil {
			t.Fatal(err)
		}
		_, part, _ := results(t, o, "", "minimal", name)
		for _, r := range part {
			found[r.Index] += r.ID
		}
	}
	for _, r := range whole {
		if id, ok := found[r.Index]; !ok || id != r.ID {
			t.Errorf("point %d is %q in a shard and %q in the whole", r.Index, id, r.ID)
		}
	}
	var s Shard
	for _, bad := range []string{"", "3", "0/2", "3/2", "a/b", "1/2/3"} {
		if s.UnmarshalText([]byte(bad)) == nil {
			t.Errorf("%q is a shard", bad)
		}
	}
}

// TestLines: points on stdin name their workloads; a wrong line is a result with an error, and only if all fail
// the sweep does.
func TestLines(t *testing.T) {
	dir := setUp(t, map[string]string{"a.jsonl": workload(10), "b.jsonl": workload(12), "bad.jsonl": "{}\n"})
	a, b, bad := filepath.Join(dir, "a.jsonl"), filepath.Join(dir, "b.jsonl"), filepath.Join(dir, "bad.jsonl")
	lines := fmt.Sprintf(`{"set": {"routing.type": "random"}, "seed": 3}

{"workload": %q}
{"seeds": 1}
{"workload": %q}
{"workload": "missing"}
`, b, bad)
	_, all, err := results(t, Options{Sweep: "-", Fitness: "m.admission_rate"}, lines, "minimal", a)
	if err != nil || len(all) != 5 {
		t.Fatal(len(all), err)
	}
	for i, want := range []string{"", "", `unknown field "seeds"; did you mean "seed"?`, "kind", "missing"} {
		r := all[i]
		if (want == "") != (r.Error == "") || !strings.Contains(r.Error, want) || r.Fitness == nil ||
			(r.Metrics == nil) != (want != "") {
			t.Errorf("line %d: error %q, fitness %+v", i, r.Error, r.Fitness)
		}
	}
	if all[0].Seed != 3 || all[0].Workload != a || all[1].Workload != b {
		t.Errorf("the points are %+v and %+v", all[0], all[1])
	}
	for _, points := range []string{"{}\n[1]\n", "[1]\n"} {
		_, _, err = results(t, Options{Sweep: "-"}, points, "minimal")
		if _, failed := errors.AsType[AllFailed](err); !failed {
			t.Errorf("a sweep without metrics has error %v", err)
		}
	}
}

// TestGridErrors: a wrong grid names its line and the field.
func TestGridErrors(t *testing.T) {
	for text, want := range map[string]string{
		"version: 2\n":                              "version",
		"version: 1\nsetz: {}\n":                    `did you mean "set"?`,
		"version: 1\nset: {a.b: []}\n":              "has no values",
		"version: 1\nseeds: []\n":                   "has no values",
		"version: 1\nrates: []\n":                   "has no values",
		"version: 1\nrates: [4, 0]\n":               "rates[1]: must be a number above 0, is 0",
		"version: 1\nruns: [{}]\nset: {a.b: [1]}\n": "lists the configurations",
	} {
		dir := setUp(t, map[string]string{"grid.yaml": text})
		_, _, err := results(t, Options{Sweep: filepath.Join(dir, "grid.yaml")}, "", "minimal", "w")
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "grid.yaml:") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestOrder: configurations are in the order of the file, each with all workloads and seeds.
func TestOrder(t *testing.T) {
	g := &Grid{Set: map[string][]any{"b": {1, 2}, "a": {3, 4}}, Policies: []string{"p"}, Workloads: []string{"v", "w"},
		Seeds: []uint64{8, 9}}
	var got, rates []string
	for p := range g.points(nil) {
		got = append(got, fmt.Sprintf("%v %v %s %d", p.Set["a"], p.Set["b"], p.Workload, *p.Seed))
	}
	for p := range (&Grid{Rates: []float64{2, 1.5}, Seeds: g.Seeds}).points(g.Workloads) {
		rates = append(rates, fmt.Sprintf("%s %v %d", p.Workload, p.Rate, *p.Seed))
	}
	if s, want := strings.Join(rates, ","), "v 2 8,v 2 9,v 1.5 8,v 1.5 9,w 2 8,w 2 9,w 1.5 8,w 1.5 9"; s != want {
		t.Errorf("the points are %s, not %s", s, want)
	}
	want := "3 1 v 8,3 1 v 9,3 1 w 8,3 1 w 9,3 2 v 8,3 2 v 9,3 2 w 8,3 2 w 9,4 1 v 8,4 1 v 9,4 1 w 8,4 1 w 9,4 2 v 8," +
		"4 2 v 9,4 2 w 8,4 2 w 9"
	if s := strings.Join(got, ","); s != want {
		t.Errorf("the points are\n%s, not\n%s", s, want)
	}
}

// TestRates: a run at another rate is that of the workload with these intervals, in a grid, in halving and for a point
// on stdin.
func TestRates(t *testing.T) {
	dir := setUp(t, map[string]string{"w.jsonl": workload(40), "slow.jsonl": workloadEvery(40, 250_000),
		"fast.jsonl": workloadEvery(40, 10_000),
		"grid.yaml":  "version: 1\nset: {deployments.main.replicas: [1, 2]}\nrates: [4, 100]\n",
		"own.yaml":   "version: 1\nset: {deployments.main.replicas: [1, 2]}\n"})
	in := func(name string) string { return filepath.Join(dir, name) }
	_, got, err := results(t, Options{Sweep: in("grid.yaml")}, "", "minimal", in("w.jsonl"))
	if err != nil || len(got) != 4 {
		t.Fatal(len(got), err)
	}
	_, want, err := results(t, Options{Sweep: in("own.yaml")}, "", "minimal", in("slow.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	_, fast, err := results(t, Options{Sweep: in("own.yaml")}, "", "minimal", in("fast.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range []*Result{want[0], fast[0], want[1], fast[1]} {
		g := got[i]
		if g.ID != r.ID || !bytes.Equal(g.Metrics, r.Metrics) || g.Workload != in("w.jsonl") ||
			g.Rate != []float64{4, 100}[i%2] || g.Index != i {
			t.Errorf("result %d is %+v, not %+v", i, g, r)
		}
	}
	lines := `{"rate": 100, "set": {"deployments.main.replicas": 1}}` + "\n" + `{"rate": -1}` + "\n"
	_, points, err := results(t, Options{Sweep: "-"}, lines, "minimal", in("w.jsonl"))
	if err != nil || points[0].ID != fast[0].ID || points[0].Rate != 100 ||
		!strings.Contains(points[1].Error, "rate: must be a number above 0, is -1") {
		t.Errorf("%v: %+v", err, points)
	}
	if err := os.WriteFile(in("grid.yaml"), []byte("version: 1\nset: {deployments.main.replicas: [1, 2]}\n"+
		"rates: [4, 100]\nhalving: {requests: 20, factor: 2}\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	_, halved, err := results(t, Options{Sweep: in("grid.yaml"), Fitness: "soft(m.e2e.mean, 900, 1)"}, "", "minimal",
		in("w.jsonl"))
	if err != nil || len(halved) != 4 {
		t.Fatal(len(halved), err)
	}
	whole := 0
	for i, r := range halved {
		if r.Index != i || r.Rate != got[i].Rate || r.Workload != in("w.jsonl") {
			t.Errorf("result %d is %+v", i, r)
		}
		if r.Prefix == 0 {
			whole++
			if r.ID != got[i].ID {
				t.Errorf("result %d of halving has another id than that of the grid", i)
			}
		}
	}
	if whole != 2 {
		t.Errorf("%d runs on the whole workload, want those of one configuration at two rates", whole)
	}
}

// TestPolicyBundles: a point may have its own bundle, which is as good as the same settings one by one.
func TestPolicyBundles(t *testing.T) {
	dir := setUp(t, map[string]string{"w.jsonl": workload(20), "p.yaml": "routing: {type: round-robin}\n"})
	points := fmt.Sprintf(`{"policies": %q}`+"\n", filepath.Join(dir, "p.yaml")) +
		`{"set": {"routing.type": "round-robin"}}` + "\n" + `{"set": {"routing.type": "random"}}` + "\n"
	_, all, err := results(t, Options{Sweep: "-"}, points, "minimal", filepath.Join(dir, "w.jsonl"))
	if err != nil || len(all) != 3 {
		t.Fatal(len(all), err)
	}
	if all[0].Policy != all[1].Policy || all[0].Policy == all[2].Policy {
		t.Errorf("policies %s, %s, %s", all[0].Policy, all[1].Policy, all[2].Policy)
	}
}

// TestWarningsOfRuns: a result has the warnings of its own run.
func TestWarningsOfRuns(t *testing.T) {
	dir := setUp(t, map[string]string{"w.jsonl": workload(20)})
	points := `{"set": {"admission.type": "predictive-slo", "admission.params.budget_ms.gold": 1000000}}` + "\n{}\n"
	_, all, err := results(t, Options{Sweep: "-"}, points, "minimal", filepath.Join(dir, "w.jsonl"))
	if err != nil || len(all) != 2 {
		t.Fatal(len(all), err)
	}
	const want = `the policies refer to SLO class "gold", which the workload does not define`
	if !slices.Contains(all[0].Warnings, want) || slices.Contains(all[1].Warnings, want) {
		t.Errorf("warnings %q and %q", all[0].Warnings, all[1].Warnings)
	}
}
