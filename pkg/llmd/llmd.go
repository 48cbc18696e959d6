// Package llmd reads and writes the configuration of llm-d's router, an EndpointPickerConfig: the plugins of a
// scheduling profile, an admission plugin and flow control. The types are those of llm-d-router v0.10.0
// (apix/config/v1alpha1).
package llmd

import (
	"blis/pkg/policy"
	"blis/pkg/strictyaml"
)

// Router is what is simulated of a configuration.
type Router struct {
	// Routing has the type llm-d.
	Routing policy.Spec
	// Admission is nil if every request is admitted.
	Admission *policy.Spec
	// Flow is nil without flow control.
	Flow *Flow
}

// Flow is flow control. All priority bands have the same policies.
type Flow struct {
	// Order and Fairness are plugins.
	Order, Fairness string
	// Capacity is the maximum of queued requests, 0 unlimited; TTLUS the longest wait, 0 unlimited.
	Capacity int
	TTLUS    int64
	Detector policy.Spec
	// UsageLimit is nil for llm-d's default, a saturation of 1 for all bands.
	UsageLimit *policy.Spec
}

// The defaults of llm-d, and the names of what a configuration refers to.
const (
	routingType      = "llm-d" // in a policy bundle
	kind             = "EndpointPickerConfig"
	apiVersion       = "llm-d.ai/v1alpha1"
	flowControlGate  = "flowControl"
	defaultOrder     = "fcfs-ordering-policy"
	defaultFairness  = "global-strict-fairness-policy"
	defaultDetector  = "utilization-detector"
	defaultTTLUS     = 60e6
	prefixScorer     = "prefix-cache-scorer"
	preciseScorer    = "precise-prefix-cache-scorer"
	preciseProducer  = "precise-prefix-cache-producer"
	prefixProducer   = "approx-prefix-cache-producer"
	producerOfScorer = "prefixMatchInfoProducerName"
	pickerMaximum    = "maxNumOfEndpoints"
	decodeFilter     = "decode-filter"
)

// IsConfig reports whether a document has a kind, as EndpointPickerConfigs have and policy bundles have not.
func IsConfig(doc *strictyaml.Doc) bool { return doc.Has("kind") }

// config is an EndpointPickerConfig. Parts of type any are not simulated.
type config struct {
	APIVersion         string    `yaml:"apiVersion"`
	Kind               string    `yaml:"kind"`
	Metadata           any       `yaml:"metadata"`
	FeatureGates       []string  `yaml:"featureGates"`
	Plugins            []plugin  `yaml:"plugins"`
	SchedulingProfiles []profile `yaml:"schedulingProfiles"`
	DataLayer          any       `yaml:"dataLayer"`
	FlowControl        *flow     `yaml:"flowControl"`
	RequestHandler     any       `yaml:"requestHandler"`
	Parser             any       `yaml:"parser"`
	// SaturationDetector is the older place of that of FlowControl.
	SaturationDetector *reference `yaml:"saturationDetector"`
}

type plugin struct {
	Name       string         `yaml:"name"`
	Type       string         `yaml:"type"`
	Parameters map[string]any `yaml:"parameters"`
}

type profile struct {
	Name    string          `yaml:"name"`
	Plugins []profilePlugin `yaml:"plugins"`
}

type profilePlugin struct {
	PluginRef string   `yaml:"pluginRef"`
	Weight    *float64 `yaml:"weight"`
}

type reference struct {
	PluginRef string `yaml:"pluginRef"`
}

type flow struct {
	MaxBytes                    string     `yaml:"maxBytes"`
	MaxRequests                 string     `yaml:"maxRequests"`
	DefaultRequestTTL           string     `yaml:"defaultRequestTTL"`
	NoEndpointRequestTTL        string     `yaml:"noEndpointRequestTTL"`
	DefaultPriorityBand         *band      `yaml:"defaultPriorityBand"`
	DefaultNegativePriorityBand *band      `yaml:"defaultNegativePriorityBand"`
	PriorityBands               []band     `yaml:"priorityBands"`
	UsageLimitPolicyPluginRef   string     `yaml:"usageLimitPolicyPluginRef"`
	SaturationDetector          *reference `yaml:"saturationDetector"`
	EnableEviction              bool       `yaml:"enableEviction"`
}

type band struct {
	Priority          int    `yaml:"priority"`
	MaxBytes          string `yaml:"maxBytes"`
	MaxRequests       string `yaml:"maxRequests"`
	FairnessPolicyRef string `yaml:"fairnessPolicyRef"`
	OrderingPolicyRef string `yaml:"orderingPolicyRef"`
}
