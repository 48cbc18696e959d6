package calibrate

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"blis/pkg/stream"
)

// TestStallIsAtTheStart: first tokens that are late while a server warms up are a stall;
// ones that are late all along, or of too few requests, or in the middle, are none.
func TestStallIsAtTheStart(t *testing.T) {
	const requests = 600
	for _, c := range []struct {
		name    string
		late    func(i int) bool
		until   float64
		stalled int
	}{
		{"nothing late", func(int) bool { return false }, 0, 0},
		{"the first 40, but for some", func(i int) bool { return i < 40 && i%4 != 3 }, 38 * 1e5, 30},
		{"the first 3", func(i int) bool { return i < 3 }, 0, 0},
		{"40 in the middle", func(i int) bool { return i >= 200 && i < 240 }, 0, 0},
		{"the first 40, and every twentieth", func(i int) bool { return i < 40 || i%20 == 0 }, 0, 0},
	} {
		r := &run{}
		var simulated []seen
		for i := range requests {
			s := seen{ttft: 30_000 + 1000*float64(i%7)}
			simulated = append(simulated, s)
			s.ttft += 500 * float64(i%5)
			if c.late(i) {
				s.ttft += 800_000
			}
			r.measured = append(r.measured, s)
			r.used = append(r.used, true)
			r.requests = append(r.requests, stream.Request{ArrivalUS: stream.Micros(i) * 1e5})
		}
		until, stalled, middle := r.stall(simulated)
		if until != c.until || stalled != c.stalled {
			t.Errorf("%s: %d stalled until %g us, want %d until %g", c.name, stalled, until, c.stalled, c.until)
		}
		if stalled > 0 && (middle < 800_000 || middle > 803_000) {
			t.Errorf("%s: half are late by %g us, want some 800,000", c.name, middle)
		}
		if r.used[0] = false; stalled > 0 {
			if _, n, _ := r.stall(simulated); n != 0 {
				t.Errorf("%s: %d stalled, of a run whose start is not used", c.name, n)
			}
		}
	}
}

// TestStallRecorded: Mixtral's server stalled for its first eight seconds, in which nearly
// all of its cold prompts came. What computing a prompt takes is not to be told by that.
func TestStallRecorded(t *testing.T) {
	if testing.Short() {
		t.Skip("fits to 16,800 requests")
	}
	recorded := filepath.FromSlash("../../../shared/data/vllm/requests/20260218-130541-mixtral-8x7b-v0-1-tp2-general.csv.zst")
	if _, err := os.Stat(recorded); err != nil {
		t.Skipf("no recordings of vLLM servers: %v", err)
	}
	server := filepath.Join(t.TempDir(), "server.yaml")
	if err := os.WriteFile(server, []byte("version: 1\ndeployments:\n  - {id: main, model: mistralai/Mixtral-8x7B-v0.1, gpu: H100, engine: {preset: vllm-0.15, tensor_parallel_size: 2, max_num_seqs: 128, num_gpu_blocks_override: 27510}}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := Run(t.Context(), &out, Options{Recordings: []string{recorded}, Cluster: server, OutputTokens: 248, Holdout: "stage:1", Format: "json"}); err != nil {
		t.Fatal(err)
	}
	var report struct {
		Warnings []string
		Fitted   []Coefficient
	}
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		t.Fatal(err)
	}
	told := ""
	for _, w := range report.Warnings {
		if strings.Contains(w, "was warming up") {
			told += w
		}
	}
	if !strings.Contains(told, "first 7.8 s") || !strings.Contains(told, "beta[1] would be") {
		t.Errorf("told of a stall: %q", told)
	}
	for _, c := range report.Fitted {
		// A roofline says 25; 100 is what the stall would make of it.
		if c.Name == names[beta1] && (c.Value < 10 || c.Value > 60) {
			t.Errorf("beta[1] is %g us", c.Value)
		}
	}
}

// TestJudgedStallIsToldOf: of a part whose first requests met a stall it is told with how
// long; of the part behind it, and of one without, it is not.
func TestJudgedStallIsToldOf(t *testing.T) {
	for _, c := range []struct {
		stalled int
		from    stream.Micros
		want    string
	}{{30, 0, "the part: the first tokens of 30 requests of its first 29 s came late, half of them by 0.8 s"}, {30, 60e6, ""}, {0, 0, ""}} {
		run := shortRun(300)
		p := part{name: "the part", run: run, in: run.within(c.from, 300e6)}
		for i, m := range run.measured {
			p.simulated = append(p.simulated, m)
			run.measured[i].ttft += 100 * float64(i%5)
			if i < c.stalled {
				run.measured[i].ttft += 800e3
			}
		}
		r := &Report{setup: &setup{}}
		r.warnStall(&p)
		if got := strings.Join(r.setup.warnings, "; "); !strings.Contains(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%d stalled, judged from %d on: %q, want %q", c.stalled, c.from, got, c.want)
		}
	}
}
