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

// newLengths makes the length distributions of the client c at path.
func newLengths(c *Client, path string, errorf errorFunc) (l lengths, err error) {
	if l.input, err = c.InputDistribution.Length(); err != nil {
		return l, paramError(path+".input_distribution", err, errorf)
	}
	if l.output, err = c.OutputDistribution.Length(); err != nil {
		return l, paramError(path+".output_distribution", err, errorf)
	}
	if c.derived.correlateLength != nil {
		l.input = c.derived.correlateLength(l.input)
	}
	return l, nil
}

// newSingleRequests makes the generator of the client c at path.
func newSingleRequests(seed uint64, c *Client, path string, errorf errorFunc) (*singleRequests, error) {
	m := &singleRequests{Client: c, inputStream: c.stream(seed, "input"), outputStream: c.stream(seed, "output"),
		prefixStream: c.stream(seed, "prefix")}
	var err error
	if m.lengths, err = newLengths(c, path, errorf); err != nil {
		return nil, err
	}
	m.prefixes, err = newPrefixes(seed, c, path+".prefix_spec", errorf)
	return m, err
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
		Model:        m.Model,
		DeadlineUS:   stream.Never,
	}
	r.Prompt = m.prefixes.appendTo(r.Prompt, r.InputTokens, m.prefixStream)
	return nil
}
