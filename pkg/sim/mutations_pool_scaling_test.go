package sim

// brokenPoolScaling are rules of prefill and decode pools that scale.
var brokenPoolScaling = []rule{
	{"a prefill replica is gone when its last transfer has ended", "sim/fleet.go",
		"e.Busy() || e.Orphans()+e.Held() > 0", "e.Busy() || e.Orphans() > 0"},
	{"which the end of a transfer between pools shows", "sim/handoff_ends.go",
		"return s.settleBoth(x.replica, x.fromPrefill)", "return nil"},
	{"one that drains redirects the requests whose prompts it computes", "sim/fleet.go",
		"s.redirectRequests(i, s.requestsOf(i, false))", "s.redirectRequests(i, s.requestsOf(i, true))"},
	{"and loses only those", "sim/fleet.go",
		"range s.requestsOf(i, false) {", "range s.requestsOf(i, true) {"},
	{"a transfer goes on when its request has moved", "sim/handoff_ends.go",
		"s.transfers.slots[h.transfer].moved = true", "s.transfers.slots[h.transfer].moved = false"},
	{"the traffic of a prefill pool is that of its deployment", "sim/fleet.go",
		"d.elastic.id = s.deployments[of].id", "d.elastic.id = s.deployments[i].id"},
	{"a request may find its own prompt at a prefill replica", "sim/slots.go",
		"len(s.transfers.pools()) > 0", "len(s.transfers.pools()) > 1000"},
	{"a prefill pool only computes prompts", "sim/policy_engine.go", "case prefills:", "case false:"},
	{"and the other one the rest", "sim/policy_engine.go", "case d.Disaggregates():", "case false:"},
	{"prompts are computed together", "policy/capacity.go", "max(1, e.MaxBatchedTokens/of.uncached)", "1"},
}
