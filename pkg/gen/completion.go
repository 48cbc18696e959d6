package gen

import (
	"math/rand/v2"

	"blis/pkg/dist"
	"blis/pkg/stream"
)

// singleRequests generates the requests of a client without sessions.
type singleRequests struct {
	*Client
	lengths
	prefixes                                *prefixes // nil if prompts share no prefixes
	inputStream, outputStream, prefixStream *rand.Rand
}

// lengths holds the input and output distributions of a client.
type lengths struct{ input, output *dist.Length }

// newLengths makes the length distributions of the client c.
func newLengths(c *Client, at field) lengths {
	l := lengths{at.length("input_distribution", &c.InputDistribution),
		at.length("output_distribution", &c.OutputDistribution)}
	if c.derived.correlateLength != nil && l.input != nil {
		l.input = c.derived.correlateLength(l.input)
	}
	return l
}

// newSingleRequests makes the generator of the client c.
func newSingleRequests(seed uint64, c *Client, at field) *singleRequests {
	return &singleRequests{Client: c, lengths: newLengths(c, at), prefixes: newPrefixes(seed, c, at.at("prefix_spec")),
		inputStream: c.stream(seed, "input"), outputStream: c.stream(seed, "output"),
		prefixStream: c.stream(seed, "prefix")}
}

// fill makes one request.
func (m *singleRequests) fill(a *stream.Arrival, _ int64, at stream.Micros) error {
	a.IsSession = false
	r := &a.Request
	*r = stream.Request{
		ArrivalUS:    at,
		InputTokens:  m.input.Draw(m.inputStream),
		OutputTokens: m.output.Draw(m.outputStream),
		Prompt:       r.Prompt[:0],
		Tenant:       m.TenantID,
		SLOClass:     m.SLOClass,
		Priority:     m.Priority,
		Model:        m.Model,
		DeadlineUS:   stream.Never,
	}
	r.Prompt = m.prefixes.appendTo(r.Prompt, r.InputTokens, m.prefixStream)
	return nil
}
