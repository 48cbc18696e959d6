package gen

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"blis/pkg/dist"
	"blis/pkg/stream"
)

// Retry describes how a client sends requests again that did not complete. The defaults are those of the OpenAI Python
// client 1.x (DEFAULT_MAX_RETRIES, INITIAL_RETRY_DELAY and MAX_RETRY_DELAY of its _constants.py), without jitter.
type Retry struct {
	On         []string   `yaml:"on" json:"on,omitempty"`
	Max        int64      `yaml:"max" json:"max"`
	Backoff    *dist.Spec `yaml:"backoff" json:"backoff,omitempty"`
	Multiplier float64    `yaml:"multiplier" json:"multiplier"`
	MaxBackoff int64      `yaml:"max_backoff" json:"max_backoff"`
}

// Bounds and defaults of retries. Times are in µs.
const (
	maxRetries        = 100
	maxMultiplier     = 100
	defaultRetries    = 2
	defaultBackoff    = 500_000
	defaultMultiplier = 2
	defaultMaxBackoff = 8_000_000
)

// UnmarshalYAML sets the defaults before it decodes.
func (r *Retry) UnmarshalYAML(decode func(any) error) error {
	type plain Retry
	*r = Retry{Max: defaultRetries, Multiplier: defaultMultiplier, MaxBackoff: defaultMaxBackoff}
	return decode((*plain)(r))
}

// decorator validates r and returns a decorator that makes the client of model calls retry them.
func (r *Retry) decorator(at field) func(*stream.Arrival, *rand.Rand) {
	states := stream.RetryStates()
	for i, state := range r.On {
		switch {
		case !slices.Contains(states, state):
			at.at("on").element(i).fail("", "must be one of %s, is %q", strings.Join(states, ", "), state)
		case slices.Contains(r.On[:i], state):
			at.at("on").element(i).fail("", "%q is a duplicate", state)
		}
	}
	between(at, "max", r.Max, 1, maxRetries)
	between(at, "multiplier", r.Multiplier, 1, maxMultiplier)
	between(at, "max_backoff", r.MaxBackoff, 1, maxHorizon)
	on := r.On
	if on == nil {
		on = states
	}
	backoff := at.duration("backoff", r.Backoff)
	if r.Backoff == nil {
		backoff = at.duration("backoff", &dist.Spec{Type: "constant",
			Params: map[string]float64{"value": defaultBackoff}})
	}
	plan := func(random *rand.Rand) *stream.Retry {
		p := &stream.Retry{On: on}
		factor := 1.0
		for range r.Max {
			us := min(math.Round(float64(backoff.Draw(random))*factor), float64(r.MaxBackoff))
			p.BackoffUS = append(p.BackoffUS, int64(us))
			factor *= r.Multiplier
		}
		return p
	}
	return func(a *stream.Arrival, random *rand.Rand) {
		if !a.IsSession {
			a.Request.Retry = plan(random)
			return
		}
		for s := range modelCalls(&a.Session) {
			s.Retry = plan(random)
		}
	}
}
