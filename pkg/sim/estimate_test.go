package sim

import (
	"bytes"
	"context"
	"math"
	"strings"
	"testing"

	"blis/pkg/cluster"
	"blis/pkg/stream"
)

// With tokens at an even rate, a moving average that is updated often equals one that is updated
// once, and approaches the rate.
func TestRateEWMA(t *testing.T) {
	var often, once rateEWMA
	for i := int64(1); i <= 1000; i++ {
		often.update(i*360_000, i*720_000, i*36_000)
	}
	once.update(360_000_000, 720_000_000, 36_000_000)
	near := func(a, b, by float64) bool { return math.Abs(a-b) < by }
	if !near(often.prefillRate, once.prefillRate, 1e-9) || !near(often.decodeRate, once.decodeRate, 1e-9) {
		t.Errorf("often %+v, once %+v", often, once)
	}
	if want := 1 - math.Exp(-6); !near(once.prefillRate, 2*want, 1e-9) || !near(once.decodeRate, 0.1*want, 1e-9) {
		t.Errorf("after six times paceUS at 2 and 0.1 tokens a us: %+v", once)
	}
	once.update(420_000_000, 720_000_000, 36_000_000)
	if want := 2 * (math.Exp(-1) - math.Exp(-7)); !near(once.prefillRate, want, 1e-9) {
		t.Errorf("idle for paceUS: %v, want %v", once.prefillRate, want)
	}
}

// The first work of a replica is not extrapolated: two idle replicas, one of which has computed a
// long prompt, get nearly the same estimate.
func TestFirstRequestIsNotExtrapolated(t *testing.T) {
	c, err := cluster.Parse("c", []byte(`version: 1
deployments:
  - {id: main, model: m, replicas: 2, engine: {num_gpu_blocks_override: 1000},
     latency: {model: linear, alpha_us: [0, 0, 0], beta_us: [7200, 18, 34.5]}}
policies: {routing: {type: always-busiest}}
`), cluster.Options{})
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Trace: "decisions", Plain: true}
	must(o.Counterfactual.UnmarshalText([]byte("2")))
	var out bytes.Buffer
	const workload = `{"kind":"request","id":"a","arrival_us":0,"input_tokens":2000,"output_tokens":1}
{"kind":"request","id":"b","arrival_us":1000000,"input_tokens":100,"output_tokens":500}
`
	must(runLoaded(context.Background(), c, strings.NewReader(workload), &out, o))
	r := stream.NewReader(&out)
	var last stream.Regret
	for r.Next() {
		if r.Kind() == stream.KindRegret {
			last = stream.Regret{}
			must(r.Decode(&last))
		}
	}
	must(r.Err())
	// 500 steps of 7234.5 us and one with 100 tokens.
	if last.Request != "b" || *last.HindsightMS > 50 || math.Abs(*last.Alternatives[0].E2EMS-3620) > 10 {
		t.Errorf("%+v: %v ms of %v", last, *last.HindsightMS, *last.Alternatives[0].E2EMS)
	}
}

// Estimates on an idle cluster are what happens there, with each feature that changes the steps of a request.
func TestEstimatesKnowFeatures(t *testing.T) {
	for _, c := range []struct {
		engine, request string
		within          float64
	}{
		{"", "", 0.001},
		{"speculative_config: {method: eagle, num_speculative_tokens: 2, acceptance_rate: 0.7, " +
			"draft_pass_us: 500}", "", 0.03},
		{"speculative_config: {method: eagle, num_speculative_tokens: 2, acceptance_rate: 0.1, " +
			"draft_pass_us: 500}",
			`, "draft_acceptance": 0.9`, 0.03},
		{"max_loras: 2, lora_load_us: 0, lora_copy_us: 0, lora_step_factor: 1.5, lora_adapter_us: 1000",
			`, "adapter": "a"`, 0.001},
		{"grammar_compile_us: 700000", `, "grammar": "g"`, 0.01},
	} {
		config, err := cluster.Parse("c", []byte(`version: 1
deployments:
  - {id: main, model: m, replicas: 2, engine: {num_gpu_blocks_override: 1000, `+c.engine+`},
     latency: {model: linear, alpha_us: [0, 0, 0], beta_us: [7200, 18, 34.5]}}
`), cluster.Options{})
		if err != nil {
			t.Fatal(err)
		}
		o := Options{Trace: "decisions", Plain: true}
		must(o.Counterfactual.UnmarshalText([]byte("2")))
		var out bytes.Buffer
		must(runLoaded(context.Background(), config, strings.NewReader(`{"kind":"request","id":"a","arrival_us":0,`+
			`"input_tokens":500,"output_tokens":1000`+c.request+"}\n"), &out, o))
		var regret stream.Regret
		var outcome stream.Outcome
		for r := stream.NewReader(&out); r.Next(); {
			switch r.Kind() {
			case stream.KindRegret:
				must(r.Decode(&regret))
			case stream.KindOutcome:
				must(r.Outcome(&outcome))
			}
		}
		got, want := *regret.Alternatives[0].E2EMS, float64(outcome.CompletedUS)/1000
		if math.Abs(got/want-1) > c.within {
			t.Errorf("%s%s: the estimate is %.0f ms, it takes %.0f", c.engine, c.request, got, want)
		}
	}
}
