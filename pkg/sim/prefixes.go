package sim

import (
	"blis/pkg/kv"
	"blis/pkg/policy"
)

// prefixes is what the router knows of the caches: its prefix index, which only policies that need it
// have, and the evictions that have not reached it, in order of time. blocks is the index of llm-d's
// router, nil if no policy needs it.
type prefixes struct {
	index   *policy.Shadow
	reports []evictionReport
	blocks  *policy.BlockIndex
}

// evictionReport is an eviction that reaches the router at a given time.
type evictionReport struct {
	at      int64
	replica int32
	node    kv.Node
	lo, hi  int32
}

// match fills in the prompt blocks that the index has of each candidate, and returns those with matches if there are
// many candidates.
func (p *prefixes) match(s *simulation, path kv.Path, input int64, candidates []policy.Replica) []int32 {
	p.applyEvictions(s)
	return p.index.Match(path, int(input), candidates)
}

// applyEvictions updates the index with all reports due by now.
func (p *prefixes) applyEvictions(s *simulation) {
	n := 0
	for n < len(p.reports) && p.reports[n].at <= s.now {
		e := p.reports[n]
		p.index.Evicted(e.replica, e.node, e.lo, e.hi)
		s.tree.Unref(e.node)
		n++
	}
	if n > 0 {
		p.reports = append(p.reports[:0], p.reports[n:]...)
	}
}

// recordRouting records how many prompt tokens the router expects to be cached at the chosen
// replica: from its prefix index or, if it uses the true caches instead, from these. It adds the
// prompt to the prefix index. by are the inputs of the policy that chose.
func (p *prefixes) recordRouting(s *simulation, r *request, chosen *policy.Replica, by policy.Needs) {
	needs := s.router.needs
	if needs.all&policy.NeedBlockIndex != 0 {
		if by&policy.NeedBlockIndex == 0 {
			p.blocks.Match(r.path, int(r.out.InputTokens), []policy.Replica{*chosen})
		}
		p.blocks.RecordRouting(chosen, r.path, int(r.out.InputTokens))
	}
	tokens, known := p.expected(s, r, chosen, by)
	if !known {
		return
	}
	r.out.ExpectedCachedTokens = tokens
	if needs.all&policy.NeedShadow != 0 && (by&policy.NeedShadow != 0 || by&policy.NeedBlockIndex == 0) {
		p.index.RecordRouting(chosen.Index, r.path, int(r.out.InputTokens))
	}
}

// expected returns how many prompt tokens are expected to be cached at a candidate, by the inputs of the policy that
// chooses or else by the prefix index. It is not known without either.
func (p *prefixes) expected(s *simulation, r *request, c *policy.Replica, by policy.Needs) (tokens int64, known bool) {
	limits, matched := &s.deployments[s.replicas[c.Index].deployment].limits, c.Matched
	most := limits.maxCachedTokens(r.out.InputTokens)
	switch {
	case by&policy.NeedShadow != 0:
	case by&policy.NeedBlockIndex != 0:
		return min(blockIndexTokens(c), most), true
	case by&policy.NeedCache != 0:
		if matched = c.Cached; by&policy.NeedTierBlocks != 0 {
			matched += c.Stats.Tiers.CPU + c.Stats.Tiers.Storage
		}
	case s.router.needs.all&policy.NeedShadow != 0: // c has what admission saw last
		one := []policy.Replica{*c}
		p.match(s, r.path, r.out.InputTokens, one)
		matched = one[0].Matched
	default:
		return 0, false
	}
	return min(int64(matched)*limits.blockSize, most), true
}

// blockIndexTokens returns how many prompt tokens llm-d's index expects to be cached at a candidate.
func blockIndexTokens(r *policy.Replica) int64 {
	return int64(r.Stats.Prefix.Matched) * int64(r.Stats.Prefix.BlockTokens)
}

// watchCache subscribes the router to replica i's cache as its policies need.
func watchCache(s *simulation, i int32, c *kv.Cache) {
	w := &cacheWatcher{sim: s, replica: i, cache: c}
	for _, list := range [...][]refreshInterval{s.telemetry.periodic, s.telemetry.onDemand} {
		for _, t := range list {
			if t.field == policy.FieldCache {
				w.image = s.telemetry.counters[i].image
				if w.image == nil {
					w.image = kv.NewImage(c)
					s.telemetry.counters[i].image = w.image
				}
				c.Watch(w.image)
				watchTiers(s, i)
			}
		}
	}
	if s.router.needs.all&policy.NeedShadow != 0 && s.router.config.ShadowEvictions {
		c.Watch(w)
	}
}

// cacheWatcher forwards the changes of a cache: evictions to the router's prefix index, and all
// changes to the image of the cache if that can be stale.
type cacheWatcher struct {
	sim     *simulation
	replica int32
	cache   *kv.Cache
	image   *kv.Image // nil if not needed
}

// Inserted is called by the cache.
func (w *cacheWatcher) Inserted(group int, n kv.Node, lo, hi int32) {
	if w.image != nil {
		w.image.Inserted(group, n, lo, hi)
	}
}

// Evicted is called by the cache. The router's prefix index knows no groups: it gets the
// evictions of one of them.
func (w *cacheWatcher) Evicted(group int, n kv.Node, lo, hi int32) {
	if w.image != nil {
		w.image.Evicted(group, n, lo, hi)
	}
	if group != w.cache.PrefixGroup() {
		return
	}
	lo, hi = w.cache.PrefixBlocks(lo, hi)
	s := w.sim
	s.tree.Ref(n) // until the report is applied
	p := &s.router.prefixes
	p.reports = append(p.reports, evictionReport{s.now + s.router.config.ShadowLagUS, w.replica, n, lo, hi})
}
