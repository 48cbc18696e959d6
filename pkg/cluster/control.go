package cluster

import (
	"fmt"
	"strings"
	"time"

	"blis/pkg/policy"
	"blis/pkg/registry"
)

// ControlPlane is what the control plane itself takes, in µs, and remembers.
type ControlPlane struct {
	AdmissionLatencyUS int64 `yaml:"admission_latency_us" json:"admission_latency_us"`
	RoutingLatencyUS   int64 `yaml:"routing_latency_us" json:"routing_latency_us"`
	// MaxDelays is how often admission may delay a request; once more, and it has
	// timed out.
	MaxDelays int `yaml:"max_delays" json:"max_delays"`
	// ShadowBlocks is how many prompt blocks the router remembers of each replica.
	// With ShadowEvictions it forgets what replicas report to have evicted,
	// ShadowLagUS after that.
	ShadowBlocks    int   `yaml:"shadow_blocks" json:"shadow_blocks"`
	ShadowEvictions bool  `yaml:"shadow_evictions" json:"shadow_evictions"`
	ShadowLagUS     int64 `yaml:"shadow_lag_us" json:"shadow_lag_us"`
	// Snapshots says how old what policies see of replicas may be.
	Snapshots Snapshots `yaml:"snapshots" json:"snapshots"`
	// FlowControl is a queue in front of routing; nil is none.
	FlowControl *FlowControl `yaml:"flow_control" json:"flow_control,omitempty"`
}

// defaultControlPlane is what a file leaves out.
func defaultControlPlane() ControlPlane {
	return ControlPlane{MaxDelays: 100, ShadowBlocks: policy.ShadowBlocks}
}

// UnmarshalYAML decodes over the defaults of what is left out.
func (p *ControlPlane) UnmarshalYAML(decode func(any) error) error {
	type plain ControlPlane
	*p = defaultControlPlane()
	return decode((*plain)(p))
}

// Snapshots says for each field of a replica's snapshot when it is read; Default
// is for those that are not given.
type Snapshots struct {
	Default    Refresh `yaml:"default" json:"default,omitempty"`
	QueueDepth Refresh `yaml:"queue_depth" json:"queue_depth"`
	Running    Refresh `yaml:"running" json:"running"`
	// KVUtil is also of free_blocks.
	KVUtil       Refresh `yaml:"kv_util" json:"kv_util"`
	HitRate      Refresh `yaml:"hit_rate" json:"hit_rate"`
	RecentTTFTMS Refresh `yaml:"recent_ttft_ms" json:"recent_ttft_ms"`
	RecentTPOTMS Refresh `yaml:"recent_tpot_ms" json:"recent_tpot_ms"`
	EstWaitMS    Refresh `yaml:"est_wait_ms" json:"est_wait_ms"`
	// Cache is the content of the block cache, which precise-prefix looks at.
	Cache Refresh `yaml:"cache" json:"cache"`
}

// Refresh is when a field is read: "immediate", always as it is; "periodic
// 50ms", at the multiples of that time; "on-demand 50ms", when a policy looks at
// it and it is older than that.
type Refresh string

// Mode of a Refresh.
type Mode string

// The modes.
const (
	Immediate Mode = "immediate"
	Periodic  Mode = "periodic"
	OnDemand  Mode = "on-demand"
)

// Parse returns the mode and its time in µs.
func (r Refresh) Parse() (mode Mode, us int64, err error) {
	word, interval, timed := strings.Cut(strings.TrimSpace(string(r)), " ")
	switch Mode(word) {
	case Immediate:
		if !timed {
			return Immediate, 0, nil
		}
	case Periodic, OnDemand:
		d, err := time.ParseDuration(strings.TrimSpace(interval))
		if err == nil && d > 0 && d%time.Microsecond == 0 && d.Microseconds() <= maxLatencyUS {
			return Mode(word), d.Microseconds(), nil
		}
	}
	return "", 0, fmt.Errorf(`must be immediate, periodic or on-demand with a time of whole µs ("periodic 50ms"), is %q`, r)
}

// Fields are the fields' own, in the order of policy.Field.
func (s *Snapshots) Fields() [policy.Fields]*Refresh {
	return [policy.Fields]*Refresh{&s.QueueDepth, &s.Running, &s.KVUtil, &s.HitRate, &s.RecentTTFTMS, &s.RecentTPOTMS, &s.EstWaitMS, &s.Cache}
}

// Fill gives the fields that are not given the default, or else what a load
// balancer has: load as it is, statistics a little late.
func (s *Snapshots) Fill() {
	for f, r := range s.Fields() {
		switch {
		case *r != "":
		case s.Default != "":
			*r = s.Default
		case policy.Field(f) == policy.FieldHitRate:
			*r = "periodic 10ms"
		case policy.Field(f) == policy.FieldRecentTTFT, policy.Field(f) == policy.FieldRecentTPOT:
			*r = "periodic 100ms"
		default:
			*r = Refresh(Immediate)
		}
	}
}

// FlowControl is a queue that requests wait in, after admission, while the
// replicas of their model are saturated.
type FlowControl struct {
	// Order is fifo, priority (highest first) or deadline (earliest first).
	Order string `yaml:"order" json:"order"`
	// Fairness is none, or round-robin: tenants in turn, each in Order.
	Fairness string `yaml:"fairness" json:"fairness"`
	// Capacity is how many may wait for a model, 0 any number; one more is rejected.
	Capacity int `yaml:"capacity" json:"capacity"`
	// TTLUS is how long one may wait before it has timed out, 0 for ever.
	TTLUS int64 `yaml:"ttl_us" json:"ttl_us"`
	// Saturation is from where on nothing is dispatched, see the signal
	// cluster.saturation.
	Saturation float64 `yaml:"saturation" json:"saturation"`
}

// UnmarshalYAML decodes over the defaults of what is left out.
func (f *FlowControl) UnmarshalYAML(decode func(any) error) error {
	type plain FlowControl
	*f = FlowControl{Order: "fifo", Fairness: "none", Saturation: 1}
	return decode((*plain)(f))
}

// Choices of flow control.
var (
	orders     = registry.Table[struct{}]{{Name: "fifo", Doc: "as they came"}, {Name: "priority", Doc: "the highest priority first"}, {Name: "deadline", Doc: "the earliest deadline first"}}
	fairnesses = registry.Table[struct{}]{{Name: "none", Doc: "one queue"}, {Name: "round-robin", Doc: "tenants in turn"}}
)

func (p *ControlPlane) validate(fault fault) error {
	for _, v := range []struct {
		name            string
		value, min, max int64
	}{
		{"admission_latency_us", p.AdmissionLatencyUS, 0, maxLatencyUS},
		{"routing_latency_us", p.RoutingLatencyUS, 0, maxLatencyUS},
		{"max_delays", int64(p.MaxDelays), 0, maxCacheTokens},
		{"shadow_blocks", int64(p.ShadowBlocks), 1, maxCacheTokens},
		{"shadow_lag_us", p.ShadowLagUS, 0, maxLatencyUS},
	} {
		if v.value < v.min || v.value > v.max {
			return fault("control_plane."+v.name, "must be between %d and %d, is %d", v.min, v.max, v.value)
		}
	}
	if p.ShadowLagUS > 0 && !p.ShadowEvictions {
		return fault("control_plane.shadow_lag_us", "has no effect without shadow_evictions: true")
	}
	if d := p.Snapshots.Default; d != "" {
		if _, _, err := d.Parse(); err != nil {
			return fault("control_plane.snapshots.default", "%v", err)
		}
	}
	for f, r := range p.Snapshots.Fields() {
		if _, _, err := r.Parse(); err != nil {
			return fault("control_plane.snapshots."+policy.FieldNames[f], "%v", err)
		}
	}
	if p.FlowControl == nil {
		return nil
	}
	return p.FlowControl.validate("control_plane.flow_control", fault)
}

func (f *FlowControl) validate(path string, fault fault) error {
	if _, err := orders.Get("order", f.Order); err != nil {
		return fault(path+".order", "%v", err)
	}
	if _, err := fairnesses.Get("fairness", f.Fairness); err != nil {
		return fault(path+".fairness", "%v", err)
	}
	switch {
	case f.Capacity < 0 || f.Capacity > maxCacheTokens:
		return fault(path+".capacity", "must be between 0 (any number) and %d, is %d", maxCacheTokens, f.Capacity)
	case f.TTLUS < 0 || f.TTLUS > maxLatencyUS:
		return fault(path+".ttl_us", "must be between 0 (for ever) and %d, is %d", int64(maxLatencyUS), f.TTLUS)
	case !(f.Saturation > 0) || f.Saturation > 1e6:
		return fault(path+".saturation", "must be above 0 and at most 1e6, is %g", f.Saturation)
	}
	return nil
}
