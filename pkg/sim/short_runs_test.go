package sim

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"blis/pkg/cluster"
)

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

// At --trace full a candidate has a term of each scorer.
func TestCandidatesHaveTerms(t *testing.T) {
	c, err := cluster.Parse("c", []byte(`version: 1
deployments:
  - {id: main, model: m, replicas: 2, engine: {num_gpu_blocks_override: 100},
     latency: {model: linear, alpha_us: [0, 0, 0], beta_us: [10000, 10, 1000]}}
policies: {routing: {type: weighted, params: {queue-depth: 2, running-requests: 1}}}
`), cluster.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	must(runLoaded(context.Background(), c, strings.NewReader(
		`{"kind":"request","id":"r","arrival_us":0,"input_tokens":10,"output_tokens":3}`+"\n"), &out,
		Options{Trace: "full", Plain: true}))
	if n := strings.Count(out.String(), `"terms":[`); n != 2 {
		t.Errorf("%d candidates with terms, want 2:\n%s", n, out.String())
	}
}
