package policy

import (
	"bytes"
	"cmp"
	"encoding/json"
	"os"
	"slices"
	"testing"
)

// dynamoStates has states with the choices of Dynamo's code; scripts/dynamo-oracle names others.
var dynamoStates = cmp.Or(os.Getenv("DYNAMO_STATES"), "testdata/dynamo-states.jsonl")

// dynamoState is a state of workers, the workers that Dynamo's code chooses in it, and how often it
// chooses each at a temperature.
type dynamoState struct {
	Input       int64
	BlockTokens int `json:"block_tokens"`
	Replicas    []struct {
		PrefillTokens    int64 `json:"prefill_tokens"`
		Blocks, Shared   int
		Requests, Cached int32
	}
	Params      map[string]any
	Best        []int
	Temperature float64
	Drawn       []int
}

func (s *dynamoState) view() *View {
	v := &View{Request: &Request{InputTokens: s.Input}}
	for i, r := range s.Replicas {
		v.Replicas = append(v.Replicas, Replica{Index: int32(i), Inflight: r.Requests,
			Snapshot: Snapshot{Cached: r.Cached},
			Stats: &Stats{PrefillTokens: r.PrefillTokens,
				Active: ActiveMatch{Blocks: r.Blocks, Shared: r.Shared, BlockTokens: s.BlockTokens}}})
	}
	return v
}

// TestDynamoStates compares the candidates with the lowest cost with the choices of Dynamo's code, and
// the probabilities of the softmax with its frequencies.
func TestDynamoStates(t *testing.T) {
	text, err := os.ReadFile(dynamoStates)
	if err != nil {
		t.Fatal(err)
	}
	states, unlikely := 0, 0
	for line := range bytes.Lines(text) {
		var s dynamoState
		if err := json.Unmarshal(line, &s); err != nil {
			t.Fatal(err)
		}
		states++
		p, err := planeWith("routing", Spec{Type: "dynamo-kv", Params: s.Params})
		if err != nil {
			t.Fatal(err)
		}
		v := s.view()
		var chosen []int
		for v.Draw.Request = range int64(64 * len(s.Best)) {
			chosen = append(chosen, p.Routing.Route(v).Candidate)
		}
		slices.Sort(chosen)
		if chosen = slices.Compact(chosen); !slices.Equal(chosen, s.Best) {
			t.Fatalf("state %d: chose %v, want %v", states, chosen, s.Best)
		}
		if s.isUnlikely(p.Routing.(*dynamoKV), v) {
			unlikely++
		}
	}
	if unlikely > 1+states/200 { // one of 1,000 is expected
		t.Errorf("in %d of %d states the frequencies are unlikely for the probabilities", unlikely, states)
	}
	t.Logf("%d states are equal", states)
}

// isUnlikely reports whether a chi-squared test rejects the probabilities with p below 0.001.
// Candidates that are expected fewer than 5 times count together.
func (s *dynamoState) isUnlikely(d *dynamoKV, v *View) bool {
	costs := make([]float64, len(v.Replicas))
	idle := slices.MinFunc(v.Replicas, func(a, b Replica) int {
		return cmp.Compare(a.Stats.PrefillTokens, b.Stats.PrefillTokens)
	}).Stats.PrefillTokens
	for i := range costs {
		costs[i] = d.cost(s.Input, &v.Replicas[i], idle)
	}
	d.temperature = s.Temperature
	sum := d.softmax(costs)
	n := 0
	for _, k := range s.Drawn {
		n += k
	}
	chi2, bins, restWant, restHave := 0.0, 0, 0.0, 0.0
	add := func(want, have float64) {
		chi2 += (have - want) * (have - want) / want
		bins++
	}
	for i, k := range s.Drawn {
		if want := float64(n) * d.weights[i] / sum; want < 5 {
			restWant, restHave = restWant+want, restHave+float64(k)
		} else {
			add(want, float64(k))
		}
	}
	if restWant >= 5 {
		add(restWant, restHave)
	} else if restHave > 25 {
		return true
	}
	limits := []float64{0, 0, 10.83, 13.82, 16.27, 18.47, 20.52, 22.46, 24.32, 26.12} // by the number of bins
	return bins > 1 && chi2 > limits[bins]
}
