package gen

import (
	"blis/pkg/dist"
	"blis/pkg/registry"
)

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

// applyArchetype fills in the fields that c, which is at path, leaves out and its archetype
// defines.
func (c *Client) applyArchetype(path string, errorf errorFunc) error {
	a := c.Archetype
	if a == nil {
		return nil
	}
	path += ".archetype"
	if a.TypicalPromptSize != "" {
		mean, err := PromptSizes.Get("prompt size", a.TypicalPromptSize)
		if err != nil {
			return errorf(path+".typical_prompt_size", "%v", err)
		}
		if c.InputDistribution.Type == "" {
			c.InputDistribution = dist.Spec{Type: "lognormal", Params: map[string]float64{"mean": mean,
				"std_dev": 0.75 * mean}}
		}
	}
	if p := a.PrefixReuseAffinity; p != nil {
		switch {
		case !(*p >= 0 && *p <= 1):
			return errorf(path+".prefix_reuse_affinity", "must be between 0 and 1, is %g", *p)
		case c.PrefixSpec == nil:
			return errorf(path+".prefix_reuse_affinity", "needs a prefix_spec with the prefixes to reuse")
		case !c.PrefixSpec.reuseSet:
			spec := *c.PrefixSpec
			spec.ReuseProbability = *p
			c.PrefixSpec = &spec
		}
	}
	if !(a.BurstPropensity >= 0 && a.BurstPropensity <= 1) {
		return errorf(path+".burst_propensity", "must be between 0 and 1, is %g", a.BurstPropensity)
	}
	return nil
}
