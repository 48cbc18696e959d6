package cluster

import (
	"errors"

	"blis/pkg/scale"
	"blis/pkg/strictyaml"
)

const autoscalePath = "policies.autoscale"

// Scales reports whether the number of replicas of d changes.
func (c *Config) Scales(d *Deployment) bool { return c.Policies.Autoscale != nil && d.MaxReplicas > 0 }

// ScalePlan returns how the number of replicas of d changes. d must be complete. An error is a *scale.Error.
func (c *Config) ScalePlan(d *Deployment) (*scale.Plan, error) {
	return c.Policies.Autoscale.Plan(*d.MinReplicas, d.MaxReplicas, d.Computed.WeightBytes)
}

// completeBounds sets the lower bounds that are not set.
func (c *Config) completeBounds() {
	one := func(most int, least **int) {
		if most > 0 && *least == nil {
			*least = new(int)
			**least = 1
		}
	}
	for i := range c.Deployments {
		d := &c.Deployments[i]
		one(d.MaxReplicas, &d.MinReplicas)
		if d.Prefill != nil {
			one(d.Prefill.MaxReplicas, &d.Prefill.MinReplicas)
		}
	}
}

// validateBounds checks the bounds of the number of replicas.
func (d *Deployment) validateBounds(path string, errorf strictyaml.Errorf) error {
	switch {
	case d.MaxReplicas == 0 && d.MinReplicas == nil:
		return nil
	case d.MaxReplicas == 0:
		return errorf(path+".min_replicas", "has no effect without max_replicas")
	case d.MaxReplicas < d.Replicas || d.MaxReplicas > maxReplicas:
		return errorf(path+".max_replicas", "must be between replicas, %d, and %d, is %d", d.Replicas, maxReplicas,
			d.MaxReplicas)
	case d.MinReplicas != nil && (*d.MinReplicas < 0 || *d.MinReplicas > d.Replicas):
		return errorf(path+".min_replicas", "must be between 0 and replicas, %d, is %d", d.Replicas, *d.MinReplicas)
	}
	return nil
}

// validateScaling checks policies.autoscale for all deployments, which must be complete.
func (c *Config) validateScaling(errorf strictyaml.Errorf) error {
	for i := range c.Deployments {
		if err := c.Deployments[i].eachPool(deploymentPath(i), func(d *Deployment, at string) error {
			return c.validateScalingOf(d, at, errorf)
		}); err != nil {
			return err
		}
	}
	return nil
}

// validateScalingOf checks it for a pool at a path.
func (c *Config) validateScalingOf(d *Deployment, at string, errorf strictyaml.Errorf) error {
	switch {
	case !c.Scales(d):
		return nil
	case *d.MinReplicas == 0 && c.ControlPlane.FlowControl == nil:
		return errorf(at+".min_replicas", "0 needs control_plane.flow_control, where requests wait for a replica")
	}
	_, err := c.ScalePlan(d)
	if invalid, ok := errors.AsType[*scale.Error](err); ok {
		return errorf(autoscalePath+"."+invalid.Path, "%s", invalid.Msg)
	}
	return nil
}

// warnUnusedScaling reports bounds and a policy that have no effect.
func (c *Config) warnUnusedScaling(report func(path, why string)) {
	used := false
	for _, d := range c.Pools() {
		if used = used || c.Scales(d); d.MaxReplicas > 0 && !c.Scales(d) {
			report("deployments."+d.ID+".max_replicas", "there is no policies.autoscale")
		}
	}
	if c.Policies.Autoscale != nil && !used {
		report(autoscalePath, "no deployment has a max_replicas")
	}
}
