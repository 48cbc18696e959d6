package sweep

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"blis/pkg/stream"
)

// stopGrid has clusters from far too small to large enough.
const stopGrid = `version: 1
set:
  deployments.main.replicas: [1, 2, 4, 8]
  deployments.main.engine.max_num_seqs: [2, 16]
seeds: [0, 3]
`

// targeted is a workload whose class has targets, and some requests without a class.
func targeted(t *testing.T, n int) string {
	var out bytes.Buffer
	w := stream.NewWriter(&out, true)
	header := &stream.Header{Stream: "workload", SLOClasses: []stream.SLOClass{{Name: "a", Tier: "standard",
		Priority: 50, Targets: stream.Targets{TTFTMS: 120, TPOTMS: 20}}}}
	errs := []error{w.Header(header)}
	for i, line := range strings.Split(strings.TrimSpace(workload(n)), "\n") {
		if i%5 > 0 {
			line = strings.Replace(line, `"input_tokens"`, `"slo_class":"a","input_tokens"`, 1)
		}
		errs = append(errs, w.Raw([]byte(line)))
	}
	if err := errors.Join(append(errs, w.End(&stream.End{}), w.Close())...); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestEarlyStop: with --early-stop a run that ends early fails that gate when it is simulated to the end, all others
// have the same metrics, and a stopped run scores 0. Kept results and any number of cores give the same bytes.
func TestEarlyStop(t *testing.T) {
	for _, text := range []string{workload(150), targeted(t, 150)} {
		for gate, none := range map[string]bool{
			"m.ttft.p99 < 150": false, "m.ttft.p50 <= 90": false, "m.e2e.max < 900": false, "700 >= m.e2e.p90": false,
			"m.tpot.p95 < 14 && m.ttft.max < 1000": false, "m.ttft.mean < 1": true, "m.requests.rejected == 0": true,
			"m.goodput.ratio >= 0.9": !strings.Contains(text, "targets"),
		} {
			if strings.Contains(gate, "goodput") && none {
				continue // no request has targets
			}
			checkEarlyStop(t, text, gate, none)
		}
	}
}

func checkEarlyStop(t *testing.T, text, gate string, none bool) {
	t.Helper()
	dir := setUp(t, map[string]string{"grid.yaml": stopGrid, "w.jsonl": text,
		"f.yaml": fmt.Sprintf("version: 1\ngates: [{name: g, expr: %q}]\nscore: m.admission_rate\n", gate)})
	name := filepath.Join(dir, "w.jsonl")
	o := Options{Sweep: filepath.Join(dir, "grid.yaml"), Fitness: filepath.Join(dir, "f.yaml")}
	_, whole, err := results(t, o, "", "minimal", name)
	if err != nil {
		t.Fatal(err)
	}
	if o.EarlyStop = true; strings.Contains(gate, "mean") {
		if _, _, err := results(t, o, "", "minimal", name); err == nil || !strings.Contains(err.Error(),
			"--early-stop has no effect") {
			t.Errorf("%s: %v", gate, err)
		}
		return
	}
	lines, all, err := results(t, o, "", "minimal", name)
	if err != nil || len(all) != 16 {
		t.Fatal(gate, len(all), err)
	}
	stopped := 0
	for i, r := range all {
		failed := !whole[i].Fitness.Gates[0].Passed
		same := string(r.Metrics) == string(whole[i].Metrics) && r.Fitness.Score == whole[i].Fitness.Score
		switch {
		case r.Stopped == nil && !same:
			t.Errorf("%s, point %d: a run that was not stopped has other metrics", gate, i)
		case r.Stopped == nil:
		case !failed:
			t.Errorf("%s, point %d was stopped at %d µs, but the gate holds: %s", gate, i, r.Stopped.AtUS,
				whole[i].Fitness.Gates[0].Detail)
		case r.Stopped.By != "gate" || r.Stopped.Gate != "g" || r.Stopped.AtUS <= 0 || r.Metrics != nil ||
			r.Fitness.Score != 0 || r.Error != "":
			t.Errorf("%s, point %d: %+v", gate, i, r)
		default:
			stopped++
		}
	}
	if none != (stopped == 0) {
		t.Errorf("%s: %d runs were stopped", gate, stopped)
	}
	o.Results = filepath.Join(dir, "results")
	first, _, _ := results(t, o, "", "minimal", name)
	files, _ := filepath.Glob(filepath.Join(o.Results, "*.json"))
	for _, f := range files[:len(files)/2] { // as if the sweep had been killed
		if err := os.Remove(f); err != nil {
			t.Fatal(err)
		}
	}
	if again, _, _ := results(t, o, "", "minimal", name); first != lines || again != lines {
		t.Errorf("%s: results that were kept differ", gate)
	}
	o.EarlyStop = false
	if _, again, _ := results(t, o, "", "minimal", name); again[0].Metrics == nil {
		t.Errorf("%s: a stopped run is the result of a whole one", gate)
	}
}
