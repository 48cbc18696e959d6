package gen

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"blis/pkg/dist"
	"blis/pkg/stream"
)

// sessions are what makers of sessions have in common. A session draws from
// streams of its own, so that it is the same whatever others draw.
type sessions struct {
	*Client
	seed     uint64
	workflow string    // for people
	prefixes *prefixes // nil if no sessions begin alike
	// prompts are the tokens of the prompts of the session at hand, by step.
	prompts []int64
}

// newSessions makes what the sessions of c have in common, which stands at path.
func newSessions(seed uint64, c *Client, path, workflow string, fault fault) (sessions, error) {
	p, err := newPrefixes(seed, c, path+".prefix_spec", fault)
	return sessions{Client: c, seed: seed, workflow: workflow, prefixes: p}, err
}

// draft is a session being made.
type draft struct {
	*stream.Session
	of     *sessions
	number int64
	// prefix is what its prompts begin with, of 0 tokens if with nothing.
	prefix stream.Segment
}

// begin makes a the session of place n, without steps.
func (m *sessions) begin(a *stream.Arrival, n int64, at stream.Micros) draft {
	a.IsSession = true
	a.Session = stream.Session{
		Kind: stream.KindSession, ID: fmt.Sprintf("%s/%d", m.name(), n), ArrivalUS: at, Tenant: m.TenantID, SLOClass: m.SLOClass,
		Model: m.Model, Workflow: m.workflow, UntilUS: stream.Never, Steps: a.Session.Steps[:0],
	}
	m.prompts = m.prompts[:0]
	return draft{Session: &a.Session, of: m, number: n}
}

// choosePrefix gives the session the prefix of a group, or none.
func (d *draft) choosePrefix() {
	if g, begins := d.of.prefixes.choose(d.stream("prefix")); begins {
		d.prefix = g
	}
}

// appendPrefix appends all of the session's prefix, if it has one.
func (d *draft) appendPrefix(prompt []stream.Segment) []stream.Segment {
	if d.prefix.Tokens == 0 {
		return prompt
	}
	return append(prompt, d.prefix)
}

// sessionStream returns the random stream of one of the client's sessions for one
// purpose.
func (c *Client) sessionStream(seed uint64, number int64, purpose string) *rand.Rand {
	return c.stream(seed, fmt.Sprintf("session/%d/%s", number, purpose))
}

// stream returns the session's own random stream for one purpose.
func (d *draft) stream(purpose string) *rand.Rand {
	return d.of.sessionStream(d.of.seed, d.number, purpose)
}

// step adds a step, whose lists keep their memory.
func (d *draft) step(id string) *stream.SessionStep {
	n := len(d.Steps)
	d.Steps = slices.Grow(d.Steps, 1)[:n+1]
	s := &d.Steps[n]
	*s = stream.SessionStep{ID: id, After: s.After[:0], Extends: stream.Nowhere, Prompt: s.Prompt[:0]}
	d.of.prompts = append(d.of.prompts, 0)
	return s
}

// next adds the next call of a chain, the first of which is NAME-1: it waits for
// the one before.
func (d *draft) next(name string) *stream.SessionStep {
	n := len(d.Steps)
	s := d.step(fmt.Sprintf("%s-%d", name, n+1))
	s.Step = name
	if n > 0 {
		s.After = append(s.After, stream.Index(n-1))
	}
	return s
}

// said is the segment of what the step called id says by itself, to be sent
// again by later ones.
func (d *draft) said(id string, tokens int64) stream.Segment {
	return stream.Segment{ID: d.ID + "/" + id + ".in", Tokens: tokens}
}

// generated is the segment of what a call generates.
func (d *draft) generated(s *stream.SessionStep) stream.Segment {
	return stream.Segment{ID: s.RequestID(d.ID) + ".out", Tokens: s.OutputTokens}
}

// returned is the segment of what the call of a tool returns.
func (d *draft) returned(s *stream.SessionStep) stream.Segment {
	return stream.Segment{ID: s.RequestID(d.ID) + ".result", Tokens: s.OutputTokens}
}

// measure sets the length of the prompt of the last step, all of which has names.
func (d *draft) measure() error {
	last := len(d.Steps) - 1
	s := &d.Steps[last]
	if !s.Extends.IsZero() {
		s.InputTokens = d.of.prompts[s.Extends]
	}
	for _, segment := range s.Prompt {
		s.InputTokens += segment.Tokens
	}
	if d.of.prompts[last] = s.InputTokens; s.InputTokens > maxTokens {
		return fmt.Errorf("client %q: session %s: the prompt of step %q would have %d tokens, more than %d; let sessions or their steps be shorter", d.of.ID, d.ID, s.ID, s.InputTokens, maxTokens)
	}
	return nil
}

// draws are the streams that the lengths of one session's steps come from.
type draws struct{ input, output *rand.Rand }

func (d *draft) draws() draws { return draws{d.stream("input"), d.stream("output")} }

// lengthAt and durationAt make what the distribution at path describes.
func lengthAt(s dist.Spec, path string, fault fault) (*dist.Length, error) {
	l, err := s.Length()
	if err != nil {
		return nil, inside(path, err, fault)
	}
	return l, nil
}

func durationAt(s dist.Spec, path string, fault fault) (*dist.Length, error) {
	l, err := s.Duration()
	if err != nil {
		return nil, inside(path, err, fault)
	}
	return l, nil
}
