package sim

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// vllmCase is a case that scripts/vllm-oracle wrote: a cluster and a workload, and what the scheduler
// of a vLLM version did with them.
type vllmCase struct {
	VLLM     string
	Cluster  json.RawMessage
	Workload []json.RawMessage
	// ModelConfig is the config.json of the model if it is not that of the cluster's model.
	ModelConfig json.RawMessage `json:"model_config"`
	// StepFields names the values of Steps.
	StepFields  []string `json:"step_fields"`
	Steps       [][]any
	Preemptions [][2]any // time, request
	Requests    map[string]map[string]any
	// Transfers are those of a tier: their type, request and blocks, and when they were asked for, started and ended.
	Transfers [][]any
}

// vllmRun is what the simulator did.
type vllmRun struct {
	steps       []map[string]any
	preemptions [][2]any
	requests    map[string]map[string]any
	transfers   [][]any
}

// outcomeOfVLLM are the fields of an outcome that the cases have unless they are absent or 0.
var outcomeOfVLLM = []string{"state", "enqueued_us", "scheduled_us", "first_token_us", "completed_us", "ended_us",
	"generated_tokens", "cached_tokens", "preemptions", "preempted_us", "itl_us"}

// TestVLLM compares the simulator with the recorded steps of vLLM's own scheduler.
func TestVLLM(t *testing.T) {
	files, err := filepath.Glob("../../testdata/vllm/*.json")
	must(err)
	if len(files) < 24 {
		t.Fatalf("only %d cases", len(files))
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			must(err)
			var c vllmCase
			must(json.Unmarshal(text, &c))
			c.compare(t, c.simulate(t))
		})
	}
}

// simulate runs the case on the simulator.
func (c *vllmCase) simulate(t *testing.T) vllmRun {
	t.Helper()
	file := filepath.Join(t.TempDir(), "cluster.yaml")
	must(os.WriteFile(file, c.Cluster, 0o666))
	var in, out bytes.Buffer
	for _, record := range c.Workload {
		in.Write(append(record, '\n'))
	}
	fmt.Fprintf(&in, `{"kind":"end","records":%d}`+"\n", len(c.Workload))
	o := Options{Cluster: file, Trace: "full", ITL: true, Plain: true, Check: true}
	if len(c.ModelConfig) > 0 {
		config := filepath.Join(t.TempDir(), "config.json")
		must(os.WriteFile(config, c.ModelConfig, 0o666))
		o.Set = []string{"deployments.main.model_config=" + config}
	}
	if err := Run(context.Background(), &in, &out, o); err != nil {
		t.Fatal(err)
	}
	run := vllmRun{requests: map[string]map[string]any{}}
	for line := range bytes.Lines(out.Bytes()) {
		var record map[string]any
		must(json.Unmarshal(line, &record))
		switch record["kind"] {
		case "step":
			var batch []any // pairs, as in the cases
			for _, x := range record["batch"].([]any) {
				entry := x.(map[string]any)
				batch = append(batch, []any{entry["request"], entry["tokens"]})
			}
			record["batch"] = batch
			run.steps = append(run.steps, record)
		case "preemption":
			run.preemptions = append(run.preemptions, [2]any{record["at_us"], record["request"]})
		case "transfer":
			run.transfers = append(run.transfers, []any{record["type"], record["request"], record["blocks"],
				record["asked_us"], record["started_us"], record["ended_us"]})
		case "outcome":
			if loaded, ok := record["loaded_tokens"].(map[string]any); ok { // vLLM computes the last token again
				computed := record["cached_tokens"].(float64) + loaded["cpu"].(float64)
				record["cached_tokens"] = min(computed, record["input_tokens"].(float64)-1)
			}
			run.requests[record["id"].(string)] = record
		}
	}
	return run
}

func (c *vllmCase) compare(t *testing.T, run vllmRun) {
	t.Helper()
	for i := range min(len(c.Steps), len(run.steps)) {
		for k, field := range c.StepFields {
			if got, want := run.steps[i][field], c.Steps[i][k]; !reflect.DeepEqual(got, want) {
				t.Fatalf("step %d: %s is %v, in vLLM %s %v", i, field, got, c.VLLM, want)
			}
		}
	}
	if len(run.steps) != len(c.Steps) {
		t.Errorf("%d steps, in vLLM %s %d", len(run.steps), c.VLLM, len(c.Steps))
	}
	if !slices.Equal(run.preemptions, c.Preemptions) {
		t.Errorf("preemptions %v, in vLLM %s %v", run.preemptions, c.VLLM, c.Preemptions)
	}
	for _, kind := range []string{"load", "store"} {
		other := func(x []any) bool { return x[0] != kind }
		got := slices.DeleteFunc(slices.Clone(run.transfers), other)
		if want := slices.DeleteFunc(slices.Clone(c.Transfers), other); !reflect.DeepEqual(got, want) {
			t.Errorf("%ss %v, in vLLM %s %v", kind, got, c.VLLM, want)
		}
	}
	if len(run.requests) != len(c.Requests) {
		t.Errorf("%d requests, in vLLM %s %d", len(run.requests), c.VLLM, len(c.Requests))
	}
	for id, want := range c.Requests {
		for _, field := range outcomeOfVLLM {
			if got := run.requests[id][field]; !reflect.DeepEqual(got, want[field]) {
				t.Errorf("request %s: %s is %v, in vLLM %s %v", id, field, got, c.VLLM, want[field])
			}
		}
	}
}
