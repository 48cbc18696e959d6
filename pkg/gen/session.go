package gen

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"blis/pkg/stream"
)

// sessionBase is common to all generators of sessions. A session draws from its own random streams,
// so other sessions do not affect it.
type sessionBase struct {
	*Client
	seed     uint64
	workflow string    // a label
	prefixes *prefixes // nil if prompts share no prefixes
	// promptTokens holds the prompt lengths of the current session, by step.
	promptTokens []int64
}

// newSessionBase makes the base for the client c.
func newSessionBase(seed uint64, c *Client, workflow string, at field) sessionBase {
	return sessionBase{Client: c, seed: seed, workflow: workflow, prefixes: newPrefixes(seed, c, at.at("prefix_spec"))}
}

// sessionDraft is a session under construction.
type sessionDraft struct {
	*stream.Session
	base   *sessionBase
	number int64
	// prefix is the common beginning of its prompts; its length is 0 if there is none.
	prefix stream.Segment
}

// newDraft makes a an empty session with number n.
func (m *sessionBase) newDraft(a *stream.Arrival, n int64, at stream.Micros) sessionDraft {
	a.IsSession = true
	a.Session = stream.Session{
		Kind: stream.KindSession, ID: fmt.Sprintf("%s/%d", m.name(), n), ArrivalUS: at, Tenant: m.TenantID,
		SLOClass: m.SLOClass, Priority: m.Priority, Model: m.Model, Workflow: m.workflow, UntilUS: stream.Never,
		Steps: a.Session.Steps[:0],
	}
	m.promptTokens = m.promptTokens[:0]
	return sessionDraft{Session: &a.Session, base: m, number: n}
}

// choosePrefix chooses the session's prefix group, or none.
func (d *sessionDraft) choosePrefix() {
	if g, begins := d.base.prefixes.choose(d.stream("prefix")); begins {
		d.prefix = g
	}
}

// appendPrefix appends the session's full prefix, if it has one.
func (d *sessionDraft) appendPrefix(prompt []stream.Segment) []stream.Segment {
	if d.prefix.Tokens == 0 {
		return prompt
	}
	return append(prompt, d.prefix)
}

// sessionStream returns the random stream of one session for a purpose.
func (c *Client) sessionStream(seed uint64, number int64, purpose string) *rand.Rand {
	return c.stream(seed, fmt.Sprintf("session/%d/%s", number, purpose))
}

// stream returns the session's own random stream for a purpose.
func (d *sessionDraft) stream(purpose string) *rand.Rand {
	return d.base.sessionStream(d.base.seed, d.number, purpose)
}

// addStep adds a step and reuses the memory of its slices.
func (d *sessionDraft) addStep(id string) *stream.SessionStep {
	n := len(d.Steps)
	d.Steps = slices.Grow(d.Steps, 1)[:n+1]
	s := &d.Steps[n]
	*s = stream.SessionStep{ID: id, After: s.After[:0], Extends: stream.NoIndex, Prompt: s.Prompt[:0]}
	d.base.promptTokens = append(d.base.promptTokens, 0)
	return s
}

// addCall adds the next call of a chain, NAME-1 being the first. It waits for the previous call.
func (d *sessionDraft) addCall(name string) *stream.SessionStep {
	n := len(d.Steps)
	s := d.addStep(fmt.Sprintf("%s-%d", name, n+1))
	s.Step = name
	if n > 0 {
		s.After = append(s.After, stream.Index(n-1))
	}
	return s
}

// ownSegment is the segment of a step's own text, which later prompts can repeat.
func (d *sessionDraft) ownSegment(id string, tokens int64) stream.Segment {
	return stream.Segment{ID: d.ID + "/" + id + ".in", Tokens: tokens}
}

// outputSegment is the segment of the output of a call or the result of a tool.
func (d *sessionDraft) outputSegment(s *stream.SessionStep) stream.Segment {
	suffix := ".out"
	if s.Tool != "" {
		suffix = ".result"
	}
	return stream.Segment{ID: s.RequestID(d.ID) + suffix, Tokens: s.OutputTokens}
}

// setPromptLength sets the prompt length of the last step from its segments, which cover the whole
// prompt.
func (d *sessionDraft) setPromptLength() error {
	last := len(d.Steps) - 1
	s := &d.Steps[last]
	if !s.Extends.IsZero() {
		s.InputTokens = d.base.promptTokens[s.Extends]
	}
	for _, segment := range s.Prompt {
		s.InputTokens += segment.Tokens
	}
	if d.base.promptTokens[last] = s.InputTokens; s.InputTokens > maxTokens {
		return fmt.Errorf("client %q: session %s: the prompt of step %q would have %d tokens, more than %d; make "+
			"sessions or their steps shorter", d.base.ID, d.ID, s.ID, s.InputTokens, maxTokens)
	}
	return nil
}

// lengthStreams returns the random streams of the lengths in the session.
func (d *sessionDraft) lengthStreams() (inputs, outputs *rand.Rand) {
	return d.stream("input"), d.stream("output")
}
