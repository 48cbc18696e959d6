package gen

import (
	"math"

	"blis/pkg/registry"
	"blis/pkg/stream"
)

// contextGrowth builds the prompt of s, the last turn of a conversation so far.
type contextGrowth func(m *conversations, d *sessionDraft, s *stream.SessionStep)

const boundedGrowth = "bounded"

// ContextGrowths are the rules for how much of the earlier turns a prompt contains.
var ContextGrowths = registry.Table[contextGrowth]{
	{Name: "linear", Doc: "all earlier turns", Value: (*conversations).linear},
	{Name: "sublinear", Doc: "the last turn and a summary of the earlier ones", Value: (*conversations).sublinear},
	{Name: boundedGrowth, Doc: "the latest turns that fit into max_context_tokens", Value: (*conversations).bounded},
}

// linear extends the prompt of the previous turn by its output and the new text.
func (m *conversations) linear(d *sessionDraft, s *stream.SessionStep) {
	last := len(m.exchanges) - 1
	if last == 0 {
		s.Prompt = d.appendPrefix(s.Prompt)
	} else {
		s.Extends = stream.Index(last - 1)
		s.Prompt = append(s.Prompt, d.outputSegment(&d.Steps[last-1]))
	}
	s.Prompt = append(s.Prompt, d.ownSegment(s.ID, m.exchanges[last].user))
}

// sublinear keeps 1/√n of the tokens of the n turns before: the last turn unchanged and a summary
// of the others. The summary is new in each turn, so only the system prompt before it hits the
// prefix cache.
func (m *conversations) sublinear(d *sessionDraft, s *stream.SessionStep) {
	last := len(m.exchanges) - 1
	if last <= 1 {
		m.linear(d, s)
		return
	}
	s.Prompt = d.appendPrefix(s.Prompt)
	summary := int64(math.Round(float64(m.tokensBefore)/math.Sqrt(float64(last)))) - m.exchanges[last-1].tokens()
	if summary > 0 {
		s.Prompt = append(s.Prompt, stream.Segment{ID: s.RequestID(d.ID) + ".summary", Tokens: summary})
	}
	m.appendTurns(d, s, last-1)
}

// bounded keeps the latest turns that fit. A dropped turn never comes back, so prompts are extended
// until one is dropped.
func (m *conversations) bounded(d *sessionDraft, s *stream.SessionStep) {
	last := len(m.exchanges) - 1
	tokens := d.prefix.Tokens + m.exchanges[last].user
	first := last
	for first > 0 && tokens+m.exchanges[first-1].tokens() <= m.maxContext {
		first--
		tokens += m.exchanges[first].tokens()
	}
	if last == 0 || first == m.firstKept {
		m.linear(d, s)
		return
	}
	m.firstKept = first
	s.Prompt = d.appendPrefix(s.Prompt)
	m.appendTurns(d, s, first)
}

// appendTurns appends to the prompt of s, the last turn, the turns from index from on and the new
// text.
func (m *conversations) appendTurns(d *sessionDraft, s *stream.SessionStep, from int) {
	last := len(m.exchanges) - 1
	for k := from; k < last; k++ {
		s.Prompt = append(s.Prompt, d.ownSegment(d.Steps[k].ID, m.exchanges[k].user), d.outputSegment(&d.Steps[k]))
	}
	s.Prompt = append(s.Prompt, d.ownSegment(s.ID, m.exchanges[last].user))
}
