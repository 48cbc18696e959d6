package sim

// routerComparison is the test that notices brokenRouters.
const routerComparison = "^TestReferenceOnRouters$"

// brokenRouters are rules of the routers of llm-d and Dynamo, and of variables and random numbers.
var brokenRouters = []rule{
	{"llm-d: a block that no replica was sent ends the match", "policy/block_index.go",
		"\t\tif !known {\n\t\t\tbreak\n", "\t\tif !known {\n\t\t\tcontinue\n"},
	{"llm-d: blocks have at least 64 tokens", "policy/block_index.go",
		"size = max(size, minBlockTokens)", "size = max(size, minBlockTokens/2)"},
	{"llm-d: the last block may be partly full", "policy/block_index.go",
		"min((input+size-1)/size, most)", "min(max(1, input/size), most)"},
	{"llm-d: the index remembers as many blocks as the cache has", "policy/block_index.go",
		"capacity = x.capacity[replica]", "capacity = 2 * x.capacity[replica]"},
	{"llm-d: weights of the default profile", "policy/llmd.go",
		"weighted(\"queue-scorer\", 2)", "weighted(\"queue-scorer\", 1)"},
	{"dynamo-kv: a block counts until the last of its requests leaves", "policy/active_blocks.go",
		"a.holders[replica][key] == 0 {", "a.holders[replica][key] >= 0 {"},
	{"dynamo-kv: a prompt is a load until its first token", "sim/steps.go",
		"s.router.countPrefilled(s, r)", "_ = r"},
	{"dynamo-kv: cached blocks need no prefill", "policy/dynamo.go",
		"max(0, prefill-float64(credit*float64(r.Cached)))", "prefill"},
	{"dynamo-kv: the credit falls with the load of prefills", "policy/dynamo.go",
		"credit *= 1 / (1 + float64(d.decay*excess))", "credit *= 1 / (1 + float64(0*excess))"},
	{"dynamo-kv: blocks of the prompt that are in flight cost nothing", "policy/dynamo.go",
		"int(input)/a.BlockTokens - a.Shared)", "int(input)/a.BlockTokens)"},
	{"dynamo-kv: a higher temperature draws more evenly", "policy/dynamo.go",
		"((high - low) * d.temperature)", "((high - low) * 0.1)"},
	{"variables are kept from decision to decision", "policy/memory.go",
		"copy(u.vars, u.next)", "copy(u.next, u.vars)"},
	{"rand() is another number each time", "policy/rng.go",
		"\t*r += gamma\n", ""},
	{"memory gets the numbers of the request", "policy/memory.go",
		"m.rng = m.draws.of(k)", "m.rng = m.draws.of(DrawKey{})"},
	{"dynamo-kv: requests in flight cost", "policy/dynamo.go",
		"float64(d.perRequest*float64(r.Inflight))", "float64(d.perRequest*float64(r.Running))"},
}
