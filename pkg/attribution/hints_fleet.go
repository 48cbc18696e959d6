package attribution

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"time"
)

// soonHealthCheck notices a failure within one second.
var soonHealthCheck = map[string]any{"interval": "1s", "failures": 1}

// soonUS is from when on a health check takes long to notice a failure.
const soonUS = 4_000_000

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
	for _, r := range x.requests.all() {
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

// keepOne proposes that one replica is always there.
func (x *proposal) keepOne() []Change {
	d := x.deployment()
	if d.MaxReplicas == 0 {
		return nil
	}
	at := "deployments." + d.ID + "."
	return []Change{x.set(at+"min_replicas", 1.0), x.set(at+"replicas", float64(max(1, d.Replicas)))}
}

// soonScale is an interval in which an auto-scaler notices load soon.
const soonScale = 5 * time.Second

// sooner proposes to look every five seconds, and to start at once as many replicas as the policy wants.
func (x *proposal) sooner() (changes []Change) {
	const at = "policies.autoscale."
	if x.longer(at+"stabilization.up", 0) {
		changes = append(changes, x.set(at+"stabilization.up", "0s"))
	}
	if x.limitsHold() {
		changes = append(changes, x.set(at+"limits.up", []any{}))
	}
	if x.longer(at+"cooldown", 0) {
		changes = append(changes, x.set(at+"cooldown", "0s"))
	}
	if x.longer(at+"interval", soonScale) {
		changes = append(changes, x.set(at+"interval", soonScale.String()))
	}
	return changes
}

// limitsHold reports whether the limits of growing delay the last one of as many replicas as served at most by more
// than a period of the default.
func (x *proposal) limitsHold() bool {
	const at = "policies.autoscale.limits."
	limits, _ := x.config(at + "up").([]any)
	most := x.number("deployments." + x.deployment().ID + ".max_replicas")
	served := max(1, mean(x.p.losing, serving))
	shortest, longest := math.Inf(1), 0.0
	for _, l := range limits {
		limit, _ := l.(map[string]any)
		text, _ := limit["period"].(string)
		period, err := time.ParseDuration(text)
		if err != nil {
			continue
		}
		each := max(number(limit["replicas"]), math.Ceil(number(limit["percent"])/100*served))
		wait := (math.Ceil((most-served)/max(1, each)) - 1) * period.Seconds()
		shortest, longest = min(shortest, wait), max(longest, wait)
	}
	if x.config(at+"select") != "max" {
		shortest = longest
	}
	return len(limits) > 0 && x.config(at+"select") != "disabled" && shortest > limitPeriod.Seconds()
}

// limitPeriod is the period of the default limits.
const limitPeriod = 15 * time.Second

// longer reports whether the duration at a path is longer than another one.
func (x *proposal) longer(path string, than time.Duration) bool {
	text, _ := x.config(path).(string)
	d, err := time.ParseDuration(text)
	return err == nil && d > than
}

// scaleByQueues proposes to want a replica for few waiting requests, where the policy wants no more of them: for most
// of the losing requests every replica was full, and none was started though it could be.
func (x *proposal) scaleByQueues() []Change {
	auto, _ := x.config("policies.autoscale").(map[string]any)
	blind := 0
	for _, r := range x.p.losing {
		if r.allReplicasFull() && r.evidence.fleet.starting == 0 {
			blind++
		}
	}
	if auto == nil || 2*blind <= len(x.p.losing) {
		return nil
	}
	to := map[string]any{"type": "queue-depth", "params": map[string]any{"target": 2.0}, "interval": auto["interval"]}
	if x.longer("policies.autoscale.interval", soonScale) {
		to["interval"] = soonScale.String()
	}
	for _, field := range []string{"actuation", "stabilization", "limits", "cost"} {
		if v := auto[field]; v != nil {
			to[field] = v
		}
	}
	return []Change{x.set("policies.autoscale", to)}
}

// lowerTarget proposes a target that wants as many replicas for this load as served later or, if no more did, twice
// as many.
func (x *proposal) lowerTarget() []Change {
	const at = "policies.autoscale.params."
	served, most := 0.0, 0.0
	for _, r := range x.p.losing {
		served += float64(r.evidence.fleet.serving)
		most = max(most, float64(r.evidence.fleet.later))
	}
	served /= float64(len(x.p.losing))
	factor := 0.5
	if most > served {
		factor = max(factor, served/most)
	}
	switch x.config("policies.autoscale.type") {
	case "target-utilization", "queue-depth":
		return x.scaled(at+"target", factor)
	case "threshold":
		return append(x.scaled(at+"up", factor), x.scaled(at+"down", factor)...)
	case "average-value":
		targets, _ := x.config(at + "targets").(map[string]any)
		var changes []Change
		for _, signal := range slices.Sorted(maps.Keys(targets)) {
			changes = append(changes, x.scaled(at+"targets."+signal, factor)...)
		}
		return changes
	}
	return nil
}

// scaled multiplies a number of the configuration by a factor, to two digits.
func (x *proposal) scaled(path string, factor float64) []Change {
	from := x.number(path)
	to, _ := strconv.ParseFloat(strconv.FormatFloat(from*factor, 'g', 2, 64), 64)
	if to <= 0 || to >= from {
		return nil
	}
	return []Change{x.set(path, to)}
}

// longStabilization is the default of Kubernetes.
const longStabilization = "300s"

// keepLonger proposes that replicas go only when they were not needed for five minutes.
func (x *proposal) keepLonger() []Change {
	const at = "policies.autoscale.stabilization.down"
	if x.config("policies.autoscale") == nil || x.longer(at, 300*time.Second-1) {
		return nil
	}
	return []Change{x.set(at, longStabilization)}
}

// waitForDrain proposes that replicas complete their requests.
func (x *proposal) waitForDrain() []Change {
	if x.config("policies.autoscale") == nil {
		return nil
	}
	return []Change{x.set("policies.autoscale.actuation.drain", map[string]any{"mode": "wait", "timeout": "600s"})}
}

// routeToWarm proposes to send requests only to replicas that are warm, where each of these then had fewer than 32.
func (x *proposal) routeToWarm() (changes []Change) {
	then := mean(x.p.losing, func(r *request) float64 {
		n := r.evidence.fleet
		return float64(n.serving) * resident(r) / float64(max(1, n.serving-n.warming))
	})
	if then >= fullReplica {
		return nil
	}
	for _, at := range []string{"policies.autoscale.actuation", "failures.restart"} {
		if x.config(at) != nil {
			changes = append(changes, x.set(at+".route_while_warming", false))
		}
	}
	return changes
}
