package gen

import (
	"math"
	"slices"

	"blis/pkg/dist"
	"blis/pkg/registry"
)

// Behavior is what a client does beside sending its requests as it should.
type Behavior struct {
	// Type is one of Behaviors.
	Type string `yaml:"type" json:"type"`
	// Burst is of bursty and adversarial clients, Abuse of abusive ones.
	Burst *Burst `yaml:"burst" json:"burst,omitempty"`
	Abuse *Abuse `yaml:"abuse" json:"abuse,omitempty"`
}

// Burst is arrivals of the client on top of those that its rate gives: from time
// to time many at one instant. They have random streams of their own, so that the
// others stay as they are; a load profile bends both.
type Burst struct {
	// BurstProb is the probability that there is a burst when an interval has
	// passed; absent, the archetype's burst_propensity, or else 1.
	BurstProb *float64 `yaml:"burst_prob" json:"burst_prob,omitempty"`
	// BurstSize is how many arrive; absent, as many as the rate gives in 10 s, and
	// 2 at least.
	BurstSize *dist.Spec `yaml:"burst_size" json:"burst_size,omitempty"`
	// BurstInterval is how far apart bursts are, in µs; absent, exponential with a
	// mean of 60 s, of an adversarial client 60 s exactly: all of them strike at
	// once.
	BurstInterval *dist.Spec `yaml:"burst_interval" json:"burst_interval,omitempty"`
}

// Abuse is what an abusive client does. Where it is absent, all of it.
type Abuse struct {
	// OversizedPrompts: its prompts are 8 times as long as input_distribution says.
	OversizedPrompts bool `yaml:"oversized_prompts" json:"oversized_prompts,omitempty"`
	// RapidFire: its rate is 5 times what the spec says.
	RapidFire bool `yaml:"rapid_fire" json:"rapid_fire,omitempty"`
	// ResourceExhaustion: it fills caches with what nobody can use again. Its
	// answers are 8 times as long as output_distribution says, and its prompts begin
	// with no shared prefix.
	ResourceExhaustion bool `yaml:"resource_exhaustion" json:"resource_exhaustion,omitempty"`
}

// How much too much there is of everything.
const (
	oversize  = 8
	rapidness = 5
)

// What bursts are where nothing else is said.
const (
	burstSeconds    = 10 // of the rate, at one instant
	burstIntervalUS = 60e6
)

// behavior is what a type of behaviour may say of itself.
type behavior struct{ bursts, abuses bool }

// Behaviors are the types of behaviour.
var Behaviors = registry.Table[behavior]{
	{Name: "normal", Doc: "nothing beside its requests"},
	{Name: "bursty", Doc: "bursts on top of its requests", Value: behavior{bursts: true}},
	{Name: "abusive", Doc: "too long, too many or too hungry requests", Value: behavior{abuses: true}},
	{Name: "adversarial", Doc: "bursts of prompts 8 times as long, at the same instants as other such clients", Value: behavior{bursts: true}},
}

const adversarialName = "adversarial"

// latent is what behaviour, archetype and correlations make of a client, beside
// what they change in its fields.
type latent struct {
	// bursts are those that this part of the client consists of; nil if it is the
	// client itself.
	bursts *bursts
	// haste multiplies the rate; 0 is 1.
	haste float64
	// lean makes prompts longer in bursts and shorter outside; nil if it does not.
	lean func(*dist.Length) *dist.Length
	// sticky is the probability that a prompt takes the group that the last one took.
	sticky float64
}

// burstPart tells the bursts of a client from itself.
const burstPart = "/burst"

// bursts is a Burst, checked and completed.
type bursts struct {
	prob           float64
	size, interval *dist.Length
}

// rate is how many arrive in bursts in a second.
func (b *bursts) rate() float64 { return b.prob * b.size.Mean() / b.interval.Mean() * 1e6 }

// parts returns what c, which stands at path, consists of as behaviour, archetype
// and correlations have it: itself and, if it has any, its bursts.
func (s *Spec) parts(c *Client, path string, fault fault) ([]*Client, error) {
	own := *c
	if err := own.settle(path, fault); err != nil {
		return nil, err
	}
	if err := own.correlate(s.Correlations, fault); err != nil {
		return nil, err
	}
	if c.Behavior != nil {
		if err := own.behave(path, fault); err != nil {
			return nil, err
		}
	}
	spec := c.burst()
	if spec == nil {
		return []*Client{&own}, nil
	}
	rate := s.AggregateRate * c.RateFraction
	b, err := own.bursting(spec, rate, path+".behavior.burst", fault)
	if err != nil {
		return nil, err
	}
	crowd := own
	crowd.latent.bursts = b
	if slices.ContainsFunc(s.Clients, func(other Client) bool { return other.ID == crowd.name() }) {
		return nil, fault(path+".id", "with bursts must not stand beside a client called %q, as these are", crowd.name())
	}
	if c.Behavior != nil && c.Behavior.Type == adversarialName {
		crowd.InputDistribution = own.InputDistribution.Scaled(oversize)
	}
	return []*Client{&own, &crowd}, s.leanOn(&own, &crowd, rate, fault)
}

// behave makes c, which stands at path, behave as it should.
func (c *Client) behave(path string, fault fault) error {
	b, at := c.Behavior, path+".behavior"
	kind, err := Behaviors.Get("behavior", b.Type)
	switch {
	case err != nil:
		return fault(at+".type", "%v", err)
	case b.Burst != nil && !kind.bursts:
		return fault(at+".burst", "%s clients have none; bursty and adversarial have", b.Type)
	case b.Abuse != nil && !kind.abuses:
		return fault(at+".abuse", "%s clients have none; abusive have", b.Type)
	case kind.abuses:
		return c.abuse(path, fault)
	}
	return nil
}

// burst is what c says of its bursts; nil if it has none.
func (c *Client) burst() *Burst {
	if c.Behavior == nil {
		if c.Archetype != nil && c.Archetype.BurstPropensity > 0 {
			return &Burst{}
		}
		return nil
	}
	if kind, err := Behaviors.Get("behavior", c.Behavior.Type); err != nil || !kind.bursts {
		return nil
	}
	if c.Behavior.Burst == nil {
		return &Burst{}
	}
	return c.Behavior.Burst
}

// bursting completes and checks the bursts of c at a rate of arrivals outside of
// them. They stand at path.
func (c *Client) bursting(spec *Burst, rate float64, path string, fault fault) (*bursts, error) {
	b := &bursts{prob: 1}
	if c.Archetype != nil && c.Archetype.BurstPropensity > 0 {
		b.prob = c.Archetype.BurstPropensity
	}
	if spec.BurstProb != nil {
		b.prob = *spec.BurstProb
	}
	if !(b.prob > 0 && b.prob <= 1) {
		return nil, fault(path+".burst_prob", "must be above 0 and at most 1, is %g", b.prob)
	}
	if c.Arrival.IsTrace() && spec.BurstSize == nil {
		return nil, fault(path+".burst_size", "must be given beside arrivals of a trace, which have no rate")
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
		return nil, inside(path+".burst_size", err, fault)
	}
	if b.interval, err = interval.Duration(); err != nil {
		return nil, inside(path+".burst_interval", err, fault)
	}
	if b.interval.Mean() < 1 {
		return nil, fault(path+".burst_interval", "must be 1 µs at least in the mean")
	}
	return b, nil
}

// abuse makes c, which stands at path, an abusive client.
func (c *Client) abuse(path string, fault fault) error {
	a := Abuse{true, true, true}
	if c.Behavior.Abuse != nil {
		a = *c.Behavior.Abuse
	}
	if a.RapidFire {
		if c.Arrival.IsTrace() {
			return fault(path+".behavior", "rapid fire cannot change the arrivals of a trace")
		}
		c.latent.haste = rapidness
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
			return inside(path+"."+d.name, err, fault)
		}
		*d.of = d.of.Scaled(oversize)
	}
	return nil
}
