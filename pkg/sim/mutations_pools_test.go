package sim

// brokenPools are rules of the router pools.
var brokenPools = []rule{
	{"pools: the longest bound that a prompt reaches", "policy/pools.go",
		"\t\t\tat = i\n", "\t\t\tat = i\n\t\t\tbreak\n"},
	{"pools: bounds are in the order of numbers", "policy/pools.go",
		"return cmp.Compare(x.tokens, y.tokens)", "return 0"},
	{"pools: a prompt of the bound is in the pool", "policy/pools.go",
		"r.InputTokens >= x.tokens", "r.InputTokens > x.tokens"},
	{"pools: boundaries are rounded", "policy/pools.go",
		"math.Round(x*float64(n))", "math.Floor(x*float64(n))"},
	{"pools: a pool has a replica", "policy/pools.go",
		"\t\t\tfrom = min(from, n-1)\n\t\t\tto = from + 1\n", "\t\t\tfrom, to = 0, n\n"},
	{"pools: others do not use the pools", "policy/pools.go",
		"return from, n, \"no pool\"", "return 0, n, \"no pool\""},
	{"pools: a full pool spills", "policy/pools.go",
		"c.Score >= p.spill", "c.Score > p.spill"},
}

// brokenTenantLimits are rules of admission that limits tenants.
var brokenTenantLimits = []rule{
	{"a tenant has its own limit", "policy/tenant_quota.go",
		"if x, ok := own[name]; ok {", "if x, ok := own[name]; ok && false {"},
	{"tenant-quota: others have the share of all", "policy/tenant_quota.go",
		"if math.IsNaN(share) {", "if math.IsNaN(q.share) {"},
	{"tenant-quota: sheddable requests count only for sheddable ones", "policy/tenant_quota.go",
		"if v.Request.Tier != Sheddable {", "if v.Request.Tier == Sheddable {"},
	{"tenant-quota: no quota for few requests", "policy/tenant_quota.go",
		"if inflight <= q.minInflight {", "if inflight < q.minInflight {"},
	{"token-bucket: a tenant's bucket has its own capacity", "policy/token_bucket.go",
		"b.capacity = limitOf(t.capacities, v.Request.Tenant, t.capacity)", ""},
	{"token-bucket: and its own rate", "policy/token_bucket.go",
		"b.perUS = limitOf(t.perSeconds, v.Request.Tenant, t.perSecond) / 1e6", ""},
	{"token-bucket: it starts full", "policy/token_bucket.go",
		"b.tokens, b.initialized, b.updatedUS = b.capacity,", "b.tokens, b.initialized, b.updatedUS = t.capacity,"},
	{"token-bucket: tokens stay in the bucket of a rejected request", "policy/token_bucket.go",
		"\tif have < cost {\n", "\tif have < cost {\n\t\tb.tokens = 0\n"},
	{"rate-limit: the window ends now", "policy/rate_limit.go",
		"w[expired] <= v.NowUS-l.windowUS", "w[expired] < v.NowUS-l.windowUS"},
	{"rate-limit: only admitted requests count", "policy/rate_limit.go",
		"\tif d.Action == Admit {\n\t\tw", "\tif d.Action <= Delay {\n\t\tw"},
	{"rate-limit: a tenant has its own limit", "policy/rate_limit.go",
		"return limitOf(l.limits, v.Request.Tenant, l.limit)", "return l.limit"},
}
