package gen

import (
	"iter"
	"math"
	"math/rand/v2"

	"blis/pkg/dist"
	"blis/pkg/stream"
)

// decorator adds something to what a client's generator made, with random numbers from r: for
// single requests those of stream, for sessions those of each session's own stream of that name.
type decorator struct {
	name     string
	stream   *rand.Rand
	decorate func(a *stream.Arrival, r *rand.Rand)
}

// decorated is a generator whose output passes through decorators, in order.
type decorated struct {
	generator
	*Client
	seed       uint64
	decorators []decorator
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

// withDecorators wraps g, the generator of the client c, in a decorator for each option of c that g
// does not handle. Each decorator draws from its own random stream, so that options do not affect
// each other.
func withDecorators(g generator, seed uint64, c *Client, at field) generator {
	_, singleRequests := g.(*singleRequests)
	result := &decorated{generator: g, Client: c, seed: seed}
	add := func(name string, decorate func(*stream.Arrival, *rand.Rand)) {
		result.decorators = append(result.decorators, decorator{name, c.stream(seed, name), decorate})
	}
	if c.Multimodal != nil {
		add("multimodal", newMedia(seed, c, singleRequests, at.at("multimodal")).decorate)
	}
	if c.Priority < -maxPriority || c.Priority > maxPriority {
		at.fail("priority", "must be between %d and %d, is %d", -maxPriority, maxPriority, c.Priority)
	}
	if c.Stop != "" {
		if c.Stop != stream.StopEOS {
			at.fail("stop", "must be %s, is %q", stream.StopEOS, c.Stop)
		}
		add("stop", stop(c.Stop))
	}
	if p := c.DraftAcceptance; p != nil {
		if !(*p >= 0) || *p > 1 {
			at.fail("draft_acceptance", "must be between 0 and 1, is %g", *p)
		}
		add("draft acceptance", draftAcceptance(p))
	}
	if c.Adapters != nil {
		add("adapters", c.Adapters.decorator(at.at("adapters")))
	}
	if c.Grammars != nil {
		add("grammars", c.Grammars.decorator(at.at("grammars")))
	}
	if c.PredictedOutput != nil {
		add("prediction", c.PredictedOutput.decorator(at.at("predicted_output")))
	}
	if c.Deadline != nil {
		add("deadline", deadlines(at.duration("deadline", c.Deadline)))
	}
	if c.Retry != nil {
		add("retry", c.Retry.decorator(at.at("retry")))
	}
	if c.Archetype != nil && c.Archetype.SessionLength != nil {
		const name = "archetype.session_length"
		add(name, sessionLengths(at.duration(name, c.Archetype.SessionLength)))
		if singleRequests {
			at.fail(name, "is only for clients that send sessions")
		}
	}
	if result.decorators == nil {
		return g
	}
	return result
}

// modelCalls yields the model calls of a session.
func modelCalls(s *stream.Session) iter.Seq[*stream.SessionStep] {
	return func(yield func(*stream.SessionStep) bool) {
		for i := range s.Steps {
			if s.Steps[i].Tool == "" && !yield(&s.Steps[i]) {
				return
			}
		}
	}
}

// stop gives each request, and each model call of a session, the end of its output.
func stop(by string) func(*stream.Arrival, *rand.Rand) {
	return func(a *stream.Arrival, _ *rand.Rand) {
		if !a.IsSession {
			a.Request.Stop = by
			return
		}
		for s := range modelCalls(&a.Session) {
			s.Stop = by
		}
	}
}

// draftAcceptance gives each request, and each model call of a session, the probability of its drafts.
func draftAcceptance(p *float64) func(*stream.Arrival, *rand.Rand) {
	return func(a *stream.Arrival, _ *rand.Rand) {
		if !a.IsSession {
			a.Request.DraftAcceptance = p
			return
		}
		for s := range modelCalls(&a.Session) {
			s.DraftAcceptance = p
		}
	}
}

// deadlines gives each request a deadline, and each model call of a session a timeout, of at least
// 1 µs: a deadline comes after the arrival.
func deadlines(length *dist.Length) func(*stream.Arrival, *rand.Rand) {
	return func(a *stream.Arrival, r *rand.Rand) {
		if !a.IsSession {
			a.Request.DeadlineUS = min(a.Request.ArrivalUS+stream.Micros(max(1, length.Draw(r))), maxHorizon)
			return
		}
		for s := range modelCalls(&a.Session) {
			s.TimeoutUS = max(1, length.Draw(r))
		}
	}
}

// sessionLengths limits how long sessions last.
func sessionLengths(length *dist.Length) func(*stream.Arrival, *rand.Rand) {
	return func(a *stream.Arrival, r *rand.Rand) {
		s := &a.Session
		end := min(s.ArrivalUS+stream.Micros(length.Draw(r)), maxHorizon)
		if s.UntilUS == stream.Never || end < s.UntilUS {
			s.UntilUS = end
		}
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

// decorator validates p and returns a decorator that sets the predicted output length of model
// calls.
func (p *Prediction) decorator(at field) func(*stream.Arrival, *rand.Rand) {
	between(at, "error", p.Error, 0, maxError)
	if !(p.Bias > 0 && p.Bias <= maxBias) {
		at.fail("bias", "must be above 0 and at most %d, is %g", maxBias, p.Bias)
	}
	noise := dist.Noise(p.Error)
	predict := func(tokens int64, r *rand.Rand) int64 {
		return int64(math.Round(min(max(1, float64(tokens)*p.Bias*noise(r)), maxTokens)))
	}
	return func(a *stream.Arrival, r *rand.Rand) {
		if !a.IsSession {
			a.Request.PredictedOutputTokens = predict(a.Request.OutputTokens, r)
			return
		}
		for s := range modelCalls(&a.Session) {
			s.PredictedOutputTokens = predict(s.OutputTokens, r)
		}
	}
}
