package gen

import (
	"testing"

	"blis/pkg/stream"
)

const reasoningFields = `    input_distribution: {type: constant, params: {value: 100}}
    output_distribution: {type: constant, params: {value: 30}}
    prefix_spec: {num_prefix_groups: 1, prefix_length: {type: constant, params: {value: 400}}}
    reasoning:
      chain_length: {type: uniform, params: {min: 1, max: 4}}
      tokens_per_step: {type: constant, params: {value: 200}}
`

// Each thought extends the one before; the answer extends all.
func TestChainsOfThought(t *testing.T) {
	lengths := map[int]bool{}
	for _, s := range generateSessions(t, agentSpec("", reasoningFields), Options{Spec: "-"}) {
		last := len(s.Steps) - 1
		lengths[last] = true
		for k := range s.Steps {
			step := &s.Steps[k]
			if want := int64(500 + 200*k); step.InputTokens != want || tokens(s.AppendPrompt(nil, k)) != want {
				t.Errorf("%s: step %d has a prompt of %d tokens, want %d", s.ID, k, step.InputTokens, want)
			}
			if k > 0 && (step.Extends != stream.Index(k-1) || len(step.After) != 1 ||
				step.After[0] != stream.Index(k-1) || step.DelayUS != 0) {
				t.Errorf("%s: step %d is %+v", s.ID, k, step)
			}
			if k < last && (step.OutputTokens != 200 || step.Step != "think" || step.Iteration != int64(k+1)) {
				t.Errorf("%s: step %d is %+v", s.ID, k, step)
			}
		}
		if answer := s.Steps[last]; answer.ID != "answer" || answer.OutputTokens != 30 || answer.Iteration != 0 {
			t.Errorf("%s ends with %+v", s.ID, answer)
		}
	}
	if len(lengths) != 4 || lengths[0] {
		t.Errorf("chain lengths %v", lengths)
	}
}

func TestInvalidReasoning(t *testing.T) {
	for _, c := range []struct{ fields, want string }{
		{"    reasoning: {chain_length: {type: constant, params: {value: 2}}, tokens_per_step: {type: constant, " +
			"params: {value: 2}}}", `clients[0].input_distribution.type is not in the file: unknown distribution ""`},
		{clientLengths + "    reasoning: {chain_length: {type: constant, params: {value: 0}}, tokens_per_step: " +
			"{type: constant, params: {value: 2}}}", `clients[0].reasoning.chain_length.params.value: must be ` +
			`between 1`},
		{clientLengths + "    reasoning: {chain_length: {type: constant, params: {value: 3}}}",
			`clients[0].reasoning.tokens_per_step.type is not in the file: unknown distribution ""`},
	} {
		checkRejected(t, agentSpec("", c.fields), c.want)
	}
}
