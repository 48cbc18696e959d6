package gen

import (
	"math"
	"slices"

	"blis/pkg/dist"
	"blis/pkg/registry"
	"blis/pkg/stream"
	"blis/pkg/strictyaml"
)

// Spec is a workload specification. schemas/spec.md documents its fields and those of the types
// below it.
type Spec struct {
	Version       string        `yaml:"version" json:"version"`
	Seed          uint64        `yaml:"seed" json:"seed"`
	Category      string        `yaml:"category" json:"category,omitempty"`
	AggregateRate float64       `yaml:"aggregate_rate" json:"aggregate_rate"`
	Horizon       int64         `yaml:"horizon" json:"horizon,omitempty"`
	Requests      int64         `yaml:"requests" json:"requests,omitempty"`
	SLOClasses    []Class       `yaml:"slo_classes" json:"slo_classes,omitempty"`
	Clients       []Client      `yaml:"clients" json:"clients"`
	LoadProfile   *dist.Profile `yaml:"load_profile" json:"load_profile,omitempty"`
	Correlations  *Correlations `yaml:"correlations" json:"correlations,omitempty"`
	// dir is the folder of the spec, to which file names in it are relative.
	dir string
	// allowPaths lets them be outside of dir.
	allowPaths bool
}

// maxPriority is the largest priority of a request, and the negated smallest one.
const maxPriority = 1<<31 - 1

// Client is one source of requests, or of sessions if it has one of the blocks Agentic, MultiTurn,
// Reasoning and ClosedLoop. It draws from its own random streams, named after its ID, so other
// clients do not change its requests.
type Client struct {
	ID                 string        `yaml:"id" json:"id"`
	TenantID           string        `yaml:"tenant_id" json:"tenant_id,omitempty"`
	SLOClass           string        `yaml:"slo_class" json:"slo_class,omitempty"`
	Priority           int64         `yaml:"priority" json:"priority,omitempty"`
	Model              string        `yaml:"model" json:"model,omitempty"`
	RateFraction       float64       `yaml:"rate_fraction" json:"rate_fraction,omitempty"`
	Arrival            dist.Arrival  `yaml:"arrival" json:"arrival,omitzero"`
	LoadProfile        *dist.Profile `yaml:"load_profile" json:"load_profile,omitempty"`
	InputDistribution  dist.Spec     `yaml:"input_distribution" json:"input_distribution,omitzero"`
	OutputDistribution dist.Spec     `yaml:"output_distribution" json:"output_distribution,omitzero"`
	Stop               string        `yaml:"stop" json:"stop,omitempty"`
	DraftAcceptance    *float64      `yaml:"draft_acceptance" json:"draft_acceptance,omitempty"`
	Adapters           *Adapters     `yaml:"adapters" json:"adapters,omitempty"`
	Grammars           *Grammars     `yaml:"grammars" json:"grammars,omitempty"`
	PrefixSpec         *PrefixSpec   `yaml:"prefix_spec" json:"prefix_spec,omitempty"`
	Agentic            *Agentic      `yaml:"agentic" json:"agentic,omitempty"`
	MultiTurn          *MultiTurn    `yaml:"multi_turn" json:"multi_turn,omitempty"`
	Reasoning          *Reasoning    `yaml:"reasoning" json:"reasoning,omitempty"`
	ClosedLoop         *ClosedLoop   `yaml:"closed_loop" json:"closed_loop,omitempty"`
	Multimodal         *Multimodal   `yaml:"multimodal" json:"multimodal,omitempty"`
	Deadline           *dist.Spec    `yaml:"deadline" json:"deadline,omitempty"`
	Retry              *Retry        `yaml:"retry" json:"retry,omitempty"`
	PredictedOutput    *Prediction   `yaml:"predicted_output" json:"predicted_output,omitempty"`
	Behavior           *Behavior     `yaml:"behavior" json:"behavior,omitempty"`
	Archetype          *Archetype    `yaml:"archetype" json:"archetype,omitempty"`
	derived            derived
}

// PrefixSpec describes the prefixes that prompts share: listed groups, or NumPrefixGroups equally
// popular ones.
type PrefixSpec struct {
	PrefixGroups     []PrefixGroup `yaml:"prefix_groups" json:"prefix_groups,omitempty"`
	NumPrefixGroups  int64         `yaml:"num_prefix_groups" json:"num_prefix_groups,omitempty"`
	PrefixLength     dist.Spec     `yaml:"prefix_length" json:"prefix_length"`
	ReuseProbability float64       `yaml:"reuse_probability" json:"reuse_probability"`
	// reuseSet says that ReuseProbability is given.
	reuseSet bool
}

// PrefixGroup is one shared prefix. Groups with the same id are the same prefix, also in different
// clients.
type PrefixGroup struct {
	GroupID    string  `yaml:"group_id" json:"group_id"`
	Popularity float64 `yaml:"popularity" json:"popularity"`
}

// UnmarshalYAML sets the defaults before it decodes.
func (p *PrefixSpec) UnmarshalYAML(decode func(any) error) error {
	type plain PrefixSpec
	*p = PrefixSpec{ReuseProbability: math.NaN()} // not a valid value in a file
	if err := decode((*plain)(p)); err != nil {
		return err
	}
	if p.reuseSet = !math.IsNaN(p.ReuseProbability); !p.reuseSet {
		p.ReuseProbability = 1
	}
	return nil
}

// UnmarshalYAML sets the defaults before it decodes.
func (g *PrefixGroup) UnmarshalYAML(decode func(any) error) error {
	type plain PrefixGroup
	*g = PrefixGroup{Popularity: 1}
	return decode((*plain)(g))
}

// Class is an SLO class in a spec. With a predefined name it inherits the fields that it leaves
// out.
type Class stream.SLOClass

// UnmarshalYAML decodes over the predefined class of that name.
func (c *Class) UnmarshalYAML(decode func(any) error) error {
	type plain Class
	if err := decode((*plain)(c)); err != nil {
		return err
	}
	name := c.Name
	if predefined, err := stream.Classes.Get("SLO class", name); err == nil {
		*c = Class{name, predefined.Tier, predefined.Priority, c.Targets}
		return decode((*plain)(c))
	}
	return nil
}

// check reports the first invalid value of the class.
func (c *Class) check(at field) {
	if c.Name == "" {
		at.fail("name", "must be given")
	}
	if !slices.Contains(stream.Tiers, c.Tier) {
		at.fail("tier", "%v", registry.Unknown("tier", c.Tier, stream.Tiers))
	}
	if math.IsNaN(c.Priority) || math.IsInf(c.Priority, 0) {
		at.fail("priority", "must be a finite number, is %g", c.Priority)
	}
	for _, target := range []struct {
		name string
		ms   float64
	}{{"ttft_ms", c.Targets.TTFTMS}, {"tpot_ms", c.Targets.TPOTMS}, {"e2e_ms", c.Targets.E2EMS}} {
		if !(target.ms >= 0 && target.ms <= maxTargetMS) {
			at.fail("targets."+target.name, "must be between 0 (none) and %g, is %g", float64(maxTargetMS), target.ms)
		}
	}
}

// maxTargetMS is eleven days: above any target and below what overflows in µs.
const maxTargetMS = 1e9

// usedClasses returns the SLO classes of the clients, in order of first use.
func (s *Spec) usedClasses(errorf strictyaml.Errorf) (used []stream.SLOClass, err error) {
	spec := newField(errorf)
	declared := registry.Table[stream.SLOClass]{}
	for i := range s.SLOClasses {
		c := stream.SLOClass(s.SLOClasses[i])
		at := spec.at("slo_classes").element(i)
		s.SLOClasses[i].check(at)
		if slices.Contains(declared.Names(), c.Name) {
			at.fail("name", "%q is taken by an earlier class", c.Name)
		}
		declared = append(declared, registry.Entry[stream.SLOClass]{Name: c.Name, Value: c})
	}
	all := slices.Concat(declared, stream.Classes) // Get returns the first class of a name
	for i := range s.Clients {
		name := s.Clients[i].SLOClass
		if name == "" || slices.ContainsFunc(used, func(c stream.SLOClass) bool { return c.Name == name }) {
			continue
		}
		c, err := all.Get("SLO class", name)
		if err != nil {
			spec.at("clients").element(i).fail("slo_class", "%v; declare it under slo_classes", err)
		}
		used = append(used, c)
	}
	return used, spec.err
}
