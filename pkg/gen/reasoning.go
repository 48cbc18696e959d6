package gen

import (
	"blis/pkg/dist"
	"blis/pkg/stream"
)

// Reasoning makes a client send chains of thought: sessions of model calls without pauses. The
// first prompt is the client's prefix and a question; each later prompt extends the previous one by
// its output. The last call generates the answer.
type Reasoning struct {
	ChainLength   dist.Spec `yaml:"chain_length" json:"chain_length"`
	TokensPerStep dist.Spec `yaml:"tokens_per_step" json:"tokens_per_step"`
}

// reasoners generates the chains of thought of a client.
type reasoners struct {
	sessionBase
	lengths
	chainLength, tokensPerStep *dist.Length
}

// newReasoners makes the generator of the client c.
func newReasoners(seed uint64, c *Client, at field) *reasoners {
	return &reasoners{newSessionBase(seed, c, "reasoning", at), newLengths(c, at),
		at.length("reasoning.chain_length", &c.Reasoning.ChainLength),
		at.length("reasoning.tokens_per_step", &c.Reasoning.TokensPerStep)}
}

// fill makes one chain.
func (m *reasoners) fill(a *stream.Arrival, n int64, at stream.Micros) error {
	d := m.newDraft(a, n, at)
	d.choosePrefix()
	inputs, outputs := d.lengthStreams()
	steps := int(min(m.chainLength.Draw(d.stream("chain")), maxSteps-1))
	question := m.input.Draw(inputs)
	answer := m.output.Draw(outputs)
	for k := range steps + 1 {
		s := d.addCall("think")
		s.Iteration = int64(k + 1)
		if k < steps {
			s.OutputTokens = m.tokensPerStep.Draw(outputs)
		} else {
			s.ID, s.Step, s.Iteration, s.OutputTokens = "answer", "", 0, answer
		}
		if k == 0 {
			s.Prompt = append(d.appendPrefix(s.Prompt), d.ownSegment(s.ID, question))
		} else {
			s.Extends = stream.Index(k - 1)
			s.Prompt = append(s.Prompt, d.outputSegment(&d.Steps[k-1]))
		}
		if err := d.setPromptLength(); err != nil {
			return err
		}
	}
	return nil
}
