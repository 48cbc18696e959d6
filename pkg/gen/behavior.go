package gen

import (
	"cmp"
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

// Behaviors are the behavior types, with the block that each may have: burst, abuse or "".
var Behaviors = registry.Table[string]{
	{Name: "normal", Doc: "no deviation"},
	{Name: "bursty", Doc: "bursts in addition to its rate", Value: "burst"},
	{Name: "abusive", Doc: "oversized prompts and outputs, 5 times the rate, no shared prefixes",
		Value: "abuse"},
	{Name: "adversarial", Doc: "bursts of prompts 8 times as long, at the same times as other adversarial clients",
		Value: "burst"},
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

// expandClient returns the sources of the client c: c itself, with behavior, archetype and
// correlations applied, and a second source for its bursts, if it has any. The result has no meaning if c is
// invalid.
func (s *Spec) expandClient(c *Client, at field) []*Client {
	base := *c
	base.applyArchetype(at)
	base.derived.reuseProbability = s.correlations().PrefixCorrelation
	base.applyBehavior(at)
	spec := c.burst()
	if spec == nil {
		return []*Client{&base}
	}
	rate := s.AggregateRate * c.RateFraction
	burstClient := base
	if burstClient.derived.bursts = base.newBursts(spec, rate, at.at("behavior.burst")); at.err != nil {
		return nil
	}
	if slices.ContainsFunc(s.Clients, func(other Client) bool { return other.ID == burstClient.name() }) {
		at.fail("id", "its bursts would be called %q, which is the id of another client", burstClient.name())
	}
	if base.isAdversarial() {
		burstClient.InputDistribution = base.InputDistribution.Scaled(lengthAbuseFactor)
	}
	s.correlateLengths(&base, &burstClient, rate, at)
	return []*Client{&base, &burstClient}
}

func (c *Client) isAdversarial() bool { return c.Behavior != nil && c.Behavior.Type == adversarialName }

// applyBehavior validates the behavior of c, if it has one, and applies it.
func (c *Client) applyBehavior(at field) {
	b := c.Behavior
	if b == nil {
		return
	}
	allowed, err := Behaviors.Get("behavior", b.Type)
	switch {
	case err != nil:
		at.fail("behavior.type", "%v", err)
	case b.Burst != nil && allowed != "burst":
		at.fail("behavior.burst", "is only for bursty and adversarial clients, not for %s ones", b.Type)
	case b.Abuse != nil && allowed != "abuse":
		at.fail("behavior.abuse", "is only for abusive clients, not for %s ones", b.Type)
	case allowed == "abuse":
		c.applyAbuse(at)
	}
}

// burst returns the burst configuration of c; nil if it has none.
func (c *Client) burst() *Burst {
	if c.Behavior == nil {
		if c.Archetype != nil && c.Archetype.BurstPropensity > 0 {
			return &Burst{}
		}
		return nil
	}
	if allowed, _ := Behaviors.Get("behavior", c.Behavior.Type); allowed != "burst" {
		return nil
	}
	return cmp.Or(c.Behavior.Burst, &Burst{})
}

// newBursts validates spec and sets its defaults. rate is the rate of the client's other arrivals.
func (c *Client) newBursts(spec *Burst, rate float64, at field) *bursts {
	b := &bursts{probability: 1}
	if c.Archetype != nil && c.Archetype.BurstPropensity > 0 {
		b.probability = c.Archetype.BurstPropensity
	}
	if spec.BurstProbability != nil {
		b.probability = *spec.BurstProbability
	}
	if !(b.probability > 0 && b.probability <= 1) {
		at.fail("burst_probability", "must be above 0 and at most 1, is %g", b.probability)
	}
	if c.Arrival.IsTrace() && spec.BurstSize == nil {
		at.fail("burst_size", "must be given with arrivals from a trace, which have no rate")
	}
	size := &dist.Spec{Type: "constant", Params: map[string]float64{"value": max(2, math.Round(rate*burstSeconds))}}
	interval := &dist.Spec{Type: "exponential", Params: map[string]float64{"mean": burstIntervalUS}}
	if c.isAdversarial() {
		interval = &dist.Spec{Type: "constant", Params: map[string]float64{"value": burstIntervalUS}}
	}
	b.size = at.length("burst_size", cmp.Or(spec.BurstSize, size))
	b.interval = at.duration("burst_interval", cmp.Or(spec.BurstInterval, interval))
	if at.err == nil && b.interval.Mean() < 1 {
		at.fail("burst_interval", "must have a mean of at least 1 µs")
	}
	return b
}

// applyAbuse applies the abusive behavior of c.
func (c *Client) applyAbuse(at field) {
	a := Abuse{true, true, true}
	if c.Behavior.Abuse != nil {
		a = *c.Behavior.Abuse
	}
	if a.RapidFire {
		if c.Arrival.IsTrace() {
			at.fail("behavior", "rapid_fire cannot change arrivals from a trace")
		}
		c.derived.rateFactor = rateAbuseFactor
	}
	if a.ResourceExhaustion {
		c.PrefixSpec = nil
	}
	if a.OversizedPrompts && at.length("input_distribution", &c.InputDistribution) != nil {
		c.InputDistribution = c.InputDistribution.Scaled(lengthAbuseFactor)
	}
	if a.ResourceExhaustion && at.length("output_distribution", &c.OutputDistribution) != nil {
		c.OutputDistribution = c.OutputDistribution.Scaled(lengthAbuseFactor)
	}
}

// Archetype describes a typical tenant. It supplies defaults for fields that the client leaves out.
type Archetype struct {
	TypicalPromptSize   string     `yaml:"typical_prompt_size" json:"typical_prompt_size,omitempty"`
	PrefixReuseAffinity *float64   `yaml:"prefix_reuse_affinity" json:"prefix_reuse_affinity,omitempty"`
	BurstPropensity     float64    `yaml:"burst_propensity" json:"burst_propensity,omitempty"`
	SessionLength       *dist.Spec `yaml:"session_length" json:"session_length,omitempty"`
}

// PromptSizes are the mean prompt lengths of archetypes. Lengths are lognormal with a coefficient
// of variation of 0.75.
var PromptSizes = registry.Table[float64]{
	{Name: "small", Doc: "a question: 128 tokens", Value: 128},
	{Name: "medium", Doc: "a page: 1,024 tokens", Value: 1024},
	{Name: "large", Doc: "a document: 8,192 tokens", Value: 8192},
	{Name: "elephant", Doc: "a book: 32,768 tokens", Value: 32768},
}

// applyArchetype fills in the fields that c leaves out and its archetype defines.
func (c *Client) applyArchetype(at field) {
	a := c.Archetype
	if a == nil {
		return
	}
	at = at.at("archetype")
	if a.TypicalPromptSize != "" {
		mean, err := PromptSizes.Get("prompt size", a.TypicalPromptSize)
		if err != nil {
			at.fail("typical_prompt_size", "%v", err)
		}
		if c.InputDistribution.Type == "" {
			c.InputDistribution = dist.Spec{Type: "lognormal", Params: map[string]float64{"mean": mean,
				"std_dev": 0.75 * mean}}
		}
	}
	if p := a.PrefixReuseAffinity; p != nil {
		between(at, "prefix_reuse_affinity", *p, 0, 1)
		switch {
		case c.PrefixSpec == nil:
			at.fail("prefix_reuse_affinity", "needs a prefix_spec with the prefixes to reuse")
		case !c.PrefixSpec.reuseSet:
			spec := *c.PrefixSpec
			spec.ReuseProbability = *p
			c.PrefixSpec = &spec
		}
	}
	between(at, "burst_propensity", a.BurstPropensity, 0, 1)
}
