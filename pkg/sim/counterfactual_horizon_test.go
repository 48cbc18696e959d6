package sim

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"blis/pkg/cluster"
	"blis/pkg/record"
)

// TestCounterfactualHorizon: how far another choice is played counts from the
// decision, however long nothing happened before it, and requests that have been
// read but arrive later are of no concern.
func TestCounterfactualHorizon(t *testing.T) {
	c, err := cluster.Parse("c", []byte(`version: 1
deployments:
  - {id: main, model: m, replicas: 2, engine: {num_gpu_blocks_override: 100}, latency: {model: linear, alpha_us: [0, 0, 0], beta_us: [10000, 0, 1000]}}
policies: {routing: {type: always-busiest}}
`), cluster.Options{})
	if err != nil {
		t.Fatal(err)
	}
	workload := `{"kind":"request","id":"long","arrival_us":0,"input_tokens":10,"output_tokens":100}
{"kind":"request","id":"short","arrival_us":1000000,"input_tokens":10,"output_tokens":3}
{"kind":"request","id":"late","arrival_us":9000000,"input_tokens":10,"output_tokens":3}
`
	o := Options{Trace: "decisions", Plain: true, CounterfactualHorizon: &Horizon{Time: 100_000}}
	must(o.Counterfactual.UnmarshalText([]byte("dec-000001")))
	var out bytes.Buffer
	if err := runLoaded(context.Background(), c, strings.NewReader(workload), &out, o); err != nil {
		t.Fatal(err)
	}
	r := record.NewReader(&out)
	defer r.Close()
	for r.Next() {
		var g record.Regret
		if r.Kind() != record.KindRegret {
			continue
		}
		must(r.Decode(&g))
		if g.Method != record.MethodExact {
			continue
		}
		// Beside the long one, the short one has steps of 11 ms, and waits for the end
		// of one; alone it has 10, 11 and 11 ms and waits for nothing.
		if own := g.Alternatives[0].Own; g.Request != "short" || own.Changed != 1 || own.E2EMS <= 0 || own.E2EMS > 15 {
			t.Errorf("%s: %+v, %+v", g.Request, g.Alternatives[0], own)
		}
		return
	}
	t.Errorf("no regret: %v", r.Err())
}
