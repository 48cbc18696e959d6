package cluster

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"blis/pkg/policy"
	"blis/pkg/registry"
	"blis/pkg/strictyaml"
)

// ControlPlane configures the control plane: its latencies, in µs, and its state.
type ControlPlane struct {
	AdmissionLatencyUS int64 `yaml:"admission_latency_us" json:"admission_latency_us"`
	RoutingLatencyUS   int64 `yaml:"routing_latency_us" json:"routing_latency_us"`
	// MaxDelays is how often admission may delay a request before it times out.
	MaxDelays int `yaml:"max_delays" json:"max_delays"`
	// ShadowBlocks is how many prompt blocks the router remembers of each replica.
	// With ShadowEvictions it removes the blocks that replicas report as evicted,
	// ShadowLagUS after the eviction.
	ShadowBlocks    int   `yaml:"shadow_blocks" json:"shadow_blocks"`
	ShadowEvictions bool  `yaml:"shadow_evictions" json:"shadow_evictions"`
	ShadowLagUS     int64 `yaml:"shadow_lag_us" json:"shadow_lag_us"`
	// Snapshots says how stale the replica state that policies see may be.
	Snapshots Snapshots `yaml:"snapshots" json:"snapshots"`
	// FlowControl is a queue in front of routing; nil disables it.
	FlowControl *FlowControl `yaml:"flow_control" json:"flow_control,omitempty"`
	// HealthCheck finds replicas that are down; nil disables it.
	HealthCheck *HealthCheck `yaml:"health_check" json:"health_check,omitempty"`
}

// defaultControlPlane returns the defaults of a file.
func defaultControlPlane() ControlPlane {
	return ControlPlane{MaxDelays: 100, ShadowBlocks: policy.ShadowBlocks}
}

// UnmarshalYAML decodes over the defaults.
func (p *ControlPlane) UnmarshalYAML(decode func(any) error) error {
	type plain ControlPlane
	*p = defaultControlPlane()
	return decode((*plain)(p))
}

// Snapshots says for each field of a replica's snapshot when it is refreshed;
// Default applies to fields that are not set.
type Snapshots struct {
	Default    Refresh `yaml:"default" json:"default,omitempty"`
	QueueDepth Refresh `yaml:"queue_depth" json:"queue_depth"`
	Running    Refresh `yaml:"running" json:"running"`
	// KVUtil also applies to free_blocks.
	KVUtil       Refresh `yaml:"kv_util" json:"kv_util"`
	HitRate      Refresh `yaml:"hit_rate" json:"hit_rate"`
	RecentTTFTMS Refresh `yaml:"recent_ttft_ms" json:"recent_ttft_ms"`
	RecentTPOTMS Refresh `yaml:"recent_tpot_ms" json:"recent_tpot_ms"`
	EstWaitMS    Refresh `yaml:"est_wait_ms" json:"est_wait_ms"`
	// Cache is the content of the block cache and the KV tiers, which precise-prefix and tiered-prefix read.
	Cache Refresh `yaml:"cache" json:"cache"`
	// KVUtilCPU also applies to loading. It is not set without kv_tiers.
	KVUtilCPU Refresh `yaml:"kv_util_cpu" json:"kv_util_cpu,omitempty"`
}

// Refresh says when a field is refreshed: "immediate", always up to date; "periodic 50ms", at the
// multiples of that time; "on-demand 50ms", when a policy reads it and it is older than that.
type Refresh string

// Mode is the mode of a Refresh.
type Mode string

// The modes of a Refresh.
const (
	immediate Mode = "immediate"
	Periodic  Mode = "periodic"
	OnDemand  Mode = "on-demand"
)

// Parse returns the mode and its time in µs. A field that is not set is immediate.
func (r Refresh) Parse() (mode Mode, us int64, err error) {
	word, interval, timed := strings.Cut(strings.TrimSpace(string(r)), " ")
	switch Mode(word) {
	case immediate, "":
		if !timed {
			return immediate, 0, nil
		}
	case Periodic, OnDemand:
		d, err := time.ParseDuration(strings.TrimSpace(interval))
		if err == nil && d > 0 && d%time.Microsecond == 0 && d.Microseconds() <= maxLatencyUS {
			return Mode(word), d.Microseconds(), nil
		}
	}
	const want = `must be immediate, or periodic or on-demand with a time in whole µs ("periodic 50ms")`
	return "", 0, fmt.Errorf("%s, is %q", want, r)
}

// Fields returns the refreshes of the fields in the order of policy.Field.
func (s *Snapshots) Fields() [policy.Fields]*Refresh {
	return [policy.Fields]*Refresh{&s.QueueDepth, &s.Running, &s.KVUtil, &s.HitRate,
		&s.RecentTTFTMS, &s.RecentTPOTMS, &s.EstWaitMS, &s.Cache, &s.KVUtilCPU}
}

// SetDefaults sets the fields that are not set to Default or, without one, to what a
// load balancer has: current load and slightly stale statistics. The field of tiers stays unset if there are none.
func (s *Snapshots) SetDefaults(tiers bool) {
	for f, r := range s.Fields() {
		switch {
		case *r != "", policy.Field(f) == policy.FieldTier && !tiers:
		case s.Default != "":
			*r = s.Default
		case policy.Field(f) == policy.FieldHitRate:
			*r = "periodic 10ms"
		case policy.Field(f) == policy.FieldRecentTTFT, policy.Field(f) == policy.FieldRecentTPOT:
			*r = "periodic 100ms"
		default:
			*r = Refresh(immediate)
		}
	}
}

// FlowControl is a queue after admission in which requests wait while the replicas
// of their model are saturated.
type FlowControl struct {
	// Order is fifo, priority (highest first) or deadline (earliest first), or
	// an ordering policy of llm-d (policy.FlowOrders).
	Order string `yaml:"order" json:"order"`
	// Fairness is none, or round-robin: tenants take turns, each in Order; or a
	// fairness policy of llm-d (policy.Fairnesses).
	Fairness string `yaml:"fairness" json:"fairness"`
	// PriorityBands lets no request pass before those of a higher priority, as llm-d does.
	PriorityBands bool `yaml:"priority_bands" json:"priority_bands"`
	// Capacity is the queue limit for a model, 0 unlimited; further requests are rejected.
	Capacity int `yaml:"capacity" json:"capacity"`
	// TTLUS is the maximum wait before a request times out, 0 unlimited.
	TTLUS int64 `yaml:"ttl_us" json:"ttl_us"`
	// Saturation is the value from which on nothing is dispatched, of the signal
	// cluster.saturation or of the Detector. UsageLimit sets it for each priority.
	Saturation float64 `yaml:"saturation" json:"saturation"`
	// Detector is a saturation detector of llm-d, nil for the signal; UsageLimit is a
	// usage limit policy of llm-d, nil for Saturation.
	Detector   *policy.Spec `yaml:"detector"    json:"detector,omitempty"`
	UsageLimit *policy.Spec `yaml:"usage_limit" json:"usage_limit,omitempty"`
}

// Queue returns the order in which requests leave.
func (f *FlowControl) Queue() policy.FlowConfig {
	return policy.FlowConfig{Order: f.Order, Fairness: f.Fairness, Bands: f.PriorityBands, TTLUS: f.TTLUS}
}

// Gate returns the rule by which requests leave, and its parameters without effect.
func (f *FlowControl) Gate() (*policy.Gate, []policy.Unused, error) {
	return policy.NewGate(f.gateConfig())
}

func (f *FlowControl) gateConfig() policy.GateConfig {
	return policy.GateConfig{Detector: f.Detector, UsageLimit: f.UsageLimit, Threshold: f.Saturation}
}

// UnmarshalYAML decodes over the defaults.
func (f *FlowControl) UnmarshalYAML(decode func(any) error) error {
	type plain FlowControl
	*f = FlowControl{Order: "fifo", Fairness: "none", Saturation: 1}
	return decode((*plain)(f))
}

func (p *ControlPlane) validate(errorf strictyaml.Errorf) error {
	between := strictyaml.Between[int64](errorf, "control_plane.")
	if err := cmp.Or(
		between("admission_latency_us", p.AdmissionLatencyUS, 0, maxLatencyUS),
		between("routing_latency_us", p.RoutingLatencyUS, 0, maxLatencyUS),
		between("max_delays", int64(p.MaxDelays), 0, maxCacheTokens),
		between("shadow_blocks", int64(p.ShadowBlocks), 1, maxCacheTokens),
		between("shadow_lag_us", p.ShadowLagUS, 0, maxLatencyUS),
	); err != nil {
		return err
	}
	if p.ShadowLagUS > 0 && !p.ShadowEvictions {
		return errorf("control_plane.shadow_lag_us", "has no effect without shadow_evictions: true")
	}
	if d := p.Snapshots.Default; d != "" {
		if _, _, err := d.Parse(); err != nil {
			return errorf("control_plane.snapshots.default", "%v", err)
		}
	}
	for f, r := range p.Snapshots.Fields() {
		if _, _, err := r.Parse(); err != nil {
			return errorf("control_plane.snapshots."+policy.FieldNames[f], "%v", err)
		}
	}
	if p.FlowControl == nil {
		return nil
	}
	return p.FlowControl.validate(flowControlPath, errorf)
}

const flowControlPath = "control_plane.flow_control"

func (f *FlowControl) validate(path string, errorf strictyaml.Errorf) error {
	switch {
	case !slices.Contains(policy.FlowOrders, f.Order):
		return errorf(path+".order", "%v", registry.Unknown("order", f.Order, policy.FlowOrders))
	case !slices.Contains(policy.Fairnesses, f.Fairness):
		return errorf(path+".fairness", "%v", registry.Unknown("fairness", f.Fairness, policy.Fairnesses))
	case f.Capacity < 0 || f.Capacity > maxCacheTokens:
		return errorf(path+".capacity", "must be between 0 (unlimited) and %d, is %d", maxCacheTokens, f.Capacity)
	case f.TTLUS < 0 || f.TTLUS > maxLatencyUS:
		return errorf(path+".ttl_us", "must be between 0 (unlimited) and %d, is %d", int64(maxLatencyUS), f.TTLUS)
	case !(f.Saturation > 0) || f.Saturation > 1e6:
		return errorf(path+".saturation", "must be above 0 and at most 1e6, is %g", f.Saturation)
	}
	if _, _, err := f.Gate(); err != nil {
		var invalid *policy.Error
		if errors.As(err, &invalid) {
			return errorf(path+"."+invalid.Path, "%s", invalid.Msg)
		}
		return err
	}
	return nil
}

// warnUnused reports settings without effect.
func (f *FlowControl) warnUnused(report func(path, why string)) {
	_, unused, err := f.Gate()
	if err != nil {
		return // it is reported elsewhere
	}
	for _, u := range unused {
		report(flowControlPath+"."+u.Path, u.Reason)
	}
	if f.UsageLimit == nil {
		return
	}
	if f.Saturation != 1 {
		report(flowControlPath+".saturation", "usage_limit sets it")
	}
	if !f.PriorityBands && f.UsageLimit.Type != "static-usage-limit-policy" {
		report(flowControlPath+".usage_limit", "without priority_bands all requests have one limit")
	}
}

// warnUnused reports settings of the control plane and its policies that differ
// from the default and have no effect.
func (c *Config) warnUnused(plane *policy.Plane, warn func(string)) {
	report := func(path, why string) { warn(path + " has no effect: " + why) }
	flow := c.ControlPlane.FlowControl
	byPriority := flow != nil && (flow.Order == "priority" || flow.PriorityBands)
	for _, unused := range plane.Unused {
		if unused.Path != policy.PriorityPath || !byPriority {
			report("policies."+unused.Path, unused.Reason)
		}
	}
	if policy.IsConstant(plane.Priority) {
		const why = "every request has priority 0; set another priority policy"
		if byPriority {
			report("control_plane.flow_control.order", why)
		}
		for i := range c.Deployments {
			if d := &c.Deployments[i]; d.KVOffload != nil && d.KVOffload.Eviction == "priority" {
				report("deployments."+d.ID+".kv_offload.eviction", why)
			}
		}
	}
	c.warnUnusedDeciders(report)
	c.warnUnusedScaling(report)
	c.warnUnusedFailures(report)
	p := &c.ControlPlane
	if p.MaxDelays != defaultControlPlane().MaxDelays && !plane.Delays {
		report("control_plane.max_delays", "admission never delays")
	}
	needs := plane.Needs()
	if flow != nil {
		flow.warnUnused(report)
		if g, _, err := flow.Gate(); err == nil {
			needs |= g.Needs()
		}
	}
	if needs&policy.NeedTier != 0 && !c.HasTiers() {
		warn("policies read kv_util_cpu or loading, which are 0: no deployment has kv_tiers")
	}
	if needs&policy.NeedTierBlocks != 0 && !c.HasTiers() {
		warn("the scorer tiered-prefix finds blocks in caches only: no deployment has kv_tiers")
	}
	if needs&policy.NeedShadow == 0 {
		const why = "no policy uses the router's shadow of prefixes"
		if p.ShadowBlocks != defaultControlPlane().ShadowBlocks {
			report("control_plane.shadow_blocks", why)
		}
		if p.ShadowEvictions {
			report("control_plane.shadow_evictions", why)
		}
	}
	p.Snapshots.warnUnused(needs, report)
}

// warnUnusedVictimRules reports rules about victims of preemption that are set and never apply. The
// configuration must be complete: values that follow from the engine's version are not set.
func (c *Config) warnUnusedVictimRules(warn func(string)) {
	if c.Policies.Preemption.Type != "last-in" {
		return
	}
	for i := range c.Deployments {
		for _, name := range []string{"engine.after_self_preemption", "engine.idle_victim_skips_next"} {
			if d := &c.Deployments[i]; !d.isDerived(name) {
				warn("deployments." + d.ID + "." + name +
					" has no effect: policies.preemption is last-in, which never preempts an earlier request")
			}
		}
	}
}

// warnUnused reports fields that no policy reads and a default that no field uses.
func (s *Snapshots) warnUnused(needs policy.Needs, warn func(path, why string)) {
	var plain Snapshots
	plain.SetDefaults(true)
	defaultUsed := false // whether a field that is read uses Default
	for f, refresh := range s.Fields() {
		switch r := *refresh; {
		case r == "":
		case r == s.Default:
			defaultUsed = defaultUsed || needs.Has(policy.Field(f))
		case r != *plain.Fields()[f] && !needs.Has(policy.Field(f)):
			warn("control_plane.snapshots."+policy.FieldNames[f], "no policy reads it")
		}
	}
	if s.Default != "" && !defaultUsed {
		warn("control_plane.snapshots.default", "no policy reads a field that uses it")
	}
}
