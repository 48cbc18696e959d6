package gen

import (
	"math"
	"math/rand/v2"

	"blis/pkg/dist"
	"blis/pkg/stream"
)

// addition completes what a client's maker made, by draws from r.
type addition interface {
	add(a *stream.Arrival, r *rand.Rand)
}

// added is an addition and what it draws from for single requests: the client's
// own stream of a name. For sessions it is each session's own.
type added struct {
	addition
	name   string
	stream *rand.Rand
}

// completed is a maker whose work is completed by additions, in order.
type completed struct {
	maker
	*Client
	seed      uint64
	additions []added
}

func (c *completed) fill(a *stream.Arrival, n int64, at stream.Micros) error {
	if err := c.maker.fill(a, n, at); err != nil {
		return err
	}
	for _, more := range c.additions {
		r := more.stream
		if a.IsSession {
			r = c.sessionStream(c.seed, n, more.name)
		}
		more.add(a, r)
	}
	return nil
}

// withAdditions is m, the maker of c, which stands at path, with all that c says
// beside what m makes of it. Each draws from a stream of its own.
func withAdditions(m maker, seed uint64, c *Client, path string, fault fault) (maker, error) {
	_, single := m.(*completions)
	done := &completed{maker: m, Client: c, seed: seed}
	complete := func(with addition, name string) {
		done.additions = append(done.additions, added{with, name, c.stream(seed, name)})
	}
	if c.Multimodal != nil {
		if !single {
			return nil, fault(path+".multimodal", "is of clients that send single requests")
		}
		more, err := newMedia(seed, c, path+".multimodal", fault)
		if err != nil {
			return nil, err
		}
		complete(more, "multimodal")
	}
	if p := c.PredictedOutput; p != nil {
		if err := p.check(path+".predicted_output", fault); err != nil {
			return nil, err
		}
		complete(&guesses{p.Bias, dist.Noise(p.Error)}, "prediction")
	}
	for _, limit := range []struct {
		name string
		spec *dist.Spec
		make func(*dist.Length) addition
	}{
		{"deadline", c.Deadline, func(l *dist.Length) addition { return &patience{l} }},
		{"archetype.session_length", c.sessionLength(), func(l *dist.Length) addition { return &sessionEnds{l} }},
	} {
		if limit.spec == nil {
			continue
		}
		length, err := limit.spec.Duration()
		if err != nil {
			return nil, inside(path+"."+limit.name, err, fault)
		}
		if single && limit.name != "deadline" {
			return nil, fault(path+"."+limit.name, "is of clients that send sessions")
		}
		complete(limit.make(length), limit.name)
	}
	if done.additions == nil {
		return m, nil
	}
	return done, nil
}

func (c *Client) sessionLength() *dist.Spec {
	if c.Archetype == nil {
		return nil
	}
	return c.Archetype.SessionLength
}

// patience gives requests a deadline, and each call of a session one after it is
// made.
type patience struct{ of *dist.Length }

func (p *patience) add(a *stream.Arrival, r *rand.Rand) {
	if !a.IsSession {
		a.Request.DeadlineUS = min(a.Request.ArrivalUS+stream.Micros(p.draw(r)), maxHorizon)
		return
	}
	for i := range a.Session.Steps {
		if s := &a.Session.Steps[i]; s.Tool == "" {
			s.TimeoutUS = p.draw(r)
		}
	}
}

// draw is 1 µs at least: a deadline comes after the arrival.
func (p *patience) draw(r *rand.Rand) int64 { return max(1, p.of.Draw(r)) }

// sessionEnds ends sessions.
type sessionEnds struct{ of *dist.Length }

func (e *sessionEnds) add(a *stream.Arrival, r *rand.Rand) {
	s := &a.Session
	end := min(s.ArrivalUS+stream.Micros(e.of.Draw(r)), maxHorizon)
	if s.UntilUS == stream.Never || end < s.UntilUS {
		s.UntilUS = end
	}
}

// Prediction says how well the length of an answer is known beforehand: what is
// predicted is the true length times Bias times a lognormal factor of mean 1.
type Prediction struct {
	// Error is the factor's cv; 0 predicts without error.
	Error float64 `yaml:"error" json:"error"`
	// Bias, absent 1, is above 1 for predictions that are too long.
	Bias float64 `yaml:"bias" json:"bias"`
}

// UnmarshalYAML decodes over the defaults of what is left out.
func (p *Prediction) UnmarshalYAML(decode func(any) error) error {
	type plain Prediction
	*p = Prediction{Bias: 1}
	return decode((*plain)(p))
}

// maxError and maxBias are far beyond any use.
const (
	maxError = 100
	maxBias  = 1000
)

func (p *Prediction) check(path string, fault fault) error {
	if !(p.Error >= 0 && p.Error <= maxError) {
		return fault(path+".error", "must be between 0 and %d, is %g", maxError, p.Error)
	}
	if !(p.Bias > 0 && p.Bias <= maxBias) {
		return fault(path+".bias", "must be above 0 and at most %d, is %g", maxBias, p.Bias)
	}
	return nil
}

// guesses gives calls a predicted length.
type guesses struct {
	bias  float64
	noise func(*rand.Rand) float64
}

func (g *guesses) add(a *stream.Arrival, r *rand.Rand) {
	if !a.IsSession {
		a.Request.PredictedOutputTokens = g.guess(a.Request.OutputTokens, r)
		return
	}
	for i := range a.Session.Steps {
		if s := &a.Session.Steps[i]; s.Tool == "" {
			s.PredictedOutputTokens = g.guess(s.OutputTokens, r)
		}
	}
}

func (g *guesses) guess(tokens int64, r *rand.Rand) int64 {
	return int64(math.Round(min(max(1, float64(tokens)*g.bias*g.noise(r)), maxTokens)))
}
