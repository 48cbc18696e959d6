package cluster

import (
	"strings"
	"testing"
)

// TestStructuredOutputErrors: what is not possible is an error that names the field.
func TestStructuredOutputErrors(t *testing.T) {
	const tier = ", kv_tiers: [{tier: cpu, gib: 8, load: {latency_us: 1, gb_per_s: 1}, " +
		"store: {latency_us: 1, gb_per_s: 1}}]"
	for _, c := range []struct{ engine, rest, want string }{
		{"grammar_compile_us: -1", "", "grammar_compile_us: must be between 0 and"},
		{"grammar_compile_cv: 101", "", "grammar_compile_cv: must be between 0 and 100, is 101"},
		{"grammar_workers: -1", "", "grammar_workers: must be between 1 and 65536, is -1"},
		{"grammar_mask_us: -1", "", "grammar_mask_us: must be between 0 and"},
		{"sampling_us: 0", "", "sampling_us: must be between 1 and"},
		{"sampling_us: 5, data_parallel_size: 2", "", "sampling_us: is not supported with data_parallel_size above 1"},
		{"grammar_mask_us: 5, mm_max_tokens_per_item: 20, encoder_token_us: 9", "",
			"grammar_mask_us: is not supported with mm_max_tokens_per_item"},
		{"grammar_compile_cv: 1", tier, "grammar_compile_cv: is not supported with kv_tiers"},
		{"grammar_workers: 2", ", architecture: disaggregated, prefill: {replicas: 1}, transfer: {latency_us: 1, " +
			"out_gb_per_s: 1, in_gb_per_s: 1}", "grammar_workers: is not supported for a disaggregated deployment"},
	} {
		_, _, err := parseDeployment("model: Qwen/Qwen3-8B, gpu: H100, engine: {" + c.engine + "}" + c.rest)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s%s: error %v, want %q", c.engine, c.rest, err, c.want)
		}
	}
}

// TestStructuredOutputDefaults: the defaults apply without a setting, and are stated as soon as there is one. Rules of
// another version are a warning then.
func TestStructuredOutputDefaults(t *testing.T) {
	const model = "model: Qwen/Qwen3-8B, gpu: H100, engine: {preset: "
	for _, c := range []struct {
		engine       string
		isSet, warns bool
	}{{"vllm-0.33", false, false}, {"vllm-0.31", false, false}, {"vllm-0.33, grammar_mask_us: 8", true, false},
		{"vllm-0.31, grammar_workers: 112", true, true}} {
		d, warnings, err := parseDeployment(model + c.engine + "}")
		if err != nil {
			t.Fatal(err)
		}
		s := d.Engine.StructuredOutput
		if s.IsSet() != c.isSet || c.isSet && s.CompileUS == nil {
			t.Errorf("%s: %+v", c.engine, s)
		}
		if s = s.WithDefaults(); *s.CompileUS != 535498 || *s.MaskUS != 8 || *s.SamplingUS != 1 || s.Workers != 112 {
			t.Errorf("%s: defaults %g, %g, %g and %d", c.engine, *s.CompileUS, *s.MaskUS, *s.SamplingUS, s.Workers)
		}
		const warning = "structured output follows the rules of vLLM 0.33"
		if strings.Contains(strings.Join(warnings, "\n"), warning) != c.warns {
			t.Errorf("%s: warnings %q", c.engine, warnings)
		}
		if !d.SimulatesGrammars() {
			t.Errorf("%s: no structured output", c.engine)
		}
	}
}
