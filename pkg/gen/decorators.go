package gen

import (
	"math"
	"math/rand/v2"

	"blis/pkg/dist"
	"blis/pkg/stream"
)

// decorator adds something to what a client's generator made, with random numbers from r.
type decorator interface {
	decorate(a *stream.Arrival, r *rand.Rand)
}

// seededDecorator is a decorator with its random stream. For single requests it draws from the
// client's stream of that name, for sessions from each session's own.
type seededDecorator struct {
	decorator
	name   string
	stream *rand.Rand
}

// decorated is a generator whose output passes through decorators, in order.
type decorated struct {
	generator
	*Client
	seed       uint64
	decorators []seededDecorator
}

func (c *decorated) fill(a *stream.Arrival, n int64, at stream.Micros) error {
	if err := c.generator.fill(a, n, at); err != nil {
		return err
	}
	for _, d := range c.decorators {
		r := d.stream
		if a.IsSession {
			r = c.sessionStream(c.seed, n, d.name)
		}
		d.decorate(a, r)
	}
	return nil
}

// withDecorators wraps g, the generator of the client c at path, in a decorator for each option of
// c that g does not handle. Each decorator draws from its own random stream, so that options do not
// affect each other.
func withDecorators(g generator, seed uint64, c *Client, path string, errorf errorFunc) (generator, error) {
	_, singleRequests := g.(*singleRequests)
	result := &decorated{generator: g, Client: c, seed: seed}
	addDecorator := func(d decorator, name string) {
		result.decorators = append(result.decorators, seededDecorator{d, name, c.stream(seed, name)})
	}
	if c.Multimodal != nil {
		if !singleRequests {
			return nil, errorf(path+".multimodal", "is only for clients that send single requests")
		}
		images, err := newMedia(seed, c, path+".multimodal", errorf)
		if err != nil {
			return nil, err
		}
		addDecorator(images, "multimodal")
	}
	if p := c.PredictedOutput; p != nil {
		if err := p.check(path+".predicted_output", errorf); err != nil {
			return nil, err
		}
		addDecorator(&lengthPredictor{p.Bias, dist.Noise(p.Error)}, "prediction")
	}
	for _, limit := range []struct {
		name string
		spec *dist.Spec
		make func(*dist.Length) decorator
	}{
		{"deadline", c.Deadline, func(l *dist.Length) decorator { return &deadlines{l} }},
		{"archetype.session_length", c.sessionLength(), func(l *dist.Length) decorator { return &sessionLengths{l} }},
	} {
		if limit.spec == nil {
			continue
		}
		length, err := limit.spec.Duration()
		if err != nil {
			return nil, paramError(path+"."+limit.name, err, errorf)
		}
		if singleRequests && limit.name != "deadline" {
			return nil, errorf(path+"."+limit.name, "is only for clients that send sessions")
		}
		addDecorator(limit.make(length), limit.name)
	}
	if result.decorators == nil {
		return g, nil
	}
	return result, nil
}

func (c *Client) sessionLength() *dist.Spec {
	if c.Archetype == nil {
		return nil
	}
	return c.Archetype.SessionLength
}

// deadlines gives each request a deadline, and each model call of a session a timeout.
type deadlines struct{ length *dist.Length }

func (p *deadlines) decorate(a *stream.Arrival, r *rand.Rand) {
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

// draw returns at least 1 µs: a deadline comes after the arrival.
func (p *deadlines) draw(r *rand.Rand) int64 { return max(1, p.length.Draw(r)) }

// sessionLengths limits how long sessions last.
type sessionLengths struct{ length *dist.Length }

func (e *sessionLengths) decorate(a *stream.Arrival, r *rand.Rand) {
	s := &a.Session
	end := min(s.ArrivalUS+stream.Micros(e.length.Draw(r)), maxHorizon)
	if s.UntilUS == stream.Never || end < s.UntilUS {
		s.UntilUS = end
	}
}

// Prediction describes how well the output length is predicted: the prediction is the true length
// times Bias times a lognormal factor of mean 1 and coefficient of variation Error.
type Prediction struct {
	Error float64 `yaml:"error" json:"error"`
	Bias  float64 `yaml:"bias" json:"bias"`
}

// UnmarshalYAML sets the defaults before it decodes.
func (p *Prediction) UnmarshalYAML(decode func(any) error) error {
	type plain Prediction
	*p = Prediction{Bias: 1}
	return decode((*plain)(p))
}

// maxError and maxBias are far beyond practical values.
const (
	maxError = 100
	maxBias  = 1000
)

func (p *Prediction) check(path string, errorf errorFunc) error {
	if !(p.Error >= 0 && p.Error <= maxError) {
		return errorf(path+".error", "must be between 0 and %d, is %g", maxError, p.Error)
	}
	if !(p.Bias > 0 && p.Bias <= maxBias) {
		return errorf(path+".bias", "must be above 0 and at most %d, is %g", maxBias, p.Bias)
	}
	return nil
}

// lengthPredictor sets the predicted output length of model calls.
type lengthPredictor struct {
	bias  float64
	noise func(*rand.Rand) float64
}

func (g *lengthPredictor) decorate(a *stream.Arrival, r *rand.Rand) {
	if !a.IsSession {
		a.Request.PredictedOutputTokens = g.predict(a.Request.OutputTokens, r)
		return
	}
	for i := range a.Session.Steps {
		if s := &a.Session.Steps[i]; s.Tool == "" {
			s.PredictedOutputTokens = g.predict(s.OutputTokens, r)
		}
	}
}

func (p *lengthPredictor) predict(tokens int64, r *rand.Rand) int64 {
	return int64(math.Round(min(max(1, float64(tokens)*p.bias*p.noise(r)), maxTokens)))
}
