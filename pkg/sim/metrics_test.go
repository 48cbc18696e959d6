package sim

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"blis/pkg/capacity"
	"blis/pkg/cluster"
	"blis/pkg/stream"
)

// TestDemand: the load of a run equals that of its calls computed by package capacity; approximately
// if calls were dropped.
func TestDemand(t *testing.T) {
	c, err := cluster.Load("", cluster.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{2, 1000, 5*maxCalls + 7} {
		var d demand
		var calls []capacity.Call
		for i := range n {
			o := stream.Outcome{ArrivalUS: stream.Micros(100_000 + 9_000*i), InputTokens: int64(100 + 37*i%900),
				OutputTokens: int64(5 + 91*i%300), CachedTokens: int64(16 * (i % 5))}
			calls = append(calls, capacity.Call{Input: o.InputTokens, Output: o.OutputTokens, Cached: o.CachedTokens})
			d.add(&o)
		}
		got, err := d.load(c)
		if err != nil {
			t.Fatal(err)
		}
		want, err := capacity.Of(c, func(yield func(capacity.Call) bool) {
			for _, x := range calls {
				if !yield(x) {
					return
				}
			}
		}, int64(9_000*(n-1)))
		if err != nil {
			t.Fatal(err)
		}
		tolerance := 1e-12
		if n > maxCalls {
			tolerance = 0.003
		}
		if math.Abs(got.Offered / *want.Offered - 1) > tolerance ||
			math.Abs(got.Uncached / *want.Uncached - 1) > tolerance || got.Offered >= got.Uncached {
			t.Errorf("%d calls: %+v, want %v and %v", n, got, *want.Offered, *want.Uncached)
		}
	}
	var none, one demand
	if l, err := none.load(c); l != nil || err != nil {
		t.Errorf("without calls: %+v, %v", l, err)
	}
	one.add(&stream.Outcome{ArrivalUS: 5, InputTokens: 1, OutputTokens: 1})
	if l, err := one.load(c); l != nil || err != nil {
		t.Errorf("of one call: %+v, %v", l, err)
	}
}

// Attempts that are repeated are no more load: a request that the server rejects three times counts once.
func TestRetriesAreNotMoreLoad(t *testing.T) {
	c, err := cluster.Parse("c", []byte(`version: 1
deployments:
  - {id: main, model: m, replicas: 1, engine: {num_gpu_blocks_override: 100, max_num_queued_reqs: 0},
     latency: {model: linear, alpha_us: [0, 0, 0], beta_us: [10000, 10, 1000]}}
`), cluster.Options{})
	if err != nil {
		t.Fatal(err)
	}
	load := func(retry string, attempts int) float64 {
		var workload strings.Builder
		for i := range 10 {
			fmt.Fprintf(&workload, `{"kind":"request","id":"r%d","arrival_us":%d,`, i, 1_000_000*i)
			workload.WriteString(`"input_tokens":10,"output_tokens":3` + retry + "}\n")
		}
		var out bytes.Buffer
		must(runLoaded(context.Background(), c, strings.NewReader(workload.String()), &out,
			Options{Trace: "decisions", Plain: true}))
		if n := strings.Count(out.String(), `"kind":"outcome"`); n != attempts {
			t.Errorf("%d attempts, want %d", n, attempts)
		}
		m := metricsOf(t, out.Bytes())
		if m.Load == nil {
			t.Fatal("the run has no load")
		}
		return m.Load.Offered
	}
	once := load("", 10)
	if often := load(`,"retry":{"on":["rejected"],"backoff_us":[1000,1000]}`, 30); often != once || once <= 0 {
		t.Errorf("load %v with retries, %v without", often, once)
	}
}
