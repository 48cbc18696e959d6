package sim

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"blis/pkg/cluster"
	"blis/pkg/internal/reference"
	"blis/pkg/metrics"
)

// TestReferenceOnRanks compares random clusters with data-parallel ranks.
func TestReferenceOnRanks(t *testing.T) {
	compareSeeds(t, 2000, 200, reference.RandomRanks, 2161)
}

// dpOf are the metrics of ranks in lockstep.
func dpOf(c reference.RankCounts) *metrics.DP {
	if c.Steps == 0 {
		return nil
	}
	d := &metrics.DP{Steps: int64(c.Steps), IdleShare: float64(c.Dummies) / float64(c.Steps),
		Imbalance: float64(c.Widest) / float64(c.Tokens)}
	if c.BusyUS > 0 {
		d.WaitShare = new(float64(c.WaitUS) / float64(c.BusyUS))
	}
	return d
}

// TestRanksOfModels: ranks of a model with experts wait for each other, those of a dense one do not. Prompts of very
// different lengths come to the two ranks in turn. Without a trace, in which replicas could run steps ahead, the
// metrics are the same.
func TestRanksOfModels(t *testing.T) {
	var in strings.Builder
	for i := range 40 {
		fmt.Fprintf(&in, `{"kind":"request","id":"r%d","arrival_us":%d,"input_tokens":%d,"output_tokens":20}`+"\n", i,
			20000*i, 10+4000*(i%2))
	}
	for _, c := range []struct {
		model string
		waits bool
	}{{"Qwen/Qwen3-30B-A3B", true}, {"Qwen/Qwen3-8B", false}} {
		file := filepath.Join(t.TempDir(), "c.yaml")
		must(os.WriteFile(file, []byte("version: 1\ndeployments: [{id: d, model: "+c.model+
			", gpu: H100, engine: {data_parallel_size: 2}}]\n"), 0o666))
		loaded, err := cluster.Load(file, cluster.Options{})
		if err != nil {
			t.Fatal(err)
		}
		play := func(trace string) metrics.Record {
			var out bytes.Buffer
			o := Options{Trace: trace, Plain: true, Check: trace == "full"}
			if err := runLoaded(t.Context(), loaded, strings.NewReader(in.String()), &out, o); err != nil {
				t.Fatal(err)
			}
			return readRun(t, out.Bytes(), 2, 2, nil).metrics
		}
		m := play("full")
		d, x := m.DP, m.Replicas
		if waits := d != nil && d.WaitShare != nil && *d.WaitShare > 0.1 && d.Imbalance > 1.2; waits != c.waits {
			t.Errorf("%s: %+v, want waits %v", c.model, d, c.waits)
		}
		if len(x) != 2 || min(x[0].Requests, x[1].Requests) < 10 {
			t.Errorf("%s: replicas %+v, want two with at least 10 requests each", c.model, x)
		}
		if gpus := m.Cost.GPUS / (float64(m.UntilUS-m.FromUS) / 1e6); gpus < 1.99 || gpus > 2.01 {
			t.Errorf("%s: %.2f GPUs, want 2", c.model, gpus)
		}
		quiet := play("minimal")
		quiet.Anomalies, m.Anomalies = nil, nil
		if diff := difference(m, quiet); diff != "" {
			t.Errorf("%s: the metrics with a trace (-) and without (+) differ:\n%s", c.model, diff)
		}
	}
}

// TestReferenceOnCadence compares random clusters with prompts in some steps only.
func TestReferenceOnCadence(t *testing.T) {
	compareSeeds(t, 3000, 300, reference.RandomCadence)
}
