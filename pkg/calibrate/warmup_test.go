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

// TestStallIsAtTheStart: first tokens that are late while a server warms up are a stall; ones
// that are late all along, or of too few requests, or in the middle, are not.
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
		r := &replay{}
		var simulated []timing
		for i := range requests {
			s := timing{ttft: 30_000 + 1000*float64(i%7)}
			simulated = append(simulated, s)
			s.ttft += 500 * float64(i%5)
			if c.late(i) {
				s.ttft += 800_000
			}
			r.measured = append(r.measured, s)
			r.fitted = append(r.fitted, true)
			r.requests = append(r.requests, stream.Request{ArrivalUS: stream.Micros(i) * 1e5})
		}
		s := r.findStall(simulated, r.fitted)
		if s.until != c.until || s.requests != c.stalled {
			t.Errorf("%s: %d stalled until %g us, want %d until %g", c.name, s.requests, s.until, c.stalled, c.until)
		}
		if s.requests > 0 && (s.delay < 800_000 || s.delay > 803_000) {
			t.Errorf("%s: a median delay of %g us, want about 800,000", c.name, s.delay)
		}
		if r.fitted[0] = false; s.requests > 0 {
			if s := r.findStall(simulated, r.fitted); s.requests != 0 {
				t.Errorf("%s: %d stalled, but the start is excluded", c.name, s.requests)
			}
		}
	}
}

// TestRecordedStallIsExcluded: Mixtral's server stalled for its first eight seconds, in which
// nearly all of its new prompts arrived. The stall does not decide beta[1].
func TestRecordedStallIsExcluded(t *testing.T) {
	if testing.Short() {
		t.Skip("fits to 16,800 requests")
	}
	recorded := filepath.Join("../../../shared/data/vllm/requests",
		"20260218-130541-mixtral-8x7b-v0-1-tp2-general.csv.zst")
	if _, err := os.Stat(recorded); err != nil {
		t.Skipf("no recordings of vLLM servers: %v", err)
	}
	server := filepath.Join(t.TempDir(), "server.yaml")
	const deployment = `version: 1
deployments:
  - id: main
    model: mistralai/Mixtral-8x7B-v0.1
    gpu: H100
    engine: {preset: vllm-0.15, tensor_parallel_size: 2, max_num_seqs: 128, num_gpu_blocks_override: 27510}
`
	if err := os.WriteFile(server, []byte(deployment), 0o644); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	o := Options{Recordings: []string{recorded}, Cluster: server, OutputTokens: 248, Holdout: "stage:1", Format: "json"}
	if err := Run(t.Context(), &out, o); err != nil {
		t.Fatal(err)
	}
	var report struct {
		Warnings []string
		Fitted   []fittedCoefficient
	}
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		t.Fatal(err)
	}
	found := ""
	for _, w := range report.Warnings {
		if strings.Contains(w, "stalled while it warmed up") {
			found += w
		}
	}
	if !strings.Contains(found, "first 7.") || !strings.Contains(found, "prefill would be") {
		t.Errorf("warnings of a stall: %q", found)
	}
	for _, c := range report.Fitted {
		if c.Source == "" {
			t.Errorf("nothing says where %s comes from", c.Name)
		}
		// The time of the kernels is 1; with the stall it would be 2.9.
		if c.Name == "prefill" && (c.Value < 0.4 || c.Value > 1.6) {
			t.Errorf("prefill takes %g of the kernels' time", c.Value)
		}
	}
}
