package attribution

import (
	"math"
	"strconv"

	"blis/pkg/stream"
)

// longPromptsApart proposes a pool of replicas for long prompts, as large as their share of the work.
func (x *proposal) longPromptsApart() []Change {
	bound := max(minLongPrompt, longPromptFactor*x.stats.medianInput)
	return x.pool("input_tokens", strconv.FormatInt(bound, 10), func(r *request) bool {
		return int64(r.tokens.input) >= bound
	})
}

// heavyTenantApart proposes a pool for the tenant with most of the work.
func (x *proposal) heavyTenantApart() []Change {
	return x.pool("tenant", x.names.list[x.stats.heavyTenant], func(r *request) bool {
		return r.labels.tenant == x.stats.heavyTenant
	})
}

// lossesApart proposes a pool for the class that loses most.
func (x *proposal) lossesApart() []Change {
	counts, class := map[int32]int{}, x.p.losing[0].labels.class
	for _, r := range x.p.losing {
		if counts[r.labels.class]++; counts[r.labels.class] > counts[class] {
			class = r.labels.class
		}
	}
	if x.names.list[class] == "" {
		return nil
	}
	return x.pool("slo_class", x.names.list[class], func(r *request) bool { return r.labels.class == class })
}

// pool proposes a pool for some requests, as large as their share of the work; nil where they cannot be apart, or
// where one pool could not serve its requests or a replica of it failed.
func (x *proposal) pool(by, key string, isIn func(*request) bool) []Change {
	replicas, work, all := 0, int64(0), int64(0)
	model := x.deployment().Model
	for i := range x.topology.Deployments {
		if d := &x.topology.Deployments[i]; d.Model == model {
			replicas += d.Replicas
		}
	}
	for _, r := range x.requests.all() {
		if r.replica == missing || x.topology.deploymentOf(r.replica).Model != model {
			continue
		}
		if all += r.work(); isIn(r) {
			work += r.work()
		}
	}
	if replicas < 2 || work == 0 || work == all {
		return nil
	}
	n := float64(replicas)
	own := min(n-1, max(1, math.Round(n*float64(work)/float64(all))))
	failed := func(r *request) bool { return r.evidence.fleet.down > 0 }
	if x.requests.contains(failed) || !x.poolsCarry(own, n, isIn) {
		return nil
	}
	return []Change{x.set("policies.routing", map[string]any{"type": "pools",
		"params": map[string]any{"by": by, "shares": map[string]any{key: math.Round(1e4*own/n) / 1e4}}})}
}

// equalRates proposes to bound the prompt tokens of each tenant to a quarter more than the largest rate of those that
// are not the heavy one.
func (x *proposal) equalRates() []Change {
	if x.topology.policy("admission") != alwaysAdmit {
		return nil
	}
	tokens, most, all := map[int32]int64{}, int64(0), int64(0)
	for _, r := range x.requests.all() {
		all += int64(r.tokens.input)
		if n := r.labels.tenant; n != x.stats.heavyTenant {
			tokens[n] += int64(r.tokens.input)
			most = max(most, tokens[n])
		}
	}
	_, perSecond := x.offeredRates()
	if most == 0 {
		return nil
	}
	rate := math.Ceil(1.25 * perSecond * float64(most) / float64(all))
	return []Change{x.set("policies.admission", map[string]any{"type": "token-bucket", "params": map[string]any{
		"unit": "input_tokens", "per_tenant": true, "refill_per_s": rate, "capacity": 2 * rate}})}
}

// limitTenant proposes to admit as many requests of the heavy tenant per second as the replicas served besides those of
// the others, at least its even share. More are delayed where its class can wait for a first token, else rejected.
func (x *proposal) limitTenant() []Change {
	if x.topology.policy("admission") != alwaysAdmit {
		return nil
	}
	var work, heavyWork, heavySent int64
	tenants, action, last := map[int32]bool{}, "delay", stream.Micros(0)
	for _, r := range x.requests.all() {
		tenants[r.labels.tenant] = true
		work += r.work()
		if r.ended() != never {
			last = max(last, r.ended())
		}
		if r.labels.tenant == x.stats.heavyTenant {
			heavyWork += r.work()
			heavySent++
			if x.classes[x.names.list[r.labels.class]].Targets.TTFTMS > 0 {
				action = "reject"
			}
		}
	}
	offered, _ := x.offeredRates()
	arrivals := float64(x.requests.len()) / offered // in s
	served := float64(work) / max(arrivals, float64(last)/1e6)
	left := max(served-float64(work-heavyWork)/arrivals, served/float64(len(tenants)))
	perSecond := left / (float64(heavyWork) / float64(heavySent))
	window := math.Ceil(max(1, 1/perSecond))
	own := map[string]any{x.names.list[x.stats.heavyTenant]: math.Floor(perSecond * window)}
	params := map[string]any{"key": "tenant", "limit": noRateLimit, "limits": own, "window_s": window, "action": action}
	if action == "delay" {
		params["delay_ms"] = tenantDelayMS
	}
	return []Change{x.set("policies.admission", map[string]any{"type": "rate-limit", "params": params})}
}

// noRateLimit is the largest limit of rate-limit.
const noRateLimit = 1e6

// boundShare proposes to bound the heavy tenant to an even share of the requests in flight.
func (x *proposal) boundShare() []Change {
	if x.topology.policy("admission") != alwaysAdmit {
		return nil
	}
	tenants := map[int32]bool{}
	for _, r := range x.requests.all() {
		tenants[r.labels.tenant] = true
	}
	own := map[string]any{x.names.list[x.stats.heavyTenant]: math.Round(1e4/float64(len(tenants))) / 1e4}
	return []Change{x.set("policies.admission", map[string]any{"type": "tenant-quota",
		"params": map[string]any{"share": 1.0, "shares": own}})}
}

// tenantDelayMS is short against what a class without a TTFT target waits, and long enough that
// control_plane.max_delays do not run out.
const tenantDelayMS = 1000
