package policy

import (
	"bytes"
	"cmp"
	"encoding/json"
	"os"
	"slices"
	"testing"
)

// statesFile has states with the results of llm-d's code; scripts/llmd-oracle names others.
var statesFile = cmp.Or(os.Getenv("LLMD_STATES"), "testdata/llm-d-states.jsonl")

// llmdState is a state of replicas and what llm-d's code makes of it: the replicas that its filters
// keep, the scores of its scorers for these, its choice, and the saturation of its detectors.
type llmdState struct {
	Input    int64
	Blocks   int32
	Replicas []struct {
		Queue, Running, Inflight, Matched int32
		KV                                float64
		Tokens                            int64
		Stale                             bool
	}
	Profile   []Spec
	Kept      []int
	Scores    [][]float64
	Chosen    int
	Detectors []struct {
		Spec
		Saturation float64
	}
}

func readStates(t *testing.T) (all []llmdState) {
	text, err := os.ReadFile(statesFile)
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		var s llmdState
		if err := json.Unmarshal(line, &s); err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	return all
}

func (s *llmdState) view() *View {
	const now = 7200e6
	v := &View{NowUS: now, Request: &Request{InputTokens: s.Input, SessionID: -1}}
	for i, r := range s.Replicas {
		stats := &Stats{Prefix: PrefixMatch{r.Matched, s.Blocks, 64}, PrefillTokens: r.Tokens}
		for f := range stats.TakenUS {
			stats.TakenUS[f] = now
			if r.Stale {
				stats.TakenUS[f] = now / 2
			}
		}
		v.Replicas = append(v.Replicas, Replica{Index: int32(i), Inflight: r.Inflight, Stats: stats,
			Snapshot: Snapshot{QueueDepth: r.Queue, Running: r.Running, KVUtil: r.KV}})
	}
	return v
}

// TestLLMDStates compares filters, scores and choices with those of llm-d's code, exactly.
func TestLLMDStates(t *testing.T) {
	states := readStates(t)
	for n, s := range states {
		p, err := planeWith("routing", Spec{Type: "llm-d", Of: s.Profile})
		if err != nil {
			t.Fatal(err)
		}
		v := s.view()
		v.Trace = new(Trace)
		v.Trace.Reset(len(v.Replicas))
		c := p.Routing.Route(v)
		for i := range v.Replicas {
			if kept := slices.Contains(s.Kept, i); kept == v.Trace.Filtered[i] {
				t.Errorf("state %d: replica %d is filtered: %v, want %v", n, i, !kept, kept)
			}
		}
		for k := range s.Scores {
			for i, at := range s.Kept {
				if have := v.Trace.Terms[k*len(v.Replicas)+at]; have != s.Scores[k][i] {
					t.Errorf("state %d, %s of replica %d: %v, want %v", n, v.Trace.Scorers[k], at, have, s.Scores[k][i])
				}
			}
		}
		if have, want := v.Trace.Scores[c.Candidate], v.Trace.Scores[s.Chosen]; have != want {
			t.Errorf("state %d: chose %d with the score %v, want %d with %v", n, c.Candidate, have, s.Chosen, want)
		} else if c.Tied == 0 && c.Candidate != s.Chosen {
			t.Errorf("state %d: chose %d without a tie, want %d", n, c.Candidate, s.Chosen)
		}
		if t.Failed() {
			t.FailNow()
		}
	}
	t.Logf("%d states are equal", len(states))
}

// TestLLMDSaturation compares the saturation with that of llm-d's detectors, exactly.
func TestLLMDSaturation(t *testing.T) {
	states := readStates(t)
	for n, s := range states {
		v := s.view()
		for _, d := range s.Detectors {
			g, _, err := NewGate(GateConfig{Detector: &d.Spec})
			if err != nil {
				t.Fatal(err)
			}
			if have := g.Saturation(v, nil); have != d.Saturation {
				t.Fatalf("state %d, %s %v: %v, want %v", n, d.Type, d.Params, have, d.Saturation)
			}
		}
	}
	t.Logf("%d states are equal", len(states))
}
