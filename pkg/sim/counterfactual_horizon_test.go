package sim

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"

	"blis/pkg/cluster"
	"blis/pkg/stream"
)

// TestCounterfactualHorizon: the horizon of an alternative counts from the decision, even after a
// long idle time, and requests that were read but arrive later do not matter.
func TestCounterfactualHorizon(t *testing.T) {
	const prompt = `"output_tokens":3,"prompt":[{"id":"p","tokens":160}]}` + "\n"
	const workload = `{"kind":"request","id":"first","arrival_us":0,"input_tokens":160,` + prompt +
		`{"kind":"request","id":"second","arrival_us":1000000,"input_tokens":170,` + prompt +
		`{"kind":"request","id":"late","arrival_us":9000000,"input_tokens":10,"output_tokens":3}` + "\n"
	for _, routing := range []string{"0", "5"} { // with 5 µs, late has been read when second is routed
		c, err := cluster.Parse("c", []byte(`version: 1
deployments:
  - {id: main, model: m, replicas: 2, engine: {num_gpu_blocks_override: 100},
     latency: {model: linear, alpha_us: [0, 0, 0], beta_us: [10000, 10, 1000]}}
policies: {routing: {type: always-busiest}}
control_plane: {routing_latency_us: `+routing+"}\n"), cluster.Options{})
		if err != nil {
			t.Fatal(err)
		}
		o := Options{Trace: "decisions", Plain: true, CounterfactualHorizon: &Horizon{Time: 100_000}}
		must(o.Counterfactual.UnmarshalText([]byte("dec-000001")))
		var out bytes.Buffer
		if err := runLoaded(context.Background(), c, strings.NewReader(workload), &out, o); err != nil {
			t.Fatal(err)
		}
		// The other replica has not cached the prompt: 160 more tokens of 10 µs.
		if own := exactRegret(t, &out).Alternatives[0].Own; own.LatencyChanged != 1 || own.E2EMS != -1.6 ||
			own.TTFTMS != -1.6 {
			t.Errorf("routing in %s us: %+v", routing, own)
		}
	}
}

// A decision that --counterfactual names and the run does not have is warned of; one that it has is not.
func TestUnknownDecisionsAreWarnedOf(t *testing.T) {
	workload := `{"kind":"request","id":"a","arrival_us":0,"input_tokens":10,"output_tokens":3}` + "\n" +
		`{"kind":"request","id":"b","arrival_us":10,"input_tokens":10,"output_tokens":3}` + "\n"
	for name, want := range map[string]int{"dec-000000": 0, "dec-000001": 0, "dec-000007": 1} {
		c, err := cluster.Parse("c", []byte(`version: 1
deployments:
  - {id: main, model: m, replicas: 2, engine: {num_gpu_blocks_override: 100},
     latency: {model: linear, alpha_us: [0, 0, 0], beta_us: [10000, 10, 1000]}}
`), cluster.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var warnings []string
		o := Options{Trace: "decisions", Plain: true}
		o.Warn = func(text string) {
			if strings.Contains(text, name+" is not ") {
				warnings = append(warnings, text)
			}
		}
		must(o.Counterfactual.UnmarshalText([]byte(name)))
		if err := runLoaded(context.Background(), c, strings.NewReader(workload), io.Discard, o); err != nil {
			t.Fatal(err)
		}
		if len(warnings) != want {
			t.Errorf("%s: %q", name, warnings)
		}
	}
}

// exactRegret returns the first exact regret in a run.
func exactRegret(t *testing.T, run io.Reader) *stream.Regret {
	t.Helper()
	r := stream.NewReader(run)
	defer r.Close()
	for r.Next() {
		if r.Kind() != stream.KindRegret {
			continue
		}
		var g stream.Regret
		must(r.Decode(&g))
		if g.Method == stream.MethodExact {
			return &g
		}
	}
	t.Fatalf("no regret: %v", r.Err())
	return nil
}
