package policy

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"os"
	"testing"
)

// plannerCase is an auto-scaler by load or for latency targets, with looks and what Dynamo's planner wants at each,
// nothing if it does not act.
type plannerCase struct {
	Kind, Target, Mode, Predictor string
	Up, Down                      *float64
	KVTokens                      int64 `json:"kv_tokens"`
	// StepUS are a constant and the times of a prompt token, a decoding sequence and a token of its context.
	StepUS              [4]int64 `json:"step_us"`
	MaxNumBatchedTokens int64    `json:"max_num_batched_tokens"`
	MaxNumSeqs          int64    `json:"max_num_seqs"`
	TTFTMS              float64  `json:"ttft_ms"`
	TPOTMS              float64  `json:"tpot_ms"`
	MaxChange           float64  `json:"max_change"`
	QLevel              float64  `json:"q_level"`
	QTrend              float64  `json:"q_trend"`
	R                   float64
	MinPoints           float64 `json:"min_points"`
	Looks               []plannerLook
}

// plannerLook has the replicas and, by load, the tokens of each or, for latency targets, the requests since the last.
type plannerLook struct {
	Ready, Starting, Draining   int
	Values                      []int64
	Seconds, Arrived, Completed int
	Input, Output               int64
	Cached                      float64
	Want                        *int
}

// autoscaler builds the preset of a case.
func (c *plannerCase) autoscaler(t *testing.T) Autoscaler {
	name := "dynamo-sla"
	if c.Kind == "load" {
		name = "dynamo-" + c.Target
	}
	preset, err := AutoscalePresets.Get("auto-scaling preset", name)
	if err != nil {
		t.Fatal(err)
	}
	a := preset()
	a.Preset = name
	given := map[string]any{}
	if c.Up != nil {
		given["up"], given["down"] = *c.Up, *c.Down
	}
	if c.Kind == "sla" {
		given["predictor"], given["ttft_ms"], given["tpot_ms"] = c.Predictor, c.TTFTMS, c.TPOTMS
		given["max_change"], given["q_level"], given["q_trend"] = c.MaxChange, c.QLevel, c.QTrend
		given["r"], given["min_points"] = c.R, c.MinPoints
	}
	for name, x := range given {
		a.Params[name] = x
	}
	b := &Bundle{Autoscale: a}
	b.Complete()
	p, err := Build(b, testEnv)
	if err != nil {
		t.Fatal(err)
	}
	return p.Autoscale
}

// fleet is what a look sees.
func (c *plannerCase) fleet(l *plannerLook, engine *Engine) *Fleet {
	f := &Fleet{Loading: l.Starting, Draining: l.Draining, Engine: engine, Min: 1, Traffic: NewTraffic(0),
		Replicas: make([]Replica, l.Ready)}
	for i := range f.Replicas {
		f.Replicas[i].Stats = &Stats{KVTokens: c.KVTokens}
		if c.Kind == "load" {
			f.Replicas[i].KVUtil = float64(l.Values[i]) / float64(c.KVTokens)
		}
	}
	f.Traffic.interval = interval{lengthUS: int64(l.Seconds) * 1e6, arrived: l.Arrived, completed: l.Completed,
		input: l.Input, output: l.Output, cached: l.Cached * float64(l.Completed)}
	return f
}

// TestDynamoPlanner compares with decisions of Dynamo's planner that scripts/dynamo-planner-oracle has written;
// DYNAMO_PLANNER_CASES names others.
func TestDynamoPlanner(t *testing.T) {
	text, err := os.ReadFile(cmp.Or(os.Getenv("DYNAMO_PLANNER_CASES"), "testdata/dynamo-planner.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	looks, acts := map[string]int{}, map[string]int{}
	s := bufio.NewScanner(bytes.NewReader(text))
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		var c plannerCase
		if err := json.Unmarshal(s.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		stages := map[string]EngineStage{"": WholeRequest, "agg": WholeRequest, "prefill": PrefillStage,
			"decode": DecodeStage}
		engine := &Engine{Stage: stages[c.Mode], MaxBatchedTokens: c.MaxNumBatchedTokens, MaxSeqs: c.MaxNumSeqs,
			KVTokens: c.KVTokens, StepUS: func(prefill, decode, context int64) int64 {
				return c.StepUS[0] + c.StepUS[1]*prefill + c.StepUS[2]*decode + c.StepUS[3]*decode*context
			}}
		a, name := c.autoscaler(t), c.Kind+" "+c.Target+c.Mode
		for i := range c.Looks {
			l := &c.Looks[i]
			f := c.fleet(l, engine)
			want := f.Current()
			if l.Want != nil {
				want = *l.Want
				acts[name]++
			}
			looks[name]++
			if got := a.Recommend(f); max(1, got.Replicas) != want {
				t.Errorf("look %d of %s: %d replicas (%s), Dynamo wants %d", i, s.Bytes(), got.Replicas,
					got.Reason.Append(nil), want)
				break
			}
		}
	}
	for _, name := range []string{"load throughput", "load latency", "load load", "sla agg", "sla prefill",
		"sla decode"} {
		if looks[name] < 20 || acts[name] < 5 {
			t.Errorf("%s: %d looks, at %d of which the planner acts", name, looks[name], acts[name])
		}
	}
	t.Logf("equal at %v looks, at %v of which the planner acts", looks, acts)
}
