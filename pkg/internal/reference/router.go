package reference

import "slices"

// router chooses a replica for each request.
type router struct {
	config *Config
	turn   int
	// turns counts the turns of round-robin in a cluster whose replicas come and go, lastTurns has the last one of
	// each.
	turns     int
	lastTurns []int
	// ties and draws are the random numbers for ties and for everything else. Each request has its own
	// part of them, by its position in the workload.
	ties, draws numberStream
	position    int
	tieDraws    int
	// inflight counts the requests sent to each replica that have not left it.
	inflight []int
	indexes  []prefixIndex
	// among are the numbers of the candidates in a cluster that scales.
	among []int
	// indexed: it keeps prefix indexes though it may not choose by them.
	indexed bool
	// blocks are llm-d's indexes of prompts.
	blocks []prefixIndex
	// reports are what replicas reported last.
	reports
	// variables are those of stateful.
	variables variables
	// state is that of the profile, and now the time of the choice.
	state profileState
	now   int64
	// settled: the events of this instant are done, and what replicas report at it has been read.
	settled bool
	// requests are all of the workload.
	requests []*request
	// blind: it knows of no prefixes.
	blind bool
}

// choose picks the replica of a request and returns the tokens that the router expects to be cached
// there. It counts the request as in flight.
func (r *router) choose(q *request, replicas []*replica) (chosen, expected int) {
	chosen, expected = r.prefer(q, replicas)
	r.inflight[chosen]++
	if r.hasIndexes() {
		return chosen, r.remember(q, chosen)
	}
	return chosen, expected
}

// prefer returns the replica that the policy picks, and what it expects to be cached there.
func (r *router) prefer(q *request, replicas []*replica) (chosen, expected int) {
	if r.config.SnapshotUS == 0 && r.among == nil {
		r.readReports(replicas, r.now)
	}
	switch r.config.Routing {
	case "round-robin":
		chosen = r.turn % len(replicas)
		r.turn++
	case "least-loaded", "least-snapshot":
		chosen = r.best(r.loads(r.config.Routing == "least-snapshot"))
	case "power-of-two":
		chosen = r.twoChoices(len(replicas))
	case "prefix-affinity":
		chosen = r.longestPrefix(q)
	case "pools":
		chosen = r.pooled(q)
	case "stateful":
		chosen = r.stateful()
	case "attribute":
		var values []float64
		for i := range replicas {
			values = append(values, float64(r.config.Named.Sign*r.attribute(r.config.Named.Attribute, i)))
		}
		chosen = r.best(values)
	case "llm-d":
		chosen, expected = r.llmd(q)
	case "profile":
		chosen, expected = r.profile(q, replicas)
	case "dynamo-kv":
		chosen, expected = r.dynamo(q, replicas)
	case "weighted":
		var scores []float64
		for i := range replicas {
			scores = append(scores, r.score(q, replicas, i))
		}
		chosen = r.pick(scores)
		if r.readsTiers() {
			tiers := r.tieredBlocks(q, chosen)
			expected = (tiers[0] + tiers[1] + tiers[2]) * r.config.BlockSize
		}
	}
	return chosen, min(expected, r.most(q))
}

// known is the number of leading blocks of a prompt in the index of replica i.
func (r *router) known(i int, hashes []string) int {
	if r.blind {
		return 0
	}
	return r.indexes[i].matched(hashes)
}

// remember notes the prompt of a request that goes to a replica, and returns the tokens that were expected there.
func (r *router) remember(q *request, chosen int) (expected int) {
	hashes := r.hashes(q)
	expected = r.indexes[chosen].matched(hashes) * r.config.BlockSize
	r.indexes[chosen].touch(hashes, r.capacity())
	return min(expected, r.most(q))
}

// most is how many tokens of a prompt can be cached: the last one is always computed.
func (r *router) most(q *request) int { return (q.Input - 1) / r.config.BlockSize * r.config.BlockSize }

// score is the weighted sum for replica i.
func (r *router) score(q *request, replicas []*replica, i int) float64 {
	sum := 0.0
	for _, s := range r.config.Scorers {
		score := 0.0
		switch s.Name {
		case "prefix-affinity":
			if hashes := r.hashes(q); len(hashes) > 0 {
				score = float64(r.known(i, hashes)) / float64(len(hashes))
			}
		case "tiered-prefix":
			for tier, n := range r.tieredBlocks(q, i) {
				score += float64(r.config.TierWeights[tier] * float64(n))
			}
			score /= float64(max(1, q.Input/r.config.BlockSize))
		case "queue-depth":
			score = queueDepthScore(r.queued, i)
		}
		sum += float64(s.Weight * min(max(score, 0), 1))
	}
	return sum
}

// queueDepthScore is 1 for the shortest of the wait queues and 0 for the longest.
func queueDepthScore(depths []int, i int) float64 {
	least, most := slices.Min(depths), slices.Max(depths)
	if least == most {
		return 1
	}
	return float64(most-depths[i]) / float64(most-least)
}

// hashes are the hashes of all full blocks of the prompt.
func (r *router) hashes(q *request) []string {
	var hashes []string
	for n := r.config.BlockSize; n <= q.Input; n += r.config.BlockSize {
		hashes = append(hashes, q.hash(n))
	}
	return hashes
}

// hasIndexes reports whether the router keeps prefix indexes.
func (r *router) hasIndexes() bool {
	return r.indexed || r.config.Routing == "prefix-affinity" ||
		slices.ContainsFunc(r.config.Scorers, func(s Scorer) bool { return s.Name == "prefix-affinity" })
}

func (r *router) capacity() int {
	if r.config.ShadowBlocks == 0 {
		return defaultShadowBlocks
	}
	return r.config.ShadowBlocks
}

// prefixIndex is what the router assumes to be cached on a replica: hashes, the next to evict first.
// A block always comes after the blocks that follow it in a prompt, so no hash remains without those
// before it.
type prefixIndex []string

// matched is the number of leading blocks of a prompt in the index.
func (s prefixIndex) matched(hashes []string) int {
	n := 0
	for n < len(hashes) && slices.Contains(s, hashes[n]) {
		n++
	}
	return n
}

// touch runs a prompt and frees it at once: its blocks are removed, the oldest others are evicted to
// make room, and all blocks are appended as the newest, last block first. Of a prompt longer than
// the capacity only the head counts.
func (s *prefixIndex) touch(hashes []string, capacity int) {
	hashes = hashes[:min(len(hashes), capacity)]
	for _, h := range hashes[:s.matched(hashes)] {
		i := slices.Index(*s, h)
		*s = slices.Delete(*s, i, i+1)
	}
	for len(*s)+len(hashes) > capacity {
		*s = (*s)[1:]
	}
	for _, h := range slices.Backward(hashes) {
		*s = append(*s, h)
	}
}
