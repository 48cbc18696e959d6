package gen

import (
	"blis/pkg/dist"
	"blis/pkg/stream"
)

// Reasoning makes chains of thought of what a client sends: sessions in which a
// program calls the model again and again. The first prompt is the client's
// prefix and a question of its input_distribution; each step goes on from the
// prompt and the thought of the one before, at once. The last call, behind all
// steps, gives the answer, of the client's output_distribution.
type Reasoning struct {
	// ChainLength is how many steps of thought come before the answer, TokensPerStep
	// how much each of them generates. No chain has more than 9,999.
	ChainLength   dist.Spec `yaml:"chain_length" json:"chain_length"`
	TokensPerStep dist.Spec `yaml:"tokens_per_step" json:"tokens_per_step"`
}

// thinkers are the chains of thought of a client.
type thinkers struct {
	sessions
	lengths
	chain, thought *dist.Length
}

// newThinkers makes the chains of c, which stands at path.
func newThinkers(seed uint64, c *Client, path string, fault fault) (*thinkers, error) {
	m := &thinkers{}
	var err error
	if m.sessions, err = newSessions(seed, c, path, "reasoning", fault); err != nil {
		return nil, err
	}
	if m.lengths, err = newLengths(c, path, fault); err != nil {
		return nil, err
	}
	path += ".reasoning"
	if m.chain, err = lengthAt(c.Reasoning.ChainLength, path+".chain_length", fault); err != nil {
		return nil, err
	}
	m.thought, err = lengthAt(c.Reasoning.TokensPerStep, path+".tokens_per_step", fault)
	return m, err
}

// fill makes one chain.
func (m *thinkers) fill(a *stream.Arrival, n int64, at stream.Micros) error {
	d := m.begin(a, n, at)
	d.choosePrefix()
	from := d.draws()
	thoughts := int(min(m.chain.Draw(d.stream("chain")), maxSteps-1))
	question := m.input.Draw(from.input)
	answer := m.output.Draw(from.output)
	for k := range thoughts + 1 {
		s := d.next("think")
		s.Iteration = int64(k + 1)
		if k < thoughts {
			s.OutputTokens = m.thought.Draw(from.output)
		} else {
			s.ID, s.Step, s.Iteration, s.OutputTokens = "answer", "", 0, answer
		}
		if k == 0 {
			s.Prompt = append(d.appendPrefix(s.Prompt), d.said(s.ID, question))
		} else {
			s.Extends = stream.Index(k - 1)
			s.Prompt = append(s.Prompt, d.generated(&d.Steps[k-1]))
		}
		if err := d.measure(); err != nil {
			return err
		}
	}
	return nil
}
