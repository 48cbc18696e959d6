package cluster

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestWhatIfRecomputesDerivedValues: overrides of a resolved configuration have the
// same result as overrides of its original file: derived values are recomputed, set
// values stay.
func TestWhatIfRecomputesDerivedValues(t *testing.T) {
	const llama = "model: meta-llama/Llama-3.1-8B-Instruct, gpu: H100"
	for _, c := range []struct{ deployment, sets string }{
		{llama, "gpu=L40S"},
		{llama, "gpu=h100"},
		{llama, "engine.tensor_parallel_size=2"},
		{llama, "model=Qwen/Qwen3-8B"},
		{llama, "engine.quantization=fp8"},
		{llama, "engine.preset=vllm-0.15"},
		{llama, "engine={preset: vllm-0.15, max_num_seqs: 7}"},
		{llama, "engine.max_num_seqs=8"},
		{llama, "latency.beta_us=[1, 2, 3] & latency.alpha_us=[1, 2, 3]"},
		{llama, "latency.alpha_us=[1, 2, 3]"},
		{llama, "latency.jitter.cv=0.1"},
		{llama, "latency.model=roofline"},
		{llama, "latency={model: roofline} & gpu=A100"},
		{llama, "gpu=L40S & engine.max_model_len=4096 & latency={alpha_us: [0, 0, 0], beta_us: [1, 2, 3]}"},
		{llama + ", engine: {preset: vllm-0.15}", "gpu=L4 & engine.max_model_len=8192"},
		{llama, "engine.max_num_batched_tokens=100"},
		{llama + ", engine: {max_num_batched_tokens: 100}", "engine.max_num_batched_tokens=1000"},
		{llama + ", engine: {enable_chunked_prefill: false}", "engine.enable_chunked_prefill=true"},
		{llama, "engine.enable_chunked_prefill=false & engine.max_model_len=9000"},
		{llama + ", engine: {preset: vllm-0.15}", "engine.preset=vllm-0.8"},
		{llama + ", engine: {preset: vllm-0.15, max_num_seqs: 64, block_size: 32, max_model_len: 5000}", "gpu=L40S"},
		{llama + ", latency: {alpha_us: [0, 0, 0], beta_us: [1, 2, 3], source: mine, range: {input_tokens: [1, 2]}}",
			"gpu=L40S & model=Qwen/Qwen3-8B"},
		{llama + ", latency: {alpha_us: [0, 0, 0], beta_us: [1, 2, 3]}",
			"latency.table={prefill_tokens: [0, 100], decode_sequences: [0, 10], context_tokens: [0], step_us: " +
				"[1, 2, 3, 4]}"},
		{llama + ", latency: {alpha_us: [1, 2, 3], jitter: {cv: 0.2}}", "gpu=A100"},
		{llama + ", engine: {num_gpu_blocks_override: 999}", "gpu=A100"},
		{"model: Qwen/Qwen3-8B, gpu: L40S", "model=meta-llama/Llama-3.1-8B-Instruct & gpu=H100"},
	} {
		var sets []string
		for _, set := range strings.Split(c.sets, " & ") {
			sets = append(sets, "deployments.main."+set)
		}
		text := "version: 1\ndeployments: [{id: main, " + c.deployment + "}]\n"
		direct, err := parse(text, Options{Overrides: sets})
		if err != nil {
			t.Errorf("%s %q: %v", c.deployment, sets, err)
			continue
		}
		before, err := parse(text, Options{})
		if err != nil {
			t.Fatal(err)
		}
		printed, err := json.Marshal(before)
		if err != nil {
			t.Fatal(err)
		}
		var warnings []string
		whatIf, err := Parse("printed", printed, Options{Overrides: sets,
			Warn: func(w string) { warnings = append(warnings, w) }})
		if err != nil {
			t.Errorf("%s %q: %v", c.deployment, sets, err)
			continue
		}
		if diff := cmp.Diff(direct, whatIf); diff != "" {
			t.Errorf("%s %q differs when it is set afterwards (+):\n%s", c.deployment, sets, diff)
		}
		for _, w := range warnings {
			if strings.Contains(w, "computed") && !strings.Contains(w, "roofline") {
				t.Errorf("%s %q: warning: %s", c.deployment, sets, w)
			}
		}
	}
}

// TestEditedPrintedConfig: edits of a printed configuration are set values.
func TestEditedPrintedConfig(t *testing.T) {
	c, err := Load("", Options{})
	if err != nil {
		t.Fatal(err)
	}
	printed, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	edit := func(old, new string) (*Config, error) {
		text := strings.Replace(string(printed), old, new, 1)
		if text == string(printed) {
			t.Fatalf("there is no %s in %s", old, printed)
		}
		return Parse("printed", []byte(text), Options{})
	}
	if c, err := edit(`"max_model_len":131072`, `"max_model_len":4096`); err != nil ||
		c.Deployments[0].Engine.MaxModelLen != 4096 {
		t.Errorf("edited max_model_len: %v", err)
	}
	if c, err := edit(`"gpu":"H100-SXM-80GB"`, `"gpu":"L40S"`); err != nil ||
		c.Deployments[0].Latency.Model != "operators" {
		t.Errorf("step times of the other GPU: %v", err)
	}
	if _, err := edit(`"values":["engine.max_num_seqs"`, `"values":["engine.max_seqs"`); err == nil ||
		!strings.Contains(err.Error(), `deployments[0].derived.values[0]: unknown derived value `+
			`"engine.max_seqs"; did `+
			`you mean "engine.max_num_seqs"?`) {
		t.Errorf("an unknown derived value: %v", err)
	}
}

// TestWhatIfWithCoefficientFile: a change of the GPU needs new coefficients, since the
// file's are for the old GPU.
func TestWhatIfWithCoefficientFile(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return name
	}
	own := write("own.yaml", "version: 1\ncoefficients:\n  - {model: meta-llama/Llama-3.1-8B, gpu: H100, latency: "+
		"{model: linear, alpha_us: [1, 2, 3], beta_us: [4, 5, 6]}, source: made up}\n")
	c, err := Load(write("c.yaml", "version: 1\ndeployments: [{id: main, model: "+
		"meta-llama/Llama-3.1-8B-Instruct, gpu: "+
		"H100, latency: {from: own.yaml}}]\n"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	printed, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []struct {
		set, want string
		beta      float64
	}{
		{"replicas=2", "", 4},
		{"latency.alpha_us=[9, 9, 9]", "", 4},
		{"latency={alpha_us: [1, 2, 3], beta_us: [7, 7, 7]}", "", 7},
		{"latency.from=" + own, "", 4},
		{"gpu=A100", "comes from a file of coefficients for meta-llama/Llama-3.1-8B-Instruct on 1x1x1 " +
			"H100-SXM-80GB; for " +
			"meta-llama/Llama-3.1-8B-Instruct on 1x1x1 A100 set latency.from again, or other step times", 0},
	} {
		c, err := Parse("printed", printed, Options{Overrides: []string{"deployments.main." + f.set}})
		switch {
		case f.want == "" && (err != nil || c.Deployments[0].Latency.BetaUS[0] != f.beta):
			t.Errorf("%s: %v, want beta_us of %v", f.set, err, f.beta)
		case f.want != "" && (err == nil || !strings.Contains(err.Error(), f.want)):
			t.Errorf("%s: error %v, want %s", f.set, err, f.want)
		}
	}
}

// TestUnusedVictimRules: rules about victims are reported where they are set and never apply, also when
// the configuration is read from its JSON. Those of an engine version are not.
func TestUnusedVictimRules(t *testing.T) {
	for _, c := range []struct {
		sets []string
		want int
	}{
		{nil, 0},
		{[]string{"deployments.main.engine.preset=vllm-0.33"}, 0},
		{[]string{"deployments.main.engine.after_self_preemption=continue"}, 1},
		{[]string{"deployments.main.engine.after_self_preemption=continue",
			"deployments.main.engine.idle_victim_skips_next=true"}, 2},
		{[]string{"deployments.main.engine.after_self_preemption=continue",
			"policies.preemption={type: lowest-priority}", "policies.priority={type: slo-based}"}, 0},
	} {
		n := 0
		count := func(w string) {
			if strings.Contains(w, "never preempts an earlier request") {
				n++
			}
		}
		one, err := parse(smallCluster, Options{Overrides: c.sets, Warn: count})
		if err != nil || n != c.want {
			t.Errorf("%q: %d warnings, %v", c.sets, n, err)
			continue
		}
		text, err := json.Marshal(one)
		if err != nil {
			t.Fatal(err)
		}
		n = 0
		if _, err := parse(string(text), Options{Warn: count}); err != nil || n != c.want {
			t.Errorf("%q, parsed from its JSON: %d warnings, %v", c.sets, n, err)
		}
	}
}
