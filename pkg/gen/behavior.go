package gen

import (
	"math"
	"slices"

	"blis/pkg/dist"
	"blis/pkg/registry"
)

// Behavior describes how a client deviates from its configured rate and lengths.
type Behavior struct {
	Type  string `yaml:"type" json:"type"`
	Burst *Burst `yaml:"burst" json:"burst,omitempty"`
	Abuse *Abuse `yaml:"abuse" json:"abuse,omitempty"`
}

// Burst describes simultaneous arrivals in addition to those of the client's rate. Bursts draw from
// their own random streams and leave the other requests unchanged. A load profile applies to both.
type Burst struct {
	BurstProbability *float64   `yaml:"burst_probability" json:"burst_probability,omitempty"`
	BurstSize        *dist.Spec `yaml:"burst_size" json:"burst_size,omitempty"`
	BurstInterval    *dist.Spec `yaml:"burst_interval" json:"burst_interval,omitempty"`
}

// Abuse selects what an abusive client does. A nil Abuse selects everything.
type Abuse struct {
	OversizedPrompts   bool `yaml:"oversized_prompts" json:"oversized_prompts,omitempty"`
	RapidFire          bool `yaml:"rapid_fire" json:"rapid_fire,omitempty"`
	ResourceExhaustion bool `yaml:"resource_exhaustion" json:"resource_exhaustion,omitempty"`
}

// The factors of abusive behavior.
const (
	lengthAbuseFactor = 8
	rateAbuseFactor   = 5
)

// Defaults of bursts.
const (
	burstSeconds    = 10 // of the client's rate, in one burst
	burstIntervalUS = 60e6
)

// behaviorKind says which blocks a behavior may have.
type behaviorKind struct{ allowsBurst, allowsAbuse bool }

// Behaviors are the behavior types.
var Behaviors = registry.Table[behaviorKind]{
	{Name: "normal", Doc: "no deviation"},
	{Name: "bursty", Doc: "bursts in addition to its rate", Value: behaviorKind{allowsBurst: true}},
	{Name: "abusive", Doc: "oversized prompts and outputs, 5 times the rate, no shared prefixes",
		Value: behaviorKind{allowsAbuse: true}},
	{Name: "adversarial", Doc: "bursts of prompts 8 times as long, at the same times as other adversarial clients",
		Value: behaviorKind{allowsBurst: true}},
}

const adversarialName = "adversarial"

// derived holds what behavior, archetype and correlations add to a client beyond its fields.
type derived struct {
	// bursts is set if this source sends only the bursts of its client.
	bursts *bursts
	// rateFactor multiplies the rate; 0 means 1.
	rateFactor float64
	// correlateLength makes prompts longer in bursts and shorter outside; nil changes nothing.
	correlateLength func(*dist.Length) *dist.Length
	// reuseProbability is the probability that a prompt repeats the prefix group of the previous
	// one.
	reuseProbability float64
}

// burstSuffix distinguishes the bursts of a client from its regular requests.
const burstSuffix = "/burst"

// bursts is a validated Burst with all defaults set.
type bursts struct {
	probability    float64
	size, interval *dist.Length
}

// rate is the mean rate of the requests in bursts, per second.
func (b *bursts) rate() float64 { return b.probability * b.size.Mean() / b.interval.Mean() * 1e6 }

// expandClient returns the sources of the client c at path: c itself, with behavior, archetype and
// correlations applied, and a second source for its bursts, if it has any.
func (s *Spec) expandClient(c *Client, path string, errorf errorFunc) ([]*Client, error) {
	base := *c
	if err := base.applyArchetype(path, errorf); err != nil {
		return nil, err
	}
	if err := base.applyPrefixCorrelation(s.Correlations, errorf); err != nil {
		return nil, err
	}
	if c.Behavior != nil {
		if err := base.applyBehavior(path, errorf); err != nil {
			return nil, err
		}
	}
	spec := c.burst()
	if spec == nil {
		return []*Client{&base}, nil
	}
	rate := s.AggregateRate * c.RateFraction
	b, err := base.newBursts(spec, rate, path+".behavior.burst", errorf)
	if err != nil {
		return nil, err
	}
	burstClient := base
	burstClient.derived.bursts = b
	if slices.ContainsFunc(s.Clients, func(other Client) bool { return other.ID == burstClient.name() }) {
		return nil, errorf(path+".id", "its bursts would be called %q, which is the id of another client",
			burstClient.name())
	}
	if c.Behavior != nil && c.Behavior.Type == adversarialName {
		burstClient.InputDistribution = base.InputDistribution.Scaled(lengthAbuseFactor)
	}
	return []*Client{&base, &burstClient}, s.correlateLengths(&base, &burstClient, rate, errorf)
}

// applyBehavior validates the behavior of c, which is at path, and applies it.
func (c *Client) applyBehavior(path string, errorf errorFunc) error {
	b, at := c.Behavior, path+".behavior"
	kind, err := Behaviors.Get("behavior", b.Type)
	switch {
	case err != nil:
		return errorf(at+".type", "%v", err)
	case b.Burst != nil && !kind.allowsBurst:
		return errorf(at+".burst", "is only for bursty and adversarial clients, not for %s ones", b.Type)
	case b.Abuse != nil && !kind.allowsAbuse:
		return errorf(at+".abuse", "is only for abusive clients, not for %s ones", b.Type)
	case kind.allowsAbuse:
		return c.applyAbuse(path, errorf)
	}
	return nil
}

// burst returns the burst configuration of c; nil if it has none.
func (c *Client) burst() *Burst {
	if c.Behavior == nil {
		if c.Archetype != nil && c.Archetype.BurstPropensity > 0 {
			return &Burst{}
		}
		return nil
	}
	if kind, err := Behaviors.Get("behavior", c.Behavior.Type); err != nil || !kind.allowsBurst {
		return nil
	}
	if c.Behavior.Burst == nil {
		return &Burst{}
	}
	return c.Behavior.Burst
}

// newBursts validates spec, which is at path, and sets its defaults. rate is the rate of the
// client's other arrivals.
func (c *Client) newBursts(spec *Burst, rate float64, path string, errorf errorFunc) (*bursts, error) {
	b := &bursts{probability: 1}
	if c.Archetype != nil && c.Archetype.BurstPropensity > 0 {
		b.probability = c.Archetype.BurstPropensity
	}
	if spec.BurstProbability != nil {
		b.probability = *spec.BurstProbability
	}
	if !(b.probability > 0 && b.probability <= 1) {
		return nil, errorf(path+".burst_probability", "must be above 0 and at most 1, is %g", b.probability)
	}
	if c.Arrival.IsTrace() && spec.BurstSize == nil {
		return nil, errorf(path+".burst_size", "must be given with arrivals from a trace, which have no rate")
	}
	size := dist.Spec{Type: "constant", Params: map[string]float64{"value": max(2, math.Round(rate*burstSeconds))}}
	if spec.BurstSize != nil {
		size = *spec.BurstSize
	}
	interval := dist.Spec{Type: "exponential", Params: map[string]float64{"mean": burstIntervalUS}}
	if c.Behavior != nil && c.Behavior.Type == adversarialName {
		interval = dist.Spec{Type: "constant", Params: map[string]float64{"value": burstIntervalUS}}
	}
	if spec.BurstInterval != nil {
		interval = *spec.BurstInterval
	}
	var err error
	if b.size, err = size.Length(); err != nil {
		return nil, paramError(path+".burst_size", err, errorf)
	}
	if b.interval, err = interval.Duration(); err != nil {
		return nil, paramError(path+".burst_interval", err, errorf)
	}
	if b.interval.Mean() < 1 {
		return nil, errorf(path+".burst_interval", "must have a mean of at least 1 µs")
	}
	return b, nil
}

// applyAbuse applies the abusive behavior of c, which is at path.
func (c *Client) applyAbuse(path string, errorf errorFunc) error {
	a := Abuse{true, true, true}
	if c.Behavior.Abuse != nil {
		a = *c.Behavior.Abuse
	}
	if a.RapidFire {
		if c.Arrival.IsTrace() {
			return errorf(path+".behavior", "rapid_fire cannot change arrivals from a trace")
		}
		c.derived.rateFactor = rateAbuseFactor
	}
	if a.ResourceExhaustion {
		c.PrefixSpec = nil
	}
	for _, d := range []struct {
		name   string
		of     *dist.Spec
		abused bool
	}{
		{"input_distribution", &c.InputDistribution, a.OversizedPrompts},
		{"output_distribution", &c.OutputDistribution, a.ResourceExhaustion},
	} {
		if !d.abused {
			continue
		}
		if _, err := d.of.Length(); err != nil {
			return paramError(path+"."+d.name, err, errorf)
		}
		*d.of = d.of.Scaled(lengthAbuseFactor)
	}
	return nil
}
