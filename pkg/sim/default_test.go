package sim

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"testing"

	"blis/pkg/cluster"
	"blis/pkg/stream"
)

// TestDefaultClusterMatchesMeasurements: on one replica of the built-in cluster n sequences decode
// as fast as measured (default.yaml names the source), within 15 %.
func TestDefaultClusterMatchesMeasurements(t *testing.T) {
	c, err := cluster.Load("", cluster.Options{Overrides: []string{"deployments.main.replicas=1"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []struct {
		sequences int
		tpotMS    float64
	}{{1, 7.05}, {64, 10.20}, {256, 15.69}} {
		var in, out bytes.Buffer
		for i := range m.sequences {
			fmt.Fprintf(&in, `{"kind":"request","id":"r%d","arrival_us":0,"input_tokens":8,"output_tokens":400}`+"\n",
				i)
		}
		if err := runCluster(context.Background(), c, mustSpecs(c), &in, &out,
			Options{Trace: "decisions"}); err != nil {
			t.Fatal(err)
		}
		for _, o := range readOutcomes(t, out.Bytes()) {
			tpot := float64(o.CompletedUS-o.FirstTokenUS) / 399 / 1e3
			if off := tpot/m.tpotMS - 1; math.Abs(off) > 0.15 {
				t.Fatalf("%d sequences: TPOT %.2f ms, measured %.2f ms: %+.1f %%", m.sequences, tpot, m.tpotMS, 100*off)
			}
		}
	}
}

func readOutcomes(t *testing.T, run []byte) (all []stream.Outcome) {
	t.Helper()
	r := stream.NewReader(bytes.NewReader(run))
	for r.Next() {
		if r.Kind() == stream.KindOutcome {
			var o stream.Outcome
			if err := r.Outcome(&o); err != nil {
				t.Fatal(err)
			}
			all = append(all, o)
		}
	}
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}
