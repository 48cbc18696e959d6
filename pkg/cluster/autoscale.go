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

// PerGPUHour is the price of a GPU of d for an hour, 0 if there is none.
func (c *Config) PerGPUHour(d *Deployment) float64 {
	switch {
	case d.Cost != nil:
		return d.Cost.PerGPUHour
	case c.Scales(d):
		return c.Policies.Autoscale.Cost.PerGPUHour
	}
	return 0
}

// Fleet returns the positions of the deployments that scale together with deployment i, itself among them, in the
// order of the file. Without policies.autoscale.fleet each scales on its own.
func (c *Config) Fleet(i int) (members []int) {
	for k := range c.Deployments {
		d := &c.Deployments[k]
		if k == i || c.Scales(&c.Deployments[i]) && c.Policies.Autoscale.Fleet != nil && c.Scales(d) &&
			d.Model == c.Deployments[i].Model {
			members = append(members, k)
		}
	}
	return members
}

// DividesCost reports whether the cost is divided by deployment: one has a price of its own, or several scale
// together.
func (c *Config) DividesCost() bool {
	for i := range c.Deployments {
		if c.Deployments[i].Cost != nil || len(c.Fleet(i)) > 1 {
			return true
		}
	}
	return false
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

// validateBounds checks the bounds of the number of replicas, and the price.
func (d *Deployment) validateBounds(path string, errorf strictyaml.Errorf) error {
	switch {
	case d.Cost != nil && !(d.Cost.PerGPUHour >= 0 && d.Cost.PerGPUHour <= scale.MaxPrice):
		return errorf(path+".cost.per_gpu_hour", "must be between 0 and %g, is %g", float64(scale.MaxPrice),
			d.Cost.PerGPUHour)
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
	return c.validateFleets(errorf)
}

// validateFleets checks the deployments that scale together.
func (c *Config) validateFleets(errorf strictyaml.Errorf) error {
	if c.Policies.Autoscale == nil || c.Policies.Autoscale.Fleet == nil {
		return nil
	}
	plane, err := c.Plane(func(string) uint64 { return 0 })
	if err != nil {
		return err
	}
	for i := range c.Deployments {
		d := &c.Deployments[i]
		switch {
		case len(c.Fleet(i)) < 2:
		case d.Disaggregates():
			return errorf(deploymentPath(i)+".architecture", "a deployment with pools cannot scale together with "+
				"others; remove policies.autoscale.fleet")
		case plane.PredictsLoad():
			return errorf(autoscalePath+".fleet", "predicted-load divides by the capacity of one kind of "+
				"replica; remove it, and each deployment scales on its own")
		case plane.Placement.ReadsPrice() && c.PerGPUHour(d) == 0:
			return errorf(deploymentPath(i)+".cost", "policies.autoscale.fleet reads deployment.price; set "+
				"cost.per_gpu_hour")
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
	used, together := false, false
	for i := range c.Deployments {
		together = together || len(c.Fleet(i)) > 1
	}
	for _, d := range c.Pools() {
		if used = used || c.Scales(d); d.MaxReplicas > 0 && !c.Scales(d) {
			report("deployments."+d.ID+".max_replicas", "there is no policies.autoscale")
		}
	}
	if c.Policies.Autoscale != nil && !used {
		report(autoscalePath, "no deployment has a max_replicas")
	}
	if used && c.Policies.Autoscale.Fleet != nil && !together {
		report(autoscalePath+".fleet", "no model has two deployments with a max_replicas")
	}
}
