package sweep

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// halvingText has nine configurations: 9 run on 20 requests, 3 on 60 and 1 on all 150.
const halvingText = `version: 1
set:
  deployments.main.engine.max_num_seqs: [1, 2, 8]
  routing.type: [least-loaded, round-robin, nonsense]
seeds: [0, 5]
halving: {requests: 20, factor: 3}
`

// TestHalving: the results of each round are those of the sweep on these requests, and each round keeps the
// configurations with the best mean score of the one before.
func TestHalving(t *testing.T) {
	const score = "soft(m.e2e.p99, 100, 0.1)"
	dir := setUp(t, map[string]string{"grid.yaml": halvingText, "w.jsonl": workload(150),
		"full.yaml": strings.Split(halvingText, "halving")[0]})
	name := filepath.Join(dir, "w.jsonl")
	o := Options{Sweep: filepath.Join(dir, "grid.yaml"), Fitness: score, Results: filepath.Join(dir, "results")}
	lines, got, err := results(t, o, "", "minimal", name)
	if err != nil || len(got) != 18 {
		t.Fatal(len(got), err)
	}
	full := map[int][]*Result{}
	for _, n := range []int{0, 20, 60} {
		of := name
		if n > 0 {
			of = fmt.Sprint(name, "#", n)
		}
		if _, full[n], err = results(t, Options{Sweep: filepath.Join(dir, "full.yaml"), Fitness: score}, "", "minimal",
			of); err != nil {
			t.Fatal(err)
		}
	}
	counts := map[int]int{}
	for i, r := range got {
		counts[r.Prefix]++
		want := full[r.Prefix][i]
		if r.Index != i || r.Workload != name || r.Seed != want.Seed || r.ID != want.ID ||
			!bytes.Equal(r.Metrics, want.Metrics) {
			t.Errorf("result %d on %d requests is %+v, in the sweep %+v", i, r.Prefix, r, want)
		}
	}
	if counts[20] != 12 || counts[60] != 4 || counts[0] != 2 {
		t.Fatalf("results by requests: %v", counts)
	}
	// mean is the score of configuration c on n requests.
	mean := func(n, c int) float64 { return (full[n][2*c].Fitness.Score + full[n][2*c+1].Fitness.Score) / 2 }
	for a := range 9 {
		for b := range 9 {
			if ended := got[2*a].Prefix; ended > 0 && (got[2*b].Prefix == 0 || got[2*b].Prefix > ended) &&
				mean(ended, a) > mean(ended, b) {
				t.Errorf("configuration %d ended after %d requests, and %d, which was worse, did not", a, ended, b)
			}
		}
	}
	again, _, err := results(t, o, "", "minimal", name)
	if err != nil || again != lines {
		t.Errorf("%v; the results from the folder differ", err)
	}
	var line map[string]any
	if err := json.Unmarshal([]byte(strings.Split(lines, "\n")[0]), &line); err != nil {
		t.Fatal(err)
	}
}

// TestHalvingErrors: what halving needs, and what it cannot have.
func TestHalvingErrors(t *testing.T) {
	dir := setUp(t, map[string]string{"w.jsonl": workload(30)})
	for _, c := range []struct{ text, fitness, shard, want string }{
		{"halving: {requests: 10}", "", "", "halving needs --fitness"},
		{"halving: {requests: 10}", "m.admission_rate", "1/2", "--shard has no effect"},
		{"halving: {requests: 0}", "m.admission_rate", "", "halving.requests: must be at least 1"},
		{"halving: {requests: 9, factor: 1}", "m.admission_rate", "", "halving.factor: must be between"},
		{"halving: {request: 9}", "m.admission_rate", "", `did you mean "requests"`},
	} {
		files := setUp(t, map[string]string{"grid.yaml": "version: 1\nseeds: [1]\n" + c.text + "\n"})
		o := Options{Sweep: filepath.Join(files, "grid.yaml"), Fitness: c.fitness}
		if c.shard != "" {
			if err := o.Shard.UnmarshalText([]byte(c.shard)); err != nil {
				t.Fatal(err)
			}
		}
		_, _, err := results(t, o, "", "minimal", filepath.Join(dir, "w.jsonl"))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.text, err, c.want)
		}
	}
}
