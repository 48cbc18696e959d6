package cluster

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

// speculating is a deployment with this speculative_config and more settings of the engine.
func speculating(config, engine string) string {
	return fmt.Sprintf("model: Qwen/Qwen3-8B, gpu: H100, engine: {speculative_config: {%s}%s}", config, engine)
}

// TestSpeculativeErrors: what is not possible is an error that names the field.
func TestSpeculativeErrors(t *testing.T) {
	const good = "method: mtp, num_speculative_tokens: 3, acceptance_rate: 0.5"
	for _, c := range []struct{ config, engine, want string }{
		{"method: medusa, num_speculative_tokens: 3, acceptance_rate: 0.5", "", "method: unknown method"},
		{"method: mtp, acceptance_rate: 0.5", "", "num_speculative_tokens is not in the file: must be"},
		{"method: mtp, num_speculative_tokens: 3", "", "set exactly one of acceptance_rate"},
		{good + ", synthetic_acceptance_length: 2", "", "set exactly one of acceptance_rate"},
		{"method: mtp, num_speculative_tokens: 3, acceptance_rate: 1.5", "", "must be between 0 and 1, is 1.5"},
		{"method: mtp, num_speculative_tokens: 3, synthetic_acceptance_length: 5", "", "must be between 1 and 4, is 5"},
		{"method: mtp, num_speculative_tokens: 2, synthetic_acceptance_rates: [0.5]", "", "= 2 numbers, has 1"},
		{"method: mtp, num_speculative_tokens: 2, synthetic_acceptance_rates: [0.5, 0.6]", "", "and not rise"},
		{good + ", num_speculative_tokens_per_batch_size: [[2, 3, 1]]", "", "from 1 on"},
		{good + ", num_speculative_tokens_per_batch_size: [[1, 3]]", "", "must have entries [first, last, tokens]"},
		{good + ", num_speculative_tokens_per_batch_size: [[1, 3, 1]]", ", data_parallel_size: 2", "data parallelism"},
		{good, ", long_prefill_token_threshold: 3", "which fails in vLLM, is 3"},
		{good, ", max_num_batched_tokens: 3", "max_num_batched_tokens of at least 4"},
		{good + ", draft_sequence_us: 3", "", "draft_pass_us is not in the file: must be set"},
		{"method: draft_model, num_speculative_tokens: 3, acceptance_rate: 0.5", "",
			"model is not in the file: must be set with the method draft_model"},
		{"method: ngram, model: x, num_speculative_tokens: 3, acceptance_rate: 0.5", "", "n-grams have no model"},
	} {
		_, _, err := parseDeployment(speculating(c.config, c.engine))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s%s: error %v, want %q", c.config, c.engine, err, c.want)
		}
	}
	for _, d := range []string{
		"model: openai/gpt-oss-20b, gpu: H100, engine: {speculative_config: {" + good + "}}",
		"model: Qwen/Qwen3-8B, gpu: H100, kv_tiers: [{tier: cpu, gib: 8, load: {latency_us: 1, gb_per_s: 1}, " +
			"store: {latency_us: 1, gb_per_s: 1}}], engine: {speculative_config: {" + good + "}}",
	} {
		if _, _, err := parseDeployment(d); err == nil || !strings.Contains(err.Error(), "is not supported") {
			t.Errorf("%s: %v", d, err)
		}
	}
}

// TestAcceptanceRates: each draft's probability, if those before it are accepted.
func TestAcceptanceRates(t *testing.T) {
	for _, c := range []struct {
		config string
		want   []float64
		length float64
	}{
		{"acceptance_rate: 0.5", []float64{0.5, 0.5, 0.5}, 1.875},
		{"synthetic_acceptance_rates: [0.8, 0.4, 0]", []float64{0.8, 0.5, 0}, 2.2},
		{"synthetic_acceptance_length: 2.5", []float64{1, 0.5, 0}, 2.5},
	} {
		d, _, err := parseDeployment(speculating("method: eagle, num_speculative_tokens: 3, "+c.config, ""))
		if err != nil {
			t.Fatal(err)
		}
		s := d.Engine.SpeculativeConfig
		if got := s.Rates(); !slices.Equal(got, c.want) || math.Abs(s.MeanAcceptanceLength()-c.length) > 1e-12 {
			t.Errorf("%s: %v and %g, want %v and %g", c.config, got, s.MeanAcceptanceLength(), c.want, c.length)
		}
	}
}

// TestDraftSchedule: the drafts of an entry are those of larger batches up to the next one.
func TestDraftSchedule(t *testing.T) {
	s := SpeculativeConfig{NumSpeculativeTokens: 3,
		NumSpeculativeTokensPerBatchSize: [][]int{{1, 2, 5}, {4, 4, 2}, {6, 9, 0}}}
	if got, want := s.Schedule(7), []int{0, 3, 3, 3, 2, 2, 0, 0}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestDraftTimes: a draft takes a layer's share of the step, or the step of its own model.
func TestDraftTimes(t *testing.T) {
	for _, config := range []string{"method: mtp, num_speculative_tokens: 1, acceptance_rate: 0.5",
		"method: draft_model, model: Qwen/Qwen3-8B, num_speculative_tokens: 1, acceptance_rate: 0.5",
		"method: ngram, num_speculative_tokens: 1, acceptance_rate: 0.5"} {
		d, _, err := parseDeployment(speculating(config, ""))
		if err != nil {
			t.Fatal(err)
		}
		k, s := d.Computed, d.Engine.SpeculativeConfig
		if mtp := s.Method == "mtp"; mtp != (k.DraftShare == 1.0/36) ||
			(s.Method == "draft_model") != (k.Draft != nil) || (s.Method == "ngram") != (s.DraftPassUS != nil) {
			t.Errorf("%s: share %g, model %v, pass %v", s.Method, k.DraftShare, k.Draft, s.DraftPassUS)
		}
	}
}
