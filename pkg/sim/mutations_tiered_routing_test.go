package sim

// brokenTieredRouting are rules of the scorer tiered-prefix and of what the router knows of tiers.
var brokenTieredRouting = []rule{
	{"blocks of the tier count behind those of the cache", "sim/tierimages.go",
		"\t\tfor at := r.Cached; at < r.Blocks; {", "\t\tfor at := int32(0); at < r.Blocks; {"},
	{"and those of the storage behind them", "sim/tierimages.go",
		"\t\t\tr.Stats.Tiers.Storage++\n", ""},
	{"and again blocks of the tier", "sim/tierimages.go",
		"\t\t\tat++\n", "\t\t\tat++\n\t\t\tcpu, images.cpu = nil, nil\n"},
	{"each with its weight", "policy/tiered_prefix.go", "t.storage * float64(r.Stats", "t.cpu * float64(r.Stats"},
	{"the expected tokens are those of all tiers", "sim/prefixes.go",
		"\t\t\tmatched += c.Stats.Tiers.CPU + c.Stats.Tiers.Storage\n", "\t\t\tmatched += c.Stats.Tiers.CPU\n"},
	{"a block is known from the end of its store", "tier/store.go",
		"len(s.watchers) > 0 && before%reader == storing {", "len(s.watchers) > 0 && before == loading {"},
	{"until it is evicted", "tier/watch.go",
		"\t\tw.Evicted(0, x.Node, x.Lo, x.Hi)\n", "\t\t_ = w\n"},
	{"or its replica is down", "tier/store.go", "\t\ts.notifyCleared()\n", ""},
	{"images are as old as the caches", "sim/telemetry.go", "\t\t\tcounters.tiers.refresh()\n", ""},
	{"those of a shared storage, too", "sim/telemetry.go",
		"\t\t\to.readSharers(s, i, eventsDone)\n", ""},
	{"the ends of stores are events", "sim/build.go",
		"!cfg.KeepBatches && s.router.needs.all&policy.NeedTierBlocks == 0}", "!cfg.KeepBatches}"},
}
