package attribution

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"blis/pkg/stream"
)

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

// moreFlow proposes limits of flow control that let replicas fill their batches. Of the limits of the
// detector of utilization either saturates a replica: those below their defaults are raised to that. Without a detector
// it proposes to have no other limits.
func (x *proposal) moreFlow() (changes []Change) {
	if changes = x.noHoldback(); len(changes) > 0 {
		return changes
	}
	const at = "control_plane.flow_control.detector.params."
	mode := x.config(at + "concurrencyMode")
	if mode == "requests" || mode == "hybrid" {
		changes = append(changes, x.set(at+"maxConcurrency", float64(x.deployment().slots())))
	}
	if mode == "tokens" || mode == "hybrid" {
		to := max(defaultTokenLimit, 4*x.number(at+"maxTokenConcurrency"))
		changes = append(changes, x.set(at+"maxTokenConcurrency", to))
	}
	queues, blocks := x.number(at+"queueDepthThreshold"), x.number(at+"kvCacheUtilThreshold")
	if blocks > 0 && blocks < defaultBlockLimit {
		changes = append(changes, x.set(at+"kvCacheUtilThreshold", defaultBlockLimit))
	}
	if queues > 0 && (len(changes) == 0 || queues < defaultQueueLimit) {
		changes = append(changes, x.set(at+"queueDepthThreshold", max(defaultQueueLimit, 4*queues)))
	}
	if len(changes) == 0 {
		return x.noFlowLimits()
	}
	return changes
}

// noFlowLimits proposes no capacity of flow control where most losing requests were rejected by it, and no time limit
// where most timed out there.
func (x *proposal) noFlowLimits() []Change {
	const at = "control_plane.flow_control."
	rejected, late := 0, 0
	for _, r := range x.p.losing {
		switch {
		case x.rejectedByFlow(r):
			rejected++
		case x.names.list[r.labels.reason] == stream.ReasonAdmissionDelay:
			late++
		}
	}
	switch n := len(x.p.losing); {
	case 2*rejected > n && x.number(at+"capacity") > 0:
		return []Change{x.set(at+"capacity", 0.0)}
	case 2*late > n && x.number(at+"ttl_us") > 0:
		return []Change{x.set(at+"ttl_us", 0.0)}
	}
	return nil
}

// flowLimits names the limits of flow control that are set, "" without any.
func (a *Analyzer) flowLimits() string {
	x, text := &proposal{Analyzer: a}, ""
	const at = "control_plane.flow_control."
	if n := x.number(at + "capacity"); n > 0 {
		text += fmt.Sprintf(", capacity %g", n)
	}
	if us := x.number(at + "ttl_us"); us > 0 {
		text += fmt.Sprintf(", ttl_us %g", us)
	}
	if kind, _ := x.config(at + "usage_limit.type").(string); kind != "" && kind != staticLimit {
		text += ", usage_limit " + kind
	}
	if text == "" {
		return ""
	}
	return " (" + text[2:] + ")"
}

// Defaults of utilization-detector and of maxTokenConcurrency.
const defaultQueueLimit, defaultBlockLimit, defaultTokenLimit = 5, 0.8, 1e6

// noHoldback proposes the same limit for all priorities where most of the losing requests do not have the highest.
func (x *proposal) noHoldback() []Change {
	const at = "control_plane.flow_control.usage_limit"
	if x.config(at) == nil || x.config(at+".type") == staticLimit {
		return nil
	}
	highest, lower := math.Inf(-1), 0
	for _, r := range x.requests.all() {
		highest = max(highest, x.priority(r))
	}
	for _, r := range x.p.losing {
		if x.priority(r) < highest {
			lower++
		}
	}
	if 2*lower < len(x.p.losing) {
		return nil
	}
	return []Change{x.set(at, map[string]any{"type": staticLimit})}
}

// staticLimit is the policy of flow control that has the same limit for all priorities.
const staticLimit = "static-usage-limit-policy"

// speedSettings are those of an engine by which one replica may be slower than another with the same GPU.
var speedSettings = []string{"tensor_parallel_size", "pipeline_parallel_size", "quantization", "dtype",
	"kv_cache_dtype"}

// fasterReplica proposes what a faster peer has: its GPU and how it shards and stores the model, or its step times.
func (x *proposal) fasterReplica() []Change {
	d := x.deployment()
	for i := range x.topology.Deployments {
		peer := &x.topology.Deployments[i]
		isSlow := d.typicalStepUS() > 0 && peer.typicalStepUS() >= d.typicalStepUS()
		if peer.ID == d.ID || peer.Model != d.Model || isSlow {
			continue
		}
		own, other := "deployments."+d.ID, "deployments."+peer.ID
		if !x.isDerived(d, "latency.beta_us") && d.Latency.Model == "linear" {
			return []Change{x.set(own+".latency.beta_us", x.config(other+".latency.beta_us"))}
		}
		changes := []Change{x.set(own+".gpu", x.config(other+".gpu"))}
		for _, field := range speedSettings {
			if to := x.config(other + ".engine." + field); to != nil {
				changes = append(changes, x.set(own+".engine."+field, to))
			}
		}
		return changes
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

// admitMore proposes limits of admission that the offered load fits.
func (x *proposal) admitMore() []Change {
	const at = "policies.admission.params."
	rate, tokens := x.offeredRates()
	kind := x.topology.policy("admission")
	for _, table := range []string{"limits", "capacities", "refills_per_s"} {
		if own, _ := x.config(at + table).(map[string]any); len(own) > 0 {
			kind = "" // other limits do not change those of single tenants
		}
	}
	switch kind {
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
	for _, r := range x.requests.all() {
		if first == never || r.arrival() < first {
			first = r.arrival()
		}
		if last == never || r.arrival() > last {
			last = r.arrival()
		}
		tokens += float64(r.tokens.input)
	}
	seconds := max(1e-6, float64(last-first)/1e6)
	return float64(x.requests.len()) / seconds, tokens / seconds
}

// boundTenant proposes to serve the other classes first where the heavy tenant's is lower, else the other tenants;
// nothing where the heavy tenant has most of the misses.
func (x *proposal) boundTenant() []Change {
	own := 0
	for _, r := range x.p.losing {
		if r.labels.tenant == x.stats.heavyTenant {
			own++
		}
	}
	if 2*own > len(x.p.losing) {
		return nil
	}
	victims, heavy := 0.0, math.Inf(1)
	for _, r := range x.requests.all() {
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

// readQueues proposes to weigh queues like the heaviest scorer; other policies are replaced by one that compares loads.
func (x *proposal) readQueues() []Change {
	const at = "policies.routing.params."
	switch x.topology.policy("routing") {
	case "weighted":
		w := slices.Max(append(x.weights(), 1))
		return []Change{x.set(at+"queue-depth", w), x.set(at+"active-requests", w)}
	case "prefix-affinity":
		return []Change{x.set(at+"max_imbalance", 1.2)}
	}
	return policy("routing", "least-loaded")(x)
}

// readPrefixes proposes to weigh prefixes like all else together; other policies are replaced by one that reads them.
func (x *proposal) readPrefixes() []Change {
	if x.prefixesUnweighted {
		return []Change{x.set(overlapCredit, 1)}
	}
	if x.topology.policy("routing") != "weighted" {
		return policy("routing", "weighted")(x)
	}
	sum := 0.0
	for _, w := range x.weights() {
		sum += w
	}
	return []Change{x.set("policies.routing.params.prefix-affinity", sum)}
}

// weights are those of the scorers of the policy weighted, by name.
func (x *proposal) weights() (all []float64) {
	params, _ := x.config("policies.routing.params").(map[string]any)
	for _, scorer := range slices.Sorted(maps.Keys(params)) {
		if !strings.HasPrefix(scorer, "tiered_prefix_") { // those are the weights of blocks
			all = append(all, x.number("policies.routing.params."+scorer))
		}
	}
	return all
}

// immediate is the age of signals that are always current.
const immediate = "immediate"

// readFreshQueues proposes that what the losing decisions read of queues and batches is always current, or every
// signal where they read none of that.
func (x *proposal) readFreshQueues() (changes []Change) {
	read := map[string]bool{}
	for _, r := range x.p.losing {
		c := &r.seen().chosen
		read["queue_depth"] = read["queue_depth"] || c.Queue >= 0
		read["running"] = read["running"] || c.Running >= 0
		read["kv_util"] = read["kv_util"] || c.KV >= 0
	}
	const load = "policies.routing.params.load"
	if x.config(load) == "snapshot" {
		return []Change{x.set(load, "inflight")}
	}
	none := !read["queue_depth"] && !read["running"] && !read["kv_util"]
	for _, signal := range slices.Sorted(maps.Keys(x.topology.ControlPlane.Snapshots)) {
		if (none || read[signal]) && x.topology.snapshotAgeUS(signal) > staleUS {
			changes = append(changes, x.set("control_plane.snapshots."+signal, immediate))
		}
	}
	return changes
}

// readFreshCaches proposes to know at once what replicas have cached.
func (x *proposal) readFreshCaches() []Change {
	return []Change{x.set("control_plane.snapshots.cache", immediate)}
}

// largerIndex proposes an index of prefixes as large as the cache of a replica.
func (x *proposal) largerIndex() []Change {
	return []Change{x.set("control_plane.shadow_blocks", float64(x.deployment().Computed.KVBlocks))}
}
