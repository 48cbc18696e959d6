package attribution

import (
	"math"
	"time"
)

// soonHealthCheck notices a failure within one second.
var soonHealthCheck = map[string]any{"interval": "1s", "failures": 1}

// soonUS is from when on a health check takes long to notice a failure.
const soonUS = 2_000_000

// soonerHealthCheck proposes a health check, or a faster one where it takes long.
func (x *proposal) soonerHealthCheck() []Change {
	const at = "control_plane.health_check"
	if x.config(at) != nil {
		interval, _ := x.config(at + ".interval").(string)
		d, err := time.ParseDuration(interval)
		if err == nil && float64(d.Microseconds())*x.number(at+".failures") <= soonUS {
			return nil
		}
	}
	return []Change{x.set(at, soonHealthCheck)}
}

// keepReplicas proposes as many replicas from the beginning as served or were being started at most, or as may be
// started if these were too few.
func (x *proposal) keepReplicas() []Change {
	d := x.deployment()
	if d.MaxReplicas == 0 {
		return nil
	}
	most, full := int32(1), int32(0)
	for _, r := range x.requests {
		if r.replica != missing && x.topology.replicas[r.replica].deployment == d.ID {
			n := r.evidence.fleet
			most = max(most, n.serving+n.starting, n.later)
			if r.lost() && r.allReplicasFull() {
				full = max(full, n.serving+n.starting)
			}
		}
	}
	if full >= most { // even all of them were too few
		most = int32(d.MaxReplicas)
	}
	at, to := "deployments."+d.ID+".", float64(min(int64(most), d.MaxReplicas))
	return []Change{x.set(at+"min_replicas", to), x.set(at+"replicas", math.Max(to, float64(d.Replicas)))}
}

// scaleByQueues proposes to look every five seconds and to want a replica for few waiting requests.
func (x *proposal) scaleByQueues() []Change {
	auto, _ := x.config("policies.autoscale").(map[string]any)
	if auto == nil {
		return nil
	}
	to := map[string]any{"type": "queue-depth", "params": map[string]any{"target": 2.0}, "interval": "5s"}
	for _, field := range []string{"actuation", "stabilization", "limits", "cost"} {
		if v := auto[field]; v != nil {
			to[field] = v
		}
	}
	return []Change{x.set("policies.autoscale", to)}
}

// waitForDrain proposes that replicas complete their requests.
func (x *proposal) waitForDrain() []Change {
	if x.config("policies.autoscale") == nil {
		return nil
	}
	return []Change{x.set("policies.autoscale.actuation.drain", map[string]any{"mode": "wait", "timeout": "600s"})}
}

// routeToWarm proposes to send requests only to replicas that are warm.
func (x *proposal) routeToWarm() (changes []Change) {
	for _, at := range []string{"policies.autoscale.actuation", "failures.restart"} {
		if x.config(at) != nil {
			changes = append(changes, x.set(at+".route_while_warming", false))
		}
	}
	return changes
}
