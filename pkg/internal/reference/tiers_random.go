package reference

import "math/rand/v2"

// RandomHosts is Random with memory of the hosts. In most cases the cache is too small for all prefixes, and often the
// host's memory too.
func RandomHosts(seed uint64) (Config, []Request) {
	c, requests := Random(seed)
	c = withHosts(c, requests, seed)
	if a := (&generator{Rand: rand.New(rand.NewPCG(seed, 0x61747472))}); c.Replicas > 1 && a.percent(30) {
		c.Routing, c.Scorers, c.Picker = "attribute", nil, ""
		c.Named.Attribute, c.Named.Sign = pick(a, "kv_util_cpu", "loading"), pick(a, 1, -1.0)
		c.Tie = pick(a, "random", "first")
	}
	return c, requests
}

// RandomStorages is RandomHosts with a storage below the memory of the hosts, of each replica or shared by all.
func RandomStorages(seed uint64) (Config, []Request) {
	c, requests := RandomHosts(seed)
	d := &generator{Rand: rand.New(rand.NewPCG(seed, 0x73746f72))}
	step := max(1, int(c.stepTime(batchOf(min(c.MaxNumBatchedTokens, 30), 2, 30))))
	needed := 1
	for i := range requests {
		r := &requests[i]
		if i > 0 && d.percent(40) { // more prompts that were there before
			r.Prompt = requests[d.IntN(i)].Prompt
		}
		r.Input = max(r.Input, prefixOf(r.Prompt))
		needed = max(needed, (r.Input+r.Output-2)/c.BlockSize+1)
	}
	c.NumBlocks = max(c.NumBlocks, 1+needed)
	c.Host.Blocks = pick(d, c.Host.Blocks, d.between(1, needed), d.between(needed, 3*needed),
		d.between(needed, 3*needed))
	if c.NumBlocks > 2*needed && d.percent(70) {
		c.NumBlocks = 1 + needed
	}
	c.Host.Lazy = false
	c.Host.Storage = &Storage{
		Blocks: pick(d, d.between(1, needed), d.between(1, 3*needed), 20*needed, 100*needed),
		Shared: d.percent(50), OnEviction: d.percent(40), Load: d.link(pick(d, step, 1+step/4)),
		Store: d.link(pick(d, step, 1+step/4)),
	}
	return c, requests
}

// prefixOf is the number of tokens of a prompt's segments.
func prefixOf(prompt []Segment) (tokens int) {
	for _, s := range prompt {
		tokens += s.Tokens
	}
	return tokens
}

// RandomHostFleets is RandomHosts with an auto-scaler, replicas that fail, or both.
func RandomHostFleets(seed uint64) (Config, []Request) {
	draw := RandomFailures
	if (&generator{Rand: rand.New(rand.NewPCG(seed, 0x666c6565))}).percent(40) {
		draw = RandomScaling
	}
	c, requests := draw(seed)
	return withHosts(c, requests, seed), requests
}

// RandomDisaggregationHosts is RandomDisaggregation with memory of the hosts of both pools or of one, sometimes with an
// auto-scaler or replicas that fail.
func RandomDisaggregationHosts(seed uint64) (Config, []Request) {
	d := &generator{Rand: rand.New(rand.NewPCG(seed, 0x70646873))}
	draw := pick(d, RandomDisaggregation, RandomDisaggregation, RandomDisaggregation, RandomDisaggregationFailures,
		RandomDisaggregationFleets)
	c, requests := draw(seed)
	x, caching := c.Disaggregation, c.PrefixCaching
	which := pick(d, "both", "both", "both", "prefill", "decode")
	with := withHosts(c, requests, seed)
	if which != "prefill" {
		c.PrefixCaching, c.NumBlocks, c.Host, c.Scheduler = true, with.NumBlocks, with.Host, with.Scheduler
	} else {
		c.PrefixCaching = caching
	}
	if which != "decode" {
		host := *with.Host
		host.Blocks = pick(d, host.Blocks, d.between(1, 2*host.Blocks))
		x.Pool.PrefixCaching, x.Pool.Host, c.Scheduler = true, &host, with.Scheduler
	}
	x.Pool.Scheduler = c.Scheduler
	x.BlockBytes = 1000
	if d.percent(50) { // prompts come again to a prefill replica whose cache is small
		x.Decider = "always"
		most := 1
		for _, r := range requests {
			most = max(most, (r.Input-1)/c.BlockSize+1)
		}
		x.Pool.NumBlocks = 1 + most + pick(d, 0, 0, d.between(0, most))
	}
	return c, requests
}

// withHosts gives c memory of the hosts, and some requests prompts that were there before.
func withHosts(c Config, requests []Request, seed uint64) Config {
	d := &generator{Rand: rand.New(rand.NewPCG(seed, 0x686f7374))}
	c.Groups, c.States, c.HashAll, c.Sparse, c.Interval = nil, States{}, false, false, 0
	c.KeepUntilComputed, c.ReserveWindow = false, false
	c.PrefixCaching = true
	needed := 1
	for _, r := range requests {
		needed = max(needed, (r.Input+r.Output-2)/c.BlockSize+1)
	}
	c.NumBlocks = 1 + needed + pick(d, 0, d.between(0, needed), d.between(0, 2*needed), 5*needed)
	step := max(1, int(c.stepTime(batchOf(min(c.MaxNumBatchedTokens, 30), 2, 30))))
	c.Host = &Host{
		Blocks:     pick(d, d.between(1, needed), d.between(1, 3*needed), d.between(1, 6*needed), 100*needed),
		BlockBytes: 1000,
		MinLoad:    pick(d, 1, 1, 1, d.between(1, 4)),
		Load:       d.link(step),
		Store:      d.link(step),
		ThrashUS:   10_000_000,
	}
	e := &generator{Rand: rand.New(rand.NewPCG(seed, 0x65766963))}
	c.Host.Eviction = pick(e, "lru", "lru", "arc", "arc", "lfu", "priority")
	if e.percent(15) {
		c.Host.Threshold = pick(e, 0.3, 0.6, 0.9)
	}
	if z := (&generator{Rand: rand.New(rand.NewPCG(seed, 0x6c617a79))}); c.Host.Eviction == "lru" && z.percent(25) {
		c.Host.Lazy, c.Host.Threshold = true, 0
	}
	if c.Host.Eviction == "priority" && c.Scheduler == "" {
		c.Scheduler = "fcfs"
		e.assignPriorities(requests)
	}
	for i := range requests {
		r := &requests[i]
		if i > 0 && d.percent(30) { // a prompt that was there before
			r.Prompt = requests[d.IntN(i)].Prompt
			named := 0
			for _, s := range r.Prompt {
				named += s.Tokens
			}
			r.Input = max(r.Input, named)
		}
	}
	return c
}

// link draws a link on which a block takes less or more than a step of this many µs.
func (d *generator) link(step int) Link {
	us := float64(d.between(1, 4*step)) * pick(d, 0.05, 0.3, 1, 1)
	return Link{LatencyUS: float64(d.between(0, step)) * pick(d, 0, 0.5, 1), GBPerS: max(1e-6, 1/us)}
}
