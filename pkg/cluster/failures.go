package cluster

import (
	"errors"
	"fmt"
	"slices"

	"blis/pkg/registry"
	"blis/pkg/scale"
	"blis/pkg/strictyaml"
)

// Failures are the failures of replicas: Events at given times, and random ones.
type Failures struct {
	Events []Failure       `yaml:"events" json:"events,omitempty"`
	Random *RandomFailures `yaml:"random" json:"random,omitempty"`
	// Restart applies to deployments that do not scale; policies.autoscale.actuation to the others.
	Restart scale.Restart `yaml:"restart" json:"restart"`
}

// Failure is a failure of one replica.
type Failure struct {
	// At is its time since the origin of the workload. Kind is down, slow (its steps take Factor times as long) or
	// partition (the router's snapshots of it do not change, while requests and probes reach it).
	At   scale.Duration `yaml:"at" json:"at"`
	Kind string         `yaml:"kind" json:"kind"`
	// Deployment may be left out if there is only one. A prefill pool has the id of its deployment with .prefill.
	Deployment string `yaml:"deployment" json:"deployment"`
	Replica    int    `yaml:"replica" json:"replica"`
	// For is how long it lasts, for one that is down until it begins to load; "" is for good.
	For    scale.Duration `yaml:"for" json:"for,omitempty"`
	Factor float64        `yaml:"factor" json:"factor,omitempty"`
	// Inflight says what happens to the requests that the replica has, and of those that are sent to it while it is
	// down: they fail, or go back to routing (redirect).
	Inflight string `yaml:"inflight" json:"inflight,omitempty"`
}

// RandomFailures are failures of the kind down, at random: a replica is ready for an exponentially
// distributed time of mean MTBF, and then down for one of mean MTTR until it begins to load.
type RandomFailures struct {
	// Deployments are those whose replicas fail; none are all of them. A prefill pool has the id of its deployment
	// with .prefill.
	Deployments []string `yaml:"deployments" json:"deployments,omitempty"`

	MTBF     scale.Duration `yaml:"mtbf" json:"mtbf"`
	MTTR     scale.Duration `yaml:"mttr" json:"mttr"`
	Inflight string         `yaml:"inflight" json:"inflight"`
}

// HealthCheck is the router's check of replicas: it probes each at the multiples of Interval. One that fails this many
// probes in a row is no candidate until one succeeds.
type HealthCheck struct {
	Interval scale.Duration `yaml:"interval" json:"interval"`
	Failures int            `yaml:"failures" json:"failures"`
}

// The kinds of Failure.
const (
	FailureDown      = "down"
	FailureSlow      = "slow"
	FailurePartition = "partition"
)

// The values of Inflight.
const (
	inflightFail     = "fail"
	inflightRedirect = "redirect"
)

var (
	failureKinds  = []string{FailureDown, FailureSlow, FailurePartition}
	inflightModes = []string{inflightFail, inflightRedirect}
)

const (
	failuresPath    = "failures"
	healthCheckPath = "control_plane.health_check"
)

// Redirects reports whether requests go back to routing.
func (f *Failure) Redirects() bool { return f.Inflight == inflightRedirect }

// Affects reports whether replicas of a deployment fail.
func (f *RandomFailures) Affects(deployment string) bool {
	return len(f.Deployments) == 0 || slices.Contains(f.Deployments, deployment)
}

// Redirects reports whether requests go back to routing.
func (f *RandomFailures) Redirects() bool { return f.Inflight == inflightRedirect }

// UnmarshalYAML decodes failures over the defaults.
func (f *Failures) UnmarshalYAML(decode func(any) error) error {
	type plain Failures
	*f = Failures{Restart: scale.DefaultRestart()}
	return decode((*plain)(f))
}

// UnmarshalYAML decodes over the defaults.
func (f *RandomFailures) UnmarshalYAML(decode func(any) error) error {
	type plain RandomFailures
	*f = RandomFailures{Inflight: inflightFail}
	return decode((*plain)(f))
}

// UnmarshalYAML decodes over the defaults.
func (h *HealthCheck) UnmarshalYAML(decode func(any) error) error {
	type plain HealthCheck
	*h = HealthCheck{Interval: "5s", Failures: 3}
	return decode((*plain)(h))
}

// Fails reports whether any replica may fail.
func (c *Config) Fails() bool {
	return c.Failures != nil && (len(c.Failures.Events) > 0 || c.Failures.Random != nil)
}

// RestartPlan returns how a replica of d comes back. d must be complete. An error is a *scale.Error.
func (c *Config) RestartPlan(d *Deployment) (*scale.Plan, error) {
	if c.Scales(d) {
		return c.ScalePlan(d)
	}
	return c.Failures.Restart.Plan(d.Computed.WeightBytes)
}

// completeFailures sets the values that are not set.
func (c *Config) completeFailures() {
	if c.Failures == nil {
		return
	}
	for i := range c.Failures.Events {
		f := &c.Failures.Events[i]
		if f.Deployment == "" && len(c.Deployments) == 1 {
			f.Deployment = c.Deployments[0].ID
		}
		if f.Inflight == "" && f.Kind == FailureDown {
			f.Inflight = inflightFail
		}
	}
}

// validateFailures checks failures and health checks. Deployments must be complete.
func (c *Config) validateFailures(errorf strictyaml.Errorf) error {
	if h := c.ControlPlane.HealthCheck; h != nil {
		us, err := h.Interval.Micros()
		switch {
		case err != nil:
			return errorf(healthCheckPath+".interval", "%v", err)
		case us == 0:
			return errorf(healthCheckPath+".interval", "must be above 0")
		case h.Failures < 1 || h.Failures > 1000:
			return errorf(healthCheckPath+".failures", "must be between 1 and 1000, is %d", h.Failures)
		}
	}
	if !c.Fails() {
		return nil
	}
	pools := c.Pools()
	for i, d := range pools {
		if len(d.KVTiers) > 1 { // such a deployment has one pool
			return errorf(deploymentPath(i)+".kv_tiers[1]", "is not supported where replicas fail")
		}
		if _, err := c.RestartPlan(d); err != nil {
			if invalid, ok := errors.AsType[*scale.Error](err); ok && !c.Scales(d) {
				return errorf(failuresPath+".restart."+invalid.Path, "%s", invalid.Msg)
			}
			return err
		}
	}
	for i := range c.Failures.Events {
		if err := c.validateFailure(&c.Failures.Events[i], pools, fmt.Sprintf("%s.events[%d]", failuresPath, i),
			errorf); err != nil {
			return err
		}
	}
	return c.Failures.Random.validate(poolIDs(pools), failuresPath+".random", errorf)
}

// poolIDs are the ids of deployments and their prefill pools.
func poolIDs(pools []*Deployment) []string {
	ids := make([]string, len(pools))
	for i, d := range pools {
		ids[i] = d.ID
	}
	return ids
}

// validateFailure checks one event.
func (c *Config) validateFailure(f *Failure, pools []*Deployment, path string, errorf strictyaml.Errorf) error {
	ids := poolIDs(pools)
	at := slices.Index(ids, f.Deployment)
	switch {
	case f.At == "":
		return errorf(path+".at", "must be set")
	case !slices.Contains(failureKinds, f.Kind):
		return errorf(path+".kind", "%v", registry.Unknown("kind", f.Kind, failureKinds))
	case f.Deployment == "":
		return errorf(path+".deployment", "must be set, since there are several deployments")
	case at < 0:
		return errorf(path+".deployment", "%v", registry.Unknown("deployment", f.Deployment, ids))
	case f.Kind == FailureDown && !slices.Contains(inflightModes, f.Inflight):
		return errorf(path+".inflight", "%v", registry.Unknown("choice", f.Inflight, inflightModes))
	case f.Kind != FailureDown && f.Inflight != "":
		return errorf(path+".inflight", "has no effect: only replicas that are down lose requests")
	case f.Kind == FailureSlow && !(f.Factor >= 1 && f.Factor <= 1000):
		return errorf(path+".factor", "must be between 1 and 1000, is %g", f.Factor)
	case f.Kind != FailureSlow && f.Factor != 0:
		return errorf(path+".factor", "has no effect: only replicas that are slow have one")
	case f.Kind == FailurePartition && f.For == "":
		return errorf(path+".for", "must be set for a partition")
	}
	if _, err := f.At.Micros(); err != nil {
		return errorf(path+".at", "%v", err)
	}
	if f.For != "" {
		if us, err := f.For.Micros(); err != nil {
			return errorf(path+".for", "%v", err)
		} else if us == 0 {
			return errorf(path+".for", "must be above 0; without it the replica does not come back")
		}
	}
	d := pools[at]
	if last := d.Replicas - 1; f.Replica < 0 || !c.Scales(d) && f.Replica > last {
		return errorf(path+".replica", "must be between 0 and %d, is %d", last, f.Replica)
	}
	return nil
}

// validate checks random failures; f may be nil.
func (f *RandomFailures) validate(pools []string, path string, errorf strictyaml.Errorf) error {
	if f == nil {
		return nil
	}
	for i, id := range f.Deployments {
		if !slices.Contains(pools, id) {
			return errorf(fmt.Sprintf("%s.deployments[%d]", path, i), "%v", registry.Unknown("deployment", id, pools))
		}
	}
	for _, mean := range []struct {
		name string
		time scale.Duration
	}{{".mtbf", f.MTBF}, {".mttr", f.MTTR}} {
		if mean.time == "" {
			return errorf(path+mean.name, "must be set")
		}
		us, err := mean.time.Micros()
		if err == nil && us < 1000 {
			err = fmt.Errorf("must be at least 1ms, is %s", mean.time)
		}
		if err != nil {
			return errorf(path+mean.name, "%v", err)
		}
	}
	if !slices.Contains(inflightModes, f.Inflight) {
		return errorf(path+".inflight", "%v", registry.Unknown("choice", f.Inflight, inflightModes))
	}
	return nil
}

// warnUnusedFailures reports failures and health checks without effect.
func (c *Config) warnUnusedFailures(report func(path, why string)) {
	if !c.Fails() {
		if c.Failures != nil {
			report(failuresPath, "it has no events and no random")
		}
		if c.ControlPlane.HealthCheck != nil {
			report(healthCheckPath, "there are no failures")
		}
	}
}
