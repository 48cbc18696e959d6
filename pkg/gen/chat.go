package gen

import (
	"cmp"
	"math"
	"math/rand/v2"

	"blis/pkg/dist"
	"blis/pkg/registry"
	"blis/pkg/stream"
)

// MultiTurn makes a client send conversations: sessions of turns whose prompts contain the turns
// before.
type MultiTurn struct {
	AvgTurns         float64    `yaml:"avg_turns" json:"avg_turns,omitempty"`
	TurnDistribution *dist.Spec `yaml:"turn_distribution" json:"turn_distribution,omitempty"`
	ContextGrowth    string     `yaml:"context_growth" json:"context_growth,omitempty"`
	MaxContextTokens int64      `yaml:"max_context_tokens" json:"max_context_tokens,omitempty"`
	ThinkTime        *dist.Spec `yaml:"think_time" json:"think_time,omitempty"`
}

// conversations generates the conversations of a client.
type conversations struct {
	sessionBase
	lengths
	// turnCount is nil if each turn is followed by another with continueProbability.
	turnCount           *dist.Length
	continueProbability float64
	thinkTime           *dist.Length // nil means 0
	grow                contextGrowth
	maxContext          int64 // maximum tokens of a bounded prompt
	// Factors from turn to turn.
	promptGrowth  float64
	drawVariation func(*rand.Rand) float64
	// exchanges holds the turns of the current conversation, tokensBefore the tokens of all but the
	// last. firstKept is the first turn that a bounded prompt still contains.
	exchanges    []exchange
	tokensBefore int64
	firstKept    int
}

// exchange is one turn, in tokens.
type exchange struct{ user, output int64 }

func (e exchange) tokens() int64 { return e.user + e.output }

// newConversations makes the generator of the client c.
func newConversations(s *Spec, c *Client, at field) *conversations {
	m := &conversations{sessionBase: newSessionBase(s.Seed, c, "chat", at), lengths: newLengths(c, at), promptGrowth: 1,
		drawVariation: dist.Noise(0), maxContext: c.MultiTurn.MaxContextTokens}
	if model := s.correlations().SessionModel; model != nil {
		m.drawVariation = dist.Noise(model.DecodeVariation)
		if model.PromptGrowthRate != nil {
			m.promptGrowth = *model.PromptGrowthRate
		}
	}
	at = at.at("multi_turn")
	m.setTurnCount(c.MultiTurn, at)
	m.thinkTime = at.duration("think_time", c.MultiTurn.ThinkTime)
	name := cmp.Or(c.MultiTurn.ContextGrowth, ContextGrowths[0].Name)
	var err error
	if m.grow, err = ContextGrowths.Get("context growth", name); err != nil {
		at.fail("context_growth", "%v", err)
	}
	switch bounded := name == boundedGrowth; {
	case bounded && (m.maxContext < 1 || m.maxContext > maxTokens):
		at.fail("max_context_tokens", "must be between 1 and %d for %s, is %d", maxTokens, name, m.maxContext)
	case !bounded && m.maxContext != 0:
		at.fail("max_context_tokens", "is only for %s and has no effect with %s", boundedGrowth, name)
	}
	return m
}

// setTurnCount sets the distribution of the number of turns.
func (m *conversations) setTurnCount(t *MultiTurn, at field) {
	if t.AvgTurns != 0 {
		between(at, "avg_turns", t.AvgTurns, 1, maxSteps)
	}
	if t.TurnDistribution == nil {
		if t.AvgTurns == 0 {
			at.fail("avg_turns", "must be given (or turn_distribution)")
		}
		m.continueProbability = 1 - 1/t.AvgTurns
		return
	}
	if m.turnCount = at.length("turn_distribution", t.TurnDistribution); m.turnCount == nil || t.AvgTurns == 0 {
		return
	}
	if mean := m.turnCount.Mean(); math.Abs(t.AvgTurns/mean-1) > 0.1 {
		at.fail("avg_turns", "is %g but turn_distribution has the mean %.4g; give only one of them", t.AvgTurns, mean)
	}
}

// fill makes one conversation.
func (m *conversations) fill(a *stream.Arrival, n int64, at stream.Micros) error {
	d := m.newDraft(a, n, at)
	d.choosePrefix()
	inputs, outputs := d.lengthStreams()
	variation, thinkTimes := d.stream("variation"), d.stream("think")
	turns := m.drawTurns(d.stream("turns"))
	m.exchanges, m.tokensBefore, m.firstKept = m.exchanges[:0], 0, 0
	promptFactor, outputFactor := 1.0, 1.0
	for k := range turns {
		e := exchange{scaled(m.input.Draw(inputs), promptFactor), scaled(m.output.Draw(outputs), outputFactor)}
		promptFactor *= m.promptGrowth
		outputFactor *= m.drawVariation(variation)
		m.exchanges = append(m.exchanges, e)
		s := d.addCall("turn")
		s.OutputTokens = e.output
		if k > 0 && m.thinkTime != nil {
			s.DelayUS = m.thinkTime.Draw(thinkTimes)
		}
		m.grow(m, &d, s)
		m.tokensBefore += e.tokens()
		if err := d.setPromptLength(); err != nil {
			return err
		}
	}
	return nil
}

// drawTurns draws the number of turns of a conversation.
func (m *conversations) drawTurns(r *rand.Rand) int {
	if m.turnCount != nil {
		return int(min(m.turnCount.Draw(r), maxSteps))
	}
	turns := 1
	for turns < maxSteps && r.Float64() < m.continueProbability {
		turns++
	}
	return turns
}

// scaled multiplies a length by a factor and clamps it to the valid range.
func scaled(tokens int64, factor float64) int64 {
	return int64(math.Round(min(max(float64(tokens)*factor, 1), maxTokens)))
}

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
