package attribution

import "math"

// shareOfTarget is the share of the TTFT target that constant latencies may take.
const shareOfTarget = 0.1

// ttftTarget is the lowest TTFT target in ms of the losing requests, 1000 without any.
func (x *proposal) ttftTarget() float64 {
	lowest := 0.0
	for _, r := range x.p.losing {
		if t := x.classes[x.names.list[r.labels.class]].Targets.TTFTMS; t > 0 && (lowest == 0 || t < lowest) {
			lowest = t
		}
	}
	if lowest == 0 {
		return 1000
	}
	return lowest
}

// fasterFrontEnd proposes a front end that takes a tenth of the TTFT target.
func (x *proposal) fasterFrontEnd() []Change {
	d := x.deployment()
	factor := min(1, shareOfTarget*x.ttftTarget()/max(1, mean(x.p.losing, frontendMS)))
	var alpha []any
	for _, us := range d.Latency.AlphaUS {
		alpha = append(alpha, math.Round(us*factor))
	}
	if len(alpha) == 0 {
		return nil
	}
	return []Change{x.set("deployments."+d.ID+".latency.alpha_us", alpha)}
}

// fasterControl proposes latencies of admission and routing of a tenth of the TTFT target.
func (x *proposal) fasterControl() (changes []Change) {
	most := math.Round(shareOfTarget * 1000 * x.ttftTarget())
	for _, path := range []string{"control_plane.admission_latency_us", "control_plane.routing_latency_us"} {
		if x.number(path) > most {
			changes = append(changes, x.set(path, most))
		}
	}
	return changes
}

// moreFlow proposes limits of flow control that let replicas fill their batches.
func (x *proposal) moreFlow() []Change {
	const at = "control_plane.flow_control.detector.params."
	if x.number(at+"maxConcurrency") > 0 {
		return []Change{x.set(at+"maxConcurrency", float64(x.deployment().Engine.MaxNumSeqs))}
	}
	if n := x.number(at + "queueDepthThreshold"); n > 0 {
		return []Change{x.set(at+"queueDepthThreshold", 4*n)}
	}
	return nil
}

// fasterReplica proposes the GPU or the step times of the fastest peer.
func (x *proposal) fasterReplica() []Change {
	d := x.deployment()
	for i := range x.topology.Deployments {
		peer := &x.topology.Deployments[i]
		isSlow := d.typicalStepUS() > 0 && peer.typicalStepUS() >= d.typicalStepUS()
		if peer.ID == d.ID || peer.Model != d.Model || isSlow {
			continue
		}
		at, gpu := "deployments."+d.ID, x.config("deployments."+peer.ID+".gpu")
		if x.isDerived(d, "latency.beta_us") || d.Latency.Model != "linear" {
			return []Change{x.set(at+".gpu", gpu)}
		}
		return []Change{x.set(at+".latency.beta_us", x.config("deployments."+peer.ID+".latency.beta_us"))}
	}
	return nil
}

// isDerived reports whether a value of a deployment follows from its model and GPU.
func (x *proposal) isDerived(d *deployment, value string) bool {
	all, _ := x.config("deployments." + d.ID + ".derived.values").([]any)
	for _, v := range all {
		if v == value {
			return true
		}
	}
	return false
}

// moreParallel proposes as many GPUs as bring the fastest TPOT to two thirds of the target.
func (x *proposal) moreParallel() []Change {
	at := "deployments." + x.deployment().ID + ".engine.tensor_parallel_size"
	now := max(1, x.number(at))
	over := mean(x.p.losing, func(r *request) float64 { return r.evidence.fastestMS / max(1e-9, r.evidence.targetMS) })
	return []Change{x.set(at, powerOf2(min(8, max(2*now, 1.5*now*over))))}
}

// admitMore proposes limits of admission that the offered load fits.
func (x *proposal) admitMore() []Change {
	const at = "policies.admission.params."
	rate, tokens := x.offeredRates()
	switch x.topology.policy("admission") {
	case "token-bucket":
		if x.config(at+"unit") == "input_tokens" {
			rate = tokens
		}
		return []Change{x.set(at+"refill_per_s", math.Ceil(1.25*rate)), x.set(at+"capacity", math.Ceil(2*rate))}
	case "rate-limit":
		return []Change{x.set(at+"limit", math.Ceil(2*rate*max(1, x.number(at+"window_s"))))}
	}
	return []Change{x.set("policies.admission", map[string]any{"type": alwaysAdmit})}
}

// offeredRates are the requests and the prompt tokens that arrived per second.
func (x *proposal) offeredRates() (requests, tokens float64) {
	first, last := never, never
	for _, r := range x.requests {
		if first == never || r.times.arrival < first {
			first = r.times.arrival
		}
		if last == never || r.times.arrival > last {
			last = r.times.arrival
		}
		tokens += float64(r.tokens.input)
	}
	seconds := max(1e-6, float64(last-first)/1e6)
	return float64(len(x.requests)) / seconds, tokens / seconds
}

// boundTenant proposes to serve the other classes first where the heavy tenant's is lower, else the other tenants.
func (x *proposal) boundTenant() []Change {
	victims, heavy := 0.0, math.Inf(1)
	for _, r := range x.requests {
		if r.labels.tenant == x.stats.heavyTenant {
			heavy = min(heavy, x.priority(r))
		}
	}
	for _, r := range x.p.losing {
		victims = max(victims, x.priority(r))
	}
	if heavy < victims {
		return classesFirst(x)
	}
	last := map[string]any{x.names.list[x.stats.heavyTenant]: -1.0}
	return append(policy("scheduler", "priority-fcfs")(x), x.set("policies.priority",
		map[string]any{"type": "tenant-priority", "params": map[string]any{"map": last}}))
}

// readQueues proposes to weigh queues like prefixes; other policies are replaced by one that compares loads.
func (x *proposal) readQueues() []Change {
	const at = "policies.routing.params."
	switch x.topology.policy("routing") {
	case "weighted":
		w := max(1, x.number(at+"prefix-affinity"), x.number(at+"precise-prefix"))
		return []Change{x.set(at+"queue-depth", w), x.set(at+"active-requests", w)}
	case "prefix-affinity":
		return []Change{x.set(at+"max_imbalance", 1.2)}
	}
	return []Change{x.set("policies.routing", map[string]any{"type": "least-loaded"})}
}

// readFreshQueues proposes signals that are always current.
func (x *proposal) readFreshQueues() []Change {
	return []Change{x.set("control_plane.snapshots.default", "immediate")}
}

// largerIndex proposes an index of prefixes as large as the cache of a replica.
func (x *proposal) largerIndex() []Change {
	return []Change{x.set("control_plane.shadow_blocks", float64(x.deployment().Computed.KVBlocks))}
}
