package gen

import (
	"math"
	"math/rand/v2"

	"blis/pkg/dist"
	"blis/pkg/stream"
)

// MultiTurn makes conversations of what a client sends: sessions whose turns
// follow each other, each with what was said before in its prompt. The client's
// input_distribution is then what the user says in a turn; its prefix, the system
// prompt, comes before all of that, and one conversation keeps one.
type MultiTurn struct {
	// AvgTurns is how many turns a conversation has in the mean: after each, it
	// ends with the same probability. TurnDistribution is the distribution of their
	// number instead; AvgTurns may stand beside it where it is its mean. No
	// conversation has more than 10,000.
	AvgTurns         float64    `yaml:"avg_turns" json:"avg_turns,omitempty"`
	TurnDistribution *dist.Spec `yaml:"turn_distribution" json:"turn_distribution,omitempty"`
	// ContextGrowth is what a prompt has of the turns before; absent, linear.
	//
	//	linear     all of it
	//	sublinear  the last turn, and a summary of those before it: as many tokens
	//	           as leave of n turns 1/√n, so that n equal ones count as √n
	//	bounded    all that fits: where the prompt would be longer than
	//	           MaxContextTokens, the oldest turns are left out, whole, but never
	//	           the system prompt and what the user says now
	ContextGrowth    string `yaml:"context_growth" json:"context_growth,omitempty"`
	MaxContextTokens int64  `yaml:"max_context_tokens" json:"max_context_tokens,omitempty"`
	// ThinkTime is how long the user takes to answer, in µs; absent, no time.
	ThinkTime *dist.Spec `yaml:"think_time" json:"think_time,omitempty"`
}

// chats are the conversations of a client.
type chats struct {
	sessions
	lengths
	// turns is nil where after each turn the conversation goes on with probability
	// goesOn.
	turns  *dist.Length
	goesOn float64
	think  *dist.Length // nil if no time
	grow   growth
	most   int64 // tokens of a bounded prompt
	// Factors from turn to turn.
	promptGrowth float64
	wander       func(*rand.Rand) float64
	// said are the turns of the conversation at hand, before the tokens of all but
	// the last; first is the first of them that a bounded prompt still has.
	said   []exchange
	before int64
	first  int
}

// exchange is one turn, in tokens: what the user says and what is answered.
type exchange struct{ user, answer int64 }

func (e exchange) tokens() int64 { return e.user + e.answer }

// newChats makes the conversations of c, which stands at path.
func newChats(s *Spec, c *Client, path string, fault fault) (*chats, error) {
	m := &chats{promptGrowth: 1, wander: dist.Noise(0), most: c.MultiTurn.MaxContextTokens}
	var err error
	if m.sessions, err = newSessions(s.Seed, c, path, "chat", fault); err != nil {
		return nil, err
	}
	if m.lengths, err = newLengths(c, path, fault); err != nil {
		return nil, err
	}
	if model := s.sessionModel(); model != nil {
		m.wander = dist.Noise(model.DecodeVariation)
		if model.PromptGrowthRate != nil {
			m.promptGrowth = *model.PromptGrowthRate
		}
	}
	path += ".multi_turn"
	if err := m.readTurns(c.MultiTurn, path, fault); err != nil {
		return nil, err
	}
	if c.MultiTurn.ThinkTime != nil {
		if m.think, err = durationAt(*c.MultiTurn.ThinkTime, path+".think_time", fault); err != nil {
			return nil, err
		}
	}
	name := c.MultiTurn.ContextGrowth
	if name == "" {
		name = Growths[0].Name
	}
	if m.grow, err = Growths.Get("growth of context", name); err != nil {
		return nil, fault(path+".context_growth", "%v", err)
	}
	switch bounded := name == boundedGrowth; {
	case bounded && (m.most < 1 || m.most > maxTokens):
		return nil, fault(path+".max_context_tokens", "must be between 1 and %d for %s, is %d", maxTokens, name, m.most)
	case !bounded && m.most != 0:
		return nil, fault(path+".max_context_tokens", "is for %s and changes nothing for %s", boundedGrowth, name)
	}
	return m, nil
}

// readTurns sets how many turns conversations have.
func (m *chats) readTurns(t *MultiTurn, path string, fault fault) error {
	if t.AvgTurns != 0 && !(t.AvgTurns >= 1 && t.AvgTurns <= maxSteps) {
		return fault(path+".avg_turns", "must be between 1 and %d, is %g", maxSteps, t.AvgTurns)
	}
	if t.TurnDistribution == nil {
		if t.AvgTurns == 0 {
			return fault(path+".avg_turns", "must be given, or turn_distribution")
		}
		m.goesOn = 1 - 1/t.AvgTurns
		return nil
	}
	var err error
	if m.turns, err = lengthAt(*t.TurnDistribution, path+".turn_distribution", fault); err != nil {
		return err
	}
	if mean := m.turns.Mean(); t.AvgTurns != 0 && math.Abs(t.AvgTurns/mean-1) > 0.1 {
		return fault(path+".avg_turns", "is %g, and turn_distribution has the mean %.4g: give one of them", t.AvgTurns, mean)
	}
	return nil
}

// fill makes one conversation.
func (m *chats) fill(a *stream.Arrival, n int64, at stream.Micros) error {
	d := m.begin(a, n, at)
	d.choosePrefix()
	from, variation, think := d.draws(), d.stream("variation"), d.stream("think")
	turns := m.drawTurns(d.stream("turns"))
	m.said, m.before, m.first = m.said[:0], 0, 0
	promptFactor, answerFactor := 1.0, 1.0
	for k := range turns {
		e := exchange{scaled(m.input.Draw(from.input), promptFactor), scaled(m.output.Draw(from.output), answerFactor)}
		promptFactor *= m.promptGrowth
		answerFactor *= m.wander(variation)
		m.said = append(m.said, e)
		s := d.next("turn")
		s.OutputTokens = e.answer
		if k > 0 && m.think != nil {
			s.DelayUS = m.think.Draw(think)
		}
		m.grow(m, &d, s)
		m.before += e.tokens()
		if err := d.measure(); err != nil {
			return err
		}
	}
	return nil
}

// drawTurns draws how many turns a conversation has.
func (m *chats) drawTurns(r *rand.Rand) int {
	if m.turns != nil {
		return int(min(m.turns.Draw(r), maxSteps))
	}
	turns := 1
	for turns < maxSteps && r.Float64() < m.goesOn {
		turns++
	}
	return turns
}

// scaled is a length times a factor, within what lengths are.
func scaled(tokens int64, by float64) int64 {
	return int64(math.Round(min(max(float64(tokens)*by, 1), maxTokens)))
}
