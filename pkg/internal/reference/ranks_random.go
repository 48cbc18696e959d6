package reference

import "math/rand/v2"

// RandomRanks is Random, RandomGroups, RandomSessions or RandomSpeculation with data-parallel ranks, which in two of
// three cases run in lockstep.
func RandomRanks(seed uint64) (Config, []Request) {
	d := &generator{Rand: rand.New(rand.NewPCG(seed, 0x72616e6b))}
	c, requests := pick(d, Random, Random, RandomSessions, RandomGroups, RandomSpeculation)(seed)
	x := &Ranks{Size: pick(d, 2, 2, 3, 4), External: d.percent(30), Lockstep: d.percent(67),
		Interval: pick(d, 1, 2, 4, 16)}
	c.Ranks, c.Replicas = x, x.Size*pick(d, 1, 1, 1, 2)
	if !x.External && c.Routing != "weighted" {
		c.Routing, c.Scorers = pick(d, "round-robin", "least-loaded", "least-snapshot", "power-of-two",
			"prefix-affinity"), nil
	}
	if c.StepTime == nil && x.Lockstep && d.percent(50) { // what a rank computes and what all compute
		own, all := pick[int64](d, 1, 5), pick[int64](d, 0, 1, 3)
		most, chunks := pick[int64](d, 0, 2), pick[int64](d, 0, 7)
		c.StepTime = func(b Batch) int64 {
			return 10 + own*(b.Prefill+3*b.Decode+b.Drafts) + all*b.RankTokens + most*b.WidestRank + chunks*b.RankChunks
		}
	}
	return c, requests
}
