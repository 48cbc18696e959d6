package reference

import (
	"math/rand/v2"
	"slices"
)

// hashes are the hashes of the blocks that the host and its storage have. Those that a transfer still writes do not
// count.
func (h *host) hashes() (host, storage map[string]bool) {
	host, storage = map[string]bool{}, map[string]bool{}
	if h == nil {
		return host, storage
	}
	for _, b := range h.blocks {
		host[b.hash] = b.state != "storing"
	}
	if h.storage != nil {
		for _, b := range h.storage.blocks {
			storage[b.hash] = b.ready
		}
	}
	return host, storage
}

// readsTiers reports whether the router chooses by what tiers have.
func (r *router) readsTiers() bool {
	return slices.ContainsFunc(r.config.Scorers, func(s Scorer) bool { return s.Name == "tiered-prefix" })
}

// tieredBlocks counts the leading blocks of a prompt that a replica had when the router last read it: in its cache, and
// behind those in the host or else the storage, up to the first block that neither has.
func (r *router) tieredBlocks(q *request, replica int) (tiers [3]int) {
	tiers[0] = r.cachedBlocks(q, replica)
	for n := tiers[0]; n < q.Input/r.config.BlockSize; n++ {
		switch hash := q.hash((n + 1) * r.config.BlockSize); {
		case r.hosts[replica][hash]:
			tiers[1]++
		case r.storages[replica][hash]:
			tiers[2]++
		default:
			return tiers
		}
	}
	return tiers
}

// RandomTieredRouting is RandomHosts, RandomStorages or RandomHostFleets with a router that reads the tiers.
func RandomTieredRouting(seed uint64) (Config, []Request) {
	d := &generator{Rand: rand.New(rand.NewPCG(seed, 0x74726f75))}
	c, requests := pick(d, RandomHosts, RandomStorages, RandomStorages, RandomHostFleets)(seed)
	if c.Failures == nil && c.Scaling == nil {
		c.Replicas = pick(d, 2, 3, 4)
	}
	c.Routing, c.Tie = "weighted", pick(d, "random", "first", "least-inflight")
	c.Picker = pick(d, "max-score", "max-score", "weighted-random")
	c.Scorers = []Scorer{{"tiered-prefix", pick(d, 0.5, 1, 3)}}
	if d.percent(60) {
		c.Scorers = append(c.Scorers, Scorer{"queue-depth", pick(d, 0.5, 1, 2)})
	}
	c.TierWeights = [3]float64{1, pick(d, 0.8, 0.8, 0.5, 0, 1), pick(d, 0.3, 0.3, 0, 1)}
	if c.SnapshotUS == 0 && d.percent(60) {
		c.SnapshotUS = int64(d.between(1, 40)) * max(1, c.stepTime(batchOf(4, 1, 8))/4)
	}
	return c, requests
}
