package gen

import (
	"math"
	"math/rand/v2"

	"blis/pkg/dist"
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

// newConversations makes the generator of the client c at path.
func newConversations(s *Spec, c *Client, path string, errorf errorFunc) (*conversations, error) {
	m := &conversations{promptGrowth: 1, drawVariation: dist.Noise(0), maxContext: c.MultiTurn.MaxContextTokens}
	var err error
	if m.sessionBase, err = newSessionBase(s.Seed, c, path, "chat", errorf); err != nil {
		return nil, err
	}
	if m.lengths, err = newLengths(c, path, errorf); err != nil {
		return nil, err
	}
	if model := s.sessionModel(); model != nil {
		m.drawVariation = dist.Noise(model.DecodeVariation)
		if model.PromptGrowthRate != nil {
			m.promptGrowth = *model.PromptGrowthRate
		}
	}
	path += ".multi_turn"
	if err := m.setTurnCount(c.MultiTurn, path, errorf); err != nil {
		return nil, err
	}
	if c.MultiTurn.ThinkTime != nil {
		if m.thinkTime, err = durationAt(*c.MultiTurn.ThinkTime, path+".think_time", errorf); err != nil {
			return nil, err
		}
	}
	name := c.MultiTurn.ContextGrowth
	if name == "" {
		name = ContextGrowths[0].Name
	}
	if m.grow, err = ContextGrowths.Get("context growth", name); err != nil {
		return nil, errorf(path+".context_growth", "%v", err)
	}
	switch bounded := name == boundedGrowth; {
	case bounded && (m.maxContext < 1 || m.maxContext > maxTokens):
		return nil, errorf(path+".max_context_tokens", "must be between 1 and %d for %s, is %d", maxTokens, name,
			m.maxContext)
	case !bounded && m.maxContext != 0:
		return nil, errorf(path+".max_context_tokens", "is only for %s and has no effect with %s", boundedGrowth, name)
	}
	return m, nil
}

// setTurnCount sets the distribution of the number of turns.
func (m *conversations) setTurnCount(t *MultiTurn, path string, errorf errorFunc) error {
	if t.AvgTurns != 0 && !(t.AvgTurns >= 1 && t.AvgTurns <= maxSteps) {
		return errorf(path+".avg_turns", "must be between 1 and %d, is %g", maxSteps, t.AvgTurns)
	}
	if t.TurnDistribution == nil {
		if t.AvgTurns == 0 {
			return errorf(path+".avg_turns", "must be given (or turn_distribution)")
		}
		m.continueProbability = 1 - 1/t.AvgTurns
		return nil
	}
	var err error
	if m.turnCount, err = lengthAt(*t.TurnDistribution, path+".turn_distribution", errorf); err != nil {
		return err
	}
	if mean := m.turnCount.Mean(); t.AvgTurns != 0 && math.Abs(t.AvgTurns/mean-1) > 0.1 {
		return errorf(path+".avg_turns", "is %g but turn_distribution has the mean %.4g; give only one of them",
			t.AvgTurns, mean)
	}
	return nil
}

// fill makes one conversation.
func (m *conversations) fill(a *stream.Arrival, n int64, at stream.Micros) error {
	d := m.newDraft(a, n, at)
	d.choosePrefix()
	lengths, variation, thinkTimes := d.lengthStreams(), d.stream("variation"), d.stream("think")
	turns := m.drawTurns(d.stream("turns"))
	m.exchanges, m.tokensBefore, m.firstKept = m.exchanges[:0], 0, 0
	promptFactor, outputFactor := 1.0, 1.0
	for k := range turns {
		e := exchange{scaled(m.input.Draw(lengths.input), promptFactor), scaled(m.output.Draw(lengths.output),
			outputFactor)}
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
