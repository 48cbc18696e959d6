package gen

import (
	"math"

	"blis/pkg/dist"
	"blis/pkg/stream"
)

// Spec is a workload specification: who sends how many requests of which
// lengths. Times are µs, rates arrivals per second.
type Spec struct {
	// Version is "2".
	Version string `yaml:"version" json:"version"`
	// Seed is what everything is drawn from.
	Seed uint64 `yaml:"seed" json:"seed"`
	// Category is a label for people: language, multimodal, reasoning or agentic.
	Category string `yaml:"category" json:"category,omitempty"`
	// AggregateRate is how many requests or sessions arrive in a second, of all
	// clients together.
	AggregateRate float64 `yaml:"aggregate_rate" json:"aggregate_rate"`
	// Horizon bounds arrivals, in µs (at it they still count), Requests their number;
	// a session is one arrival. 0 is no bound; one of them must be given, unless all
	// arrivals are traces. Users of closed loops need Requests.
	Horizon  int64 `yaml:"horizon" json:"horizon,omitempty"`
	Requests int64 `yaml:"requests" json:"requests,omitempty"`
	// SLOClasses are classes that are not predefined, or have targets.
	SLOClasses []Class `yaml:"slo_classes" json:"slo_classes,omitempty"`
	// Clients are the sources of requests.
	Clients []Client `yaml:"clients" json:"clients"`
	// LoadProfile multiplies the rates of all clients but those of traces.
	LoadProfile *dist.Profile `yaml:"load_profile" json:"load_profile,omitempty"`
	// Correlations are those of the draws within each client.
	Correlations *Correlations `yaml:"correlations" json:"correlations,omitempty"`
	// dir is where the files are that the spec names.
	dir string
}

// Client is one source of requests, or of sessions of requests if it has one of
// the blocks Agentic, MultiTurn, Reasoning and ClosedLoop. It draws from random
// streams of its own, named after its ID: other clients neither move nor change
// its requests.
type Client struct {
	// ID names the client; its requests or sessions are ID/0, ID/1, ….
	ID string `yaml:"id" json:"id"`
	// TenantID, SLOClass and Model are those of its requests; absent, they have none,
	// and ask for the cluster's first model.
	TenantID string `yaml:"tenant_id" json:"tenant_id,omitempty"`
	SLOClass string `yaml:"slo_class" json:"slo_class,omitempty"`
	Model    string `yaml:"model" json:"model,omitempty"`
	// RateFraction is the client's part of Spec.AggregateRate. Fractions are not
	// normalized. A client whose arrivals are a trace, or users of a closed loop,
	// needs none.
	RateFraction float64 `yaml:"rate_fraction" json:"rate_fraction,omitempty"`
	// Arrival says how its requests or sessions follow each other, the first one gap
	// after 0.
	Arrival dist.Arrival `yaml:"arrival" json:"arrival,omitzero"`
	// LoadProfile multiplies its rate, as Spec.LoadProfile does: both together.
	LoadProfile *dist.Profile `yaml:"load_profile" json:"load_profile,omitempty"`
	// InputDistribution is of the whole prompt, shared prefix included; with
	// MultiTurn or Reasoning, of what comes behind the prefix. OutputDistribution is
	// of the answer. The steps of agents have their own.
	InputDistribution  dist.Spec `yaml:"input_distribution" json:"input_distribution,omitzero"`
	OutputDistribution dist.Spec `yaml:"output_distribution" json:"output_distribution,omitzero"`
	// PrefixSpec says which of its prompts begin alike.
	PrefixSpec *PrefixSpec `yaml:"prefix_spec" json:"prefix_spec,omitempty"`
	// Agentic, MultiTurn, Reasoning and ClosedLoop make sessions of what it sends. It
	// has one of them or none.
	Agentic    *Agentic    `yaml:"agentic" json:"agentic,omitempty"`
	MultiTurn  *MultiTurn  `yaml:"multi_turn" json:"multi_turn,omitempty"`
	Reasoning  *Reasoning  `yaml:"reasoning" json:"reasoning,omitempty"`
	ClosedLoop *ClosedLoop `yaml:"closed_loop" json:"closed_loop,omitempty"`
	// Multimodal is what its prompts hold beside text.
	Multimodal *Multimodal `yaml:"multimodal" json:"multimodal,omitempty"`
	// Deadline is how long after its arrival a request is aborted, in µs; of a
	// session, each of its calls.
	Deadline *dist.Spec `yaml:"deadline" json:"deadline,omitempty"`
	// PredictedOutput lets requests say how long their answers are believed to be;
	// absent, they do not.
	PredictedOutput *Prediction `yaml:"predicted_output" json:"predicted_output,omitempty"`
	// Behavior is what it does beside sending its requests, Archetype what it is like
	// where nothing else is said.
	Behavior  *Behavior  `yaml:"behavior" json:"behavior,omitempty"`
	Archetype *Archetype `yaml:"archetype" json:"archetype,omitempty"`
	latent    latent
}

// PrefixSpec says which prompts begin alike: either the listed groups, or
// NumPrefixGroups equally popular ones, of which client c's are named c.0, c.1, ….
type PrefixSpec struct {
	// PrefixGroups or NumPrefixGroups: one of them must be given.
	PrefixGroups    []PrefixGroup `yaml:"prefix_groups" json:"prefix_groups,omitempty"`
	NumPrefixGroups int64         `yaml:"num_prefix_groups" json:"num_prefix_groups,omitempty"`
	// PrefixLength is drawn once for each group.
	PrefixLength dist.Spec `yaml:"prefix_length" json:"prefix_length"`
	// ReuseProb is the probability that a prompt begins with a group's prefix at
	// all; absent, 1.
	ReuseProb float64 `yaml:"reuse_prob" json:"reuse_prob"`
	// reuseGiven says that ReuseProb is not the default.
	reuseGiven bool
}

// PrefixGroup is one shared prefix. Groups of the same id are the same, also
// in several clients.
type PrefixGroup struct {
	// GroupID names the prefix.
	GroupID string `yaml:"group_id" json:"group_id"`
	// Popularity is the group's weight among those of its client; absent, 1.
	Popularity float64 `yaml:"popularity" json:"popularity"`
}

// UnmarshalYAML decodes over the defaults of what is left out.
func (p *PrefixSpec) UnmarshalYAML(decode func(any) error) error {
	type plain PrefixSpec
	*p = PrefixSpec{ReuseProb: math.NaN()} // which no file can say
	if err := decode((*plain)(p)); err != nil {
		return err
	}
	if p.reuseGiven = !math.IsNaN(p.ReuseProb); !p.reuseGiven {
		p.ReuseProb = 1
	}
	return nil
}

// UnmarshalYAML decodes over the defaults of what is left out.
func (g *PrefixGroup) UnmarshalYAML(decode func(any) error) error {
	type plain PrefixGroup
	*g = PrefixGroup{Popularity: 1}
	return decode((*plain)(g))
}

// Class is an SLO class as specs declare it. One that has a predefined name
// takes from there what it leaves out.
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
