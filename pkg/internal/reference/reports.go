package reference

import (
	"math/rand/v2"
	"slices"
)

// reports are what replicas report, by replica.
type reports struct {
	// queued and running are counts, free are blocks, usage is their used share.
	queued, running, free []int
	usage                 []float64
	// caches have the hashes of all full blocks.
	caches []map[string]bool
	// hosts and storages have those of the blocks that hosts and storages have, without those that a transfer writes.
	hosts, storages []map[string]bool
	// hitRate is the share of prompt tokens found in the cache, ttftMS and tpotMS are means, all over the last 10 s;
	// waitMS is the queue times the mean step.
	hitRate, ttftMS, tpotMS, waitMS []float64
	// hostUsage is the used share of the hosts' blocks, loading counts requests that load from there.
	hostUsage []float64
	loading   []int
	// adapters are those of the requests.
	adapters []map[string]bool
}

// measurement is a count at a time, and of how many.
type measurement struct{ at, count, of int64 }

// ratio is the ratio of the sums over the 10 s until now, 0 without any.
func ratio(all []measurement, now int64) float64 {
	count, of := int64(0), int64(0)
	for _, m := range all {
		if m.at > now-10_000_000 {
			count, of = count+m.count, of+m.of
		}
	}
	if of == 0 {
		return 0
	}
	return float64(count) / float64(of)
}

// readReports reads what all replicas report at now. What the others reported before stays.
func (r *router) readReports(replicas []*replica, now int64) {
	before := r.reports
	r.reports = reports{}
	for i, x := range replicas {
		if x.cuts > 0 {
			r.reports.keep(&before, i)
			continue
		}
		for _, q := range slices.Concat(x.waiting, x.running, x.loading, x.leaving()) {
			q.reported = true
		}
		r.queued = append(r.queued, len(x.waiting)+len(x.loading))
		r.running = append(r.running, len(x.running))
		r.free = append(r.free, len(x.cache.free))
		r.usage = append(r.usage, 1-float64(len(x.cache.free))/float64(len(x.cache.blocks)))
		r.caches = append(r.caches, x.cache.hashes())
		host, storage := x.host.hashes()
		r.hosts, r.storages = append(r.hosts, host), append(r.storages, storage)
		if x.host != nil {
			r.hostUsage = append(r.hostUsage, float64(len(x.host.blocks))/float64(x.host.Blocks))
			r.loading = append(r.loading, len(x.loading))
		}
		adapters := map[string]bool{}
		for _, q := range slices.Concat(x.waiting, x.running) {
			if q.Adapter != "" {
				adapters[q.Adapter] = true
			}
		}
		r.adapters = append(r.adapters, adapters)
		r.hitRate = append(r.hitRate, ratio(x.hitTokens, now))
		r.ttftMS = append(r.ttftMS, ratio(x.firstTokens, now)/1000)
		r.tpotMS = append(r.tpotMS, ratio(x.laterTokens, now)/1000)
		r.waitMS = append(r.waitMS, float64(len(x.waiting)+len(x.loading))*x.meanStepUS/1000)
	}
}

// keep adds what replica i reported before, or nothing of a new one, which has nothing to do.
func (r *reports) keep(before *reports, i int) {
	if i >= len(before.queued) {
		r.queued, r.running, r.usage = append(r.queued, 0), append(r.running, 0), append(r.usage, 0)
		r.free, r.caches = append(r.free, 0), append(r.caches, nil)
		r.hitRate, r.waitMS = append(r.hitRate, 0), append(r.waitMS, 0)
		r.ttftMS, r.tpotMS = append(r.ttftMS, 0), append(r.tpotMS, 0)
		r.adapters = append(r.adapters, nil)
		r.hosts, r.storages = append(r.hosts, nil), append(r.storages, nil)
		return
	}
	r.queued, r.running = append(r.queued, before.queued[i]), append(r.running, before.running[i])
	r.free, r.usage = append(r.free, before.free[i]), append(r.usage, before.usage[i])
	r.caches, r.hitRate = append(r.caches, before.caches[i]), append(r.hitRate, before.hitRate[i])
	r.ttftMS, r.tpotMS = append(r.ttftMS, before.ttftMS[i]), append(r.tpotMS, before.tpotMS[i])
	r.waitMS, r.adapters = append(r.waitMS, before.waitMS[i]), append(r.adapters, before.adapters[i])
	r.hosts, r.storages = append(r.hosts, before.hosts[i]), append(r.storages, before.storages[i])
}

// measureStep notes the step that ends now, and the tokens that clients get from it.
func (r *replica) measureStep(now int64) {
	us := float64(now - r.step.StartUS)
	if r.meanStepUS == 0 {
		r.meanStepUS = us
	} else {
		r.meanStepUS += float64((us - r.meanStepUS) / 10)
	}
	for _, p := range r.step.entries {
		o := &p.request.outcome
		if n := len(o.TokensUS); n == 0 || o.TokensUS[n-1] != now {
			continue
		}
		if o.Generated == 1 {
			r.firstTokens = append(r.firstTokens, measurement{now, r.seenUS - o.ArrivalUS, 1})
		}
		if o.State == Completed && o.Generated > 1 {
			r.laterTokens = append(r.laterTokens, measurement{now, r.seenUS - o.FirstTokenUS, int64(o.Generated - 1)})
		}
	}
}

// attribute is a number that a replica reports, or that the router counts.
func (r *router) attribute(name string, i int) float64 {
	switch name {
	case "queue_depth", "waiting-queue":
		return float64(r.queued[i])
	case "running", "running-requests":
		return float64(r.running[i])
	case "kv_util", "kv-cache-utilization":
		return r.usage[i]
	case "free_blocks":
		return float64(r.free[i])
	case "active-requests":
		return float64(r.inflight[i])
	case "capacity":
		return float64(r.config.MaxNumSeqs - r.running[i] - r.queued[i])
	case "hit_rate":
		return r.hitRate[i]
	case "recent_ttft_ms":
		return r.ttftMS[i]
	case "recent_tpot_ms":
		return r.tpotMS[i]
	case "est_wait_ms":
		return r.waitMS[i]
	case "kv_util_cpu":
		return r.hostUsage[i]
	case "loading":
		return float64(r.loading[i])
	}
	panic("reference: unknown attribute " + name)
}

// RandomAttributes draws a case like Random, on several replicas, of which the router takes the one that reports the
// most or the least of something. In half of the cases a step takes seconds.
func RandomAttributes(seed uint64) (Config, []Request) {
	c, requests := Random(seed)
	d := &generator{Rand: rand.New(rand.NewPCG(seed, 0x61747472))}
	names := append([]string{"capacity", "running"}, attributes...)
	c.Replicas, c.Routing, c.Scorers, c.Picker = pick(d, 2, 3, 4), "attribute", nil, ""
	c.Named.Attribute, c.Named.Sign = names[seed%uint64(len(names))], pick(d, 1, -1.0)
	if c.Tie = pick(d, "random", "first"); d.percent(50) || c.StepTime != nil {
		return c, requests
	}
	factor := 1_000_000 / max(1, c.stepTime(batchOf(4, 1, 8)))
	c.Beta = slices.Clone(c.Beta)
	for i := range c.Beta {
		c.Beta[i] *= float64(factor)
	}
	c.SnapshotUS *= factor
	if c.HorizonUS != Never {
		c.HorizonUS *= factor
	}
	for i := range requests {
		r := &requests[i]
		if r.ArrivalUS *= factor; r.DeadlineUS != Never {
			r.DeadlineUS *= factor
		}
	}
	return c, requests
}
