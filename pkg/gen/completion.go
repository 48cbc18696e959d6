package gen

import (
	"math/rand/v2"

	"blis/pkg/dist"
	"blis/pkg/stream"
)

// completions are single requests.
type completions struct {
	*Client
	lengths
	prefixes                   *prefixes // nil if no prompts begin alike
	inputs, outputs, beginning *rand.Rand
}

// lengths are the two distributions of a client.
type lengths struct{ input, output *dist.Length }

// newLengths makes the lengths of c, which stands at path.
func newLengths(c *Client, path string, fault fault) (l lengths, err error) {
	if l.input, err = c.InputDistribution.Length(); err != nil {
		return l, inside(path+".input_distribution", err, fault)
	}
	if l.output, err = c.OutputDistribution.Length(); err != nil {
		return l, inside(path+".output_distribution", err, fault)
	}
	if c.latent.lean != nil {
		l.input = c.latent.lean(l.input)
	}
	return l, nil
}

// newCompletions makes what c sends, which stands at path.
func newCompletions(seed uint64, c *Client, path string, fault fault) (*completions, error) {
	m := &completions{Client: c, inputs: c.stream(seed, "input"), outputs: c.stream(seed, "output"), beginning: c.stream(seed, "prefix")}
	var err error
	if m.lengths, err = newLengths(c, path, fault); err != nil {
		return nil, err
	}
	m.prefixes, err = newPrefixes(seed, c, path+".prefix_spec", fault)
	return m, err
}

// fill makes one request.
func (m *completions) fill(a *stream.Arrival, _ int64, at stream.Micros) error {
	a.IsSession = false
	r := &a.Request
	*r = stream.Request{
		ArrivalUS:    at,
		InputTokens:  m.input.Draw(m.inputs),
		OutputTokens: m.output.Draw(m.outputs),
		Prompt:       r.Prompt[:0],
		Tenant:       m.TenantID,
		SLOClass:     m.SLOClass,
		Model:        m.Model,
		DeadlineUS:   stream.Never,
	}
	r.Prompt = m.prefixes.begin(r.Prompt, r.InputTokens, m.beginning)
	return nil
}
