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
