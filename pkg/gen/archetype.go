package gen

import (
	"blis/pkg/dist"
	"blis/pkg/registry"
)

// Archetype is what a tenant is like, whatever it sends: it says what its client
// leaves out. What the client says itself is not changed.
type Archetype struct {
	// TypicalPromptSize is one of PromptSizes, which are the input_distribution of a
	// client without one.
	TypicalPromptSize string `yaml:"typical_prompt_size" json:"typical_prompt_size,omitempty"`
	// PrefixReuseAffinity, 0 to 1, is the reuse_prob of a prefix_spec without one.
	PrefixReuseAffinity *float64 `yaml:"prefix_reuse_affinity" json:"prefix_reuse_affinity,omitempty"`
	// BurstPropensity, 0 to 1, is the burst_prob of bursts without one. A client
	// without a behavior has bursts if it is above 0.
	BurstPropensity float64 `yaml:"burst_propensity" json:"burst_propensity,omitempty"`
	// SessionLength is for how long a session goes on, in µs: what would begin later
	// does not happen. Only clients that send sessions have one.
	SessionLength *dist.Spec `yaml:"session_length" json:"session_length,omitempty"`
}

// PromptSizes are typical lengths of prompts, lognormal with a cv of 0.75, by
// their means.
var PromptSizes = registry.Table[float64]{
	{Name: "small", Doc: "a question: 128 tokens", Value: 128},
	{Name: "medium", Doc: "a page: 1,024 tokens", Value: 1024},
	{Name: "large", Doc: "a document: 8,192 tokens", Value: 8192},
	{Name: "elephant", Doc: "a book: 32,768 tokens", Value: 32768},
}

// settle gives c, which stands at path, what its archetype says and it does not.
func (c *Client) settle(path string, fault fault) error {
	a := c.Archetype
	if a == nil {
		return nil
	}
	path += ".archetype"
	if a.TypicalPromptSize != "" {
		mean, err := PromptSizes.Get("prompt size", a.TypicalPromptSize)
		if err != nil {
			return fault(path+".typical_prompt_size", "%v", err)
		}
		if c.InputDistribution.Type == "" {
			c.InputDistribution = dist.Spec{Type: "lognormal", Params: map[string]float64{"mean": mean, "std_dev": 0.75 * mean}}
		}
	}
	if p := a.PrefixReuseAffinity; p != nil {
		switch {
		case !(*p >= 0 && *p <= 1):
			return fault(path+".prefix_reuse_affinity", "must be between 0 and 1, is %g", *p)
		case c.PrefixSpec == nil:
			return fault(path+".prefix_reuse_affinity", "needs a prefix_spec, which says what is used again")
		case !c.PrefixSpec.reuseGiven:
			spec := *c.PrefixSpec
			spec.ReuseProb = *p
			c.PrefixSpec = &spec
		}
	}
	if !(a.BurstPropensity >= 0 && a.BurstPropensity <= 1) {
		return fault(path+".burst_propensity", "must be between 0 and 1, is %g", a.BurstPropensity)
	}
	return nil
}
