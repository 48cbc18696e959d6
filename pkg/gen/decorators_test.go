package gen

import (
	"math"
	"strings"
	"testing"

	"blis/pkg/stream"
)

// Deadlines and predictions follow the configured distributions, and outputs end as configured.
func TestDeadlinesPredictionsAndStops(t *testing.T) {
	list := withNeighbor(t, "", "deadline: {type: exponential, params: {mean: 3000000}}, predicted_output: {error: "+
		"0.5, bias: 2}, ")
	n := float64(len(list))
	patience, ratio, square, long := 0.0, 0.0, 0.0, 0.0
	for _, r := range list {
		if r.DeadlineUS <= r.ArrivalUS || r.PredictedOutputTokens < 1 {
			t.Fatalf("%+v", r)
		}
		patience += float64(r.DeadlineUS-r.ArrivalUS) / n
		if r.OutputTokens > 50 { // where rounding matters little
			x := float64(r.PredictedOutputTokens) / float64(r.OutputTokens)
			ratio, square, long = ratio+x, square+x*x, long+1
		}
	}
	if math.Abs(patience/3e6-1) > 4/math.Sqrt(n) {
		t.Errorf("mean deadline %g µs after arrival", patience)
	}
	ratio /= long
	if cv := math.Sqrt(square/long-ratio*ratio) / ratio; math.Abs(ratio/2-1) > 0.03 || math.Abs(cv-0.5) > 0.03 {
		t.Errorf("predictions are %g times the outputs, with cv %g; want 2 and 0.5", ratio, cv)
	}
	for _, r := range withNeighbor(t, "", "priority: -7, ") {
		if r.Priority != -7 {
			t.Fatalf("%+v does not ask for priority -7", r)
		}
	}
	for _, r := range withNeighbor(t, "", "stop: eos, ") {
		if r.Stop != stream.StopEOS {
			t.Fatalf("%+v does not end by an end-of-sequence token", r)
		}
	}
	for _, r := range withNeighbor(t, "", "predicted_output: {error: 0}, ") {
		if r.PredictedOutputTokens != r.OutputTokens {
			t.Fatalf("an output of %d is predicted as %d without error", r.OutputTokens, r.PredictedOutputTokens)
		}
	}
}

// Media tokens are added to each prompt and change nothing else.
func TestMultimodal(t *testing.T) {
	plain := withNeighbor(t, "", "")
	list := withNeighbor(t, "", "multimodal: {image_tokens: {type: constant, params: {value: 256}}, "+
		"images_per_request: {type: uniform, params: {min: 0, max: 4}}, audio_tokens: {type: constant, params: "+
		"{value: 7}}}, ")
	counts := map[int64]float64{}
	for i, r := range list {
		added := r.InputTokens - plain[i].InputTokens
		if added%256 != 7 || added > 4*256+7 {
			t.Fatalf("%d tokens were added", added)
		}
		counts[added/256]++
		if r.ArrivalUS != plain[i].ArrivalUS || r.OutputTokens != plain[i].OutputTokens {
			t.Fatalf("%+v, without images %+v", r, plain[i])
		}
	}
	n := float64(len(list))
	for images := range int64(5) {
		if math.Abs(counts[images]/n-0.2) > 4*math.Sqrt(0.16/n) {
			t.Errorf("a share of %g has %d images, want 0.2", counts[images]/n, images)
		}
	}
}

// In sessions every model call has a deadline, a prediction and the end of its output, and the session has an end and
// an adapter.
// Bursts consist of sessions with distinct ids.
func TestDecoratorsOfSessions(t *testing.T) {
	const client = `  - id: a
    rate_fraction: 1
    arrival: {process: poisson}
    deadline: {type: constant, params: {value: 50}}
    predicted_output: {error: 0, bias: 2}
    stop: eos
    adapters: {count: 1}
    grammars: {count: 1}
    archetype: {session_length: {type: constant, params: {value: 900}}}
    behavior:
      type: bursty
      burst:
        burst_size: {type: constant, params: {value: 9}}
        burst_interval: {type: constant, params: {value: 1000000}}
    agentic:
      steps:
        - id: ask
          type: llm_call
          input_distribution: {type: constant, params: {value: 5}}
          output_distribution: {type: constant, params: {value: 7}}
        - {id: act, type: tool_call, tool: t, depends_on: [ask]}
      tools:
        t: {latency: {type: constant, params: {value: 1}}, output_tokens: {type: constant, params: {value: 7}}}
`
	text, err := generate(specText("aggregate_rate: 10\nhorizon: 10000000", client), Options{Spec: "-"})
	if err != nil {
		t.Fatal(err)
	}
	r := stream.NewReader(strings.NewReader(text))
	ids, bursts := map[string]bool{}, 0
	for r.Next() {
		if r.Kind() != stream.KindSession {
			continue
		}
		var s stream.Session
		if err := r.Session(&s); err != nil {
			t.Fatal(err)
		}
		ask, act := s.Steps[0], s.Steps[1]
		if s.UntilUS != s.ArrivalUS+900 || s.Adapter != "adapter-1" || ask.TimeoutUS != 50 ||
			ask.PredictedOutputTokens != 14 || ask.Stop != stream.StopEOS || ask.Grammar != "schema-1" ||
			act.TimeoutUS != 0 || act.PredictedOutputTokens != 0 || act.Stop != "" || act.Grammar != "" {
			t.Fatalf("%+v", s)
		}
		if ids[s.ID] {
			t.Errorf("two sessions are called %s", s.ID)
		}
		if ids[s.ID] = true; s.ArrivalUS%1e6 == 0 {
			bursts++
		}
	}
	if r.Err() != nil || bursts != 90 || len(ids) < 90+60 {
		t.Errorf("%d of %d sessions in bursts: %v", bursts, len(ids), r.Err())
	}
}

// Adapters follow Zipf's law: with exponent 1, the second of three is half as popular as the first and the third a
// third.
func TestAdapters(t *testing.T) {
	list := withNeighbor(t, "", "adapters: {name: chat, count: 3, zipf: 1}, ")
	counts := map[string]float64{}
	for _, r := range list {
		counts[r.Adapter]++
	}
	n := float64(len(list))
	for name, share := range map[string]float64{"chat-1": 6. / 11, "chat-2": 3. / 11, "chat-3": 2. / 11} {
		if got := counts[name] / n; math.Abs(got-share) > 4*math.Sqrt(share*(1-share)/n) {
			t.Errorf("%s has a share of %g, want %g", name, got, share)
		}
	}
	if len(counts) != 3 {
		t.Errorf("%v", counts)
	}
	for _, r := range withNeighbor(t, "", "adapters: {count: 1}, ") {
		if r.Adapter != "adapter-1" {
			t.Fatalf("the only adapter is %q", r.Adapter)
		}
	}
}

// TestGrammars: the share of requests with a grammar is that of the spec, and 2/3 of them have the first of two with
// exponent 1.
func TestGrammars(t *testing.T) {
	list := withNeighbor(t, "", "grammars: {name: tools, count: 2, zipf: 1, share: 0.6}, ")
	counts := map[string]float64{}
	for _, r := range list {
		counts[r.Grammar]++
	}
	n := float64(len(list))
	for name, share := range map[string]float64{"": 0.4, "tools-1": 0.4, "tools-2": 0.2} {
		if got := counts[name] / n; math.Abs(got-share) > 4*math.Sqrt(share*(1-share)/n) {
			t.Errorf("%q has a share of %g, want %g", name, got, share)
		}
	}
	if len(counts) != 3 {
		t.Errorf("%v", counts)
	}
}
