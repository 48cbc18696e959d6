package gen

import (
	"math"

	"blis/pkg/registry"
	"blis/pkg/stream"
)

// growth composes the prompt of s, the last turn of a conversation so far.
type growth func(m *chats, d *draft, s *stream.SessionStep)

const boundedGrowth = "bounded"

// Growths are what a turn's prompt has of the turns before.
var Growths = registry.Table[growth]{
	{Name: "linear", Doc: "all of it", Value: (*chats).linear},
	{Name: "sublinear", Doc: "the last turn, and a summary of those before it", Value: (*chats).sublinear},
	{Name: boundedGrowth, Doc: "all that fits into max_context_tokens, of the latest turns", Value: (*chats).bounded},
}

// linear goes on where the last turn ended.
func (m *chats) linear(d *draft, s *stream.SessionStep) {
	now := len(m.said) - 1
	if now == 0 {
		s.Prompt = d.appendPrefix(s.Prompt)
	} else {
		s.Extends = stream.Index(now - 1)
		s.Prompt = append(s.Prompt, d.generated(&d.Steps[now-1]))
	}
	s.Prompt = append(s.Prompt, d.said(s.ID, m.said[now].user))
}

// sublinear has the n turns before with 1/√n of their tokens: the last one as it
// was, a summary of the others. A summary is written anew for each turn, so that
// only the system prompt before it is found in a cache.
func (m *chats) sublinear(d *draft, s *stream.SessionStep) {
	now := len(m.said) - 1
	if now <= 1 {
		m.linear(d, s)
		return
	}
	s.Prompt = d.appendPrefix(s.Prompt)
	summary := int64(math.Round(float64(m.before)/math.Sqrt(float64(now)))) - m.said[now-1].tokens()
	if summary > 0 {
		s.Prompt = append(s.Prompt, stream.Segment{ID: s.RequestID(d.ID) + ".summary", Tokens: summary})
	}
	m.repeat(d, s, now-1)
}

// bounded has the latest turns that fit. What was left out stays out: prompts only
// grow.
func (m *chats) bounded(d *draft, s *stream.SessionStep) {
	now := len(m.said) - 1
	tokens := d.prefix.Tokens + m.said[now].user
	first := now
	for first > 0 && tokens+m.said[first-1].tokens() <= m.most {
		first--
		tokens += m.said[first].tokens()
	}
	if now == 0 || first == m.first {
		m.linear(d, s)
		return
	}
	m.first = first
	s.Prompt = d.appendPrefix(s.Prompt)
	m.repeat(d, s, first)
}

// repeat appends to the prompt of s, the last turn, the turns from one on and what
// the user says now.
func (m *chats) repeat(d *draft, s *stream.SessionStep, from int) {
	now := len(m.said) - 1
	for k := from; k < now; k++ {
		s.Prompt = append(s.Prompt, d.said(d.Steps[k].ID, m.said[k].user), d.generated(&d.Steps[k]))
	}
	s.Prompt = append(s.Prompt, d.said(s.ID, m.said[now].user))
}
