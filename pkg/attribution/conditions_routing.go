package attribution

import (
	"fmt"
	"slices"

	"blis/pkg/llmtext"
)

// Thresholds of conditions about routing.
const (
	longerFactor, longerBy = 2, 4    // a much longer queue: twice as long, plus 4
	busierFactor, busierBy = 2, 16   // a much busier replica: twice as many requests, plus 16
	blindFactor, blindBy   = 1.25, 3 // the same for a router that does not compare loads
	staleUS                = 100_000 // age of a stale signal
	minPrefixTokens        = 256     // a prefix that matters
)

var staleSignal = Condition{Name: "stale_signal", Component: routingComponent, rank: rankMechanism,
	parts: afterAdmitted,
	Doc: "sent to a queue at least twice the shortest plus 4, on signals at least 100 ms old that showed" +
		" another length",
	cause: func(p *Pattern) string {
		if mean(p.losing, signalAgeMS) < float64(staleUS)/1000 {
			return sentTo(p) + " (means); the replica had stopped reporting, and the router saw an older state of it"
		}
		showed := ""
		unread := func(r *request) bool { return r.seen().chosen.Queue < 0 }
		if read := slices.DeleteFunc(slices.Clone(p.losing), unread); len(read) > 0 {
			showed = " showed " + llmtext.Number(mean(read, queueShown))
		}
		return sentTo(p) + fmt.Sprintf("; signals %s ms old%s (means)", p.mean(signalAgeMS), showed)
	},
	Hint:   "refresh snapshots more often, or add inflight, which is always current, to the routing score",
	change: (*proposal).readFreshQueues,
	others: otherRouters,
	holds:  when((*request).stale)}

var hotPrefix = Condition{Name: "hot_prefix", Component: routingComponent, rank: rankMechanism, parts: afterAdmitted,
	Doc: "sent to a queue at least twice the shortest plus 4, where at least half of the prefix was cached that" +
		" the router expected",
	cause: func(p *Pattern) string {
		return sentTo(p) + fmt.Sprintf(", for a prefix of %s tokens (means)", p.mean(expectedTokens))
	},
	Hint:   "lower the weight of prefixes against queues, or bound the imbalance (prefix-affinity's max_imbalance)",
	change: (*proposal).flipQueues,
	others: weighQueues,
	holds:  when((*request).followedPrefix)}

var queueUnseen = Condition{Name: "queue_unseen", Component: routingComponent, rank: rankMechanism,
	parts: afterAdmitted,
	Doc: "sent to a queue at least twice the shortest plus 4, by a router that reads neither queues nor" +
		" batches (it may read inflight)",
	cause:  func(p *Pattern) string { return sentTo(p) + " (means); " + p.run.howBlind() },
	Hint:   "add queue length to the routing score (queue-depth)",
	change: (*proposal).readQueues,
	others: otherRouters,
	holds: func(a *Analyzer, r *request) bool {
		return r.queueUnseen() && a.topology.policy("routing") != "pools" && a.draws == "" &&
			!(a.blindRouter && r.prefixIgnored() && !a.keepsSessions && r.recomputes())
	}}

var queueIgnored = Condition{Name: "queue_ignored_by_weights", Component: routingComponent, rank: rankMechanism,
	parts: afterAdmitted,
	Doc: "sent to a queue at least twice the shortest plus 4, which the router saw, apart from requests that had not" +
		" reached the engine",
	cause:  func(p *Pattern) string { return sentTo(p) + " (means), " + seenOf(p) },
	Hint:   "raise the weight of queue-depth against the other scorers",
	change: (*proposal).flipQueues,
	others: weighQueues,
	holds: when(func(r *request) bool {
		return r.longerQueue() && !r.stale() && !r.followedPrefix() && !r.queueUnseen()
	})}

var imbalancedBatch = Condition{Name: "imbalanced_batch", Component: routingComponent, rank: rankMechanism,
	parts: inDecode,
	Doc: "sent to a replica with at least twice as many requests as another plus 16 (1.25 times plus 3 by a router" +
		" that draws at random or goes in turn), while its queue was not much longer; most time lost in decode",
	cause: func(p *Pattern) string {
		text := fmt.Sprintf("sent to a replica with %s requests while another had %s (means)", p.mean(resident),
			p.mean(fewestResident))
		switch {
		case p.run.blindRouter:
			text += "; " + p.run.howBlind()
		case p.run.tiesFirst:
			text += "; of replicas with equal scores the first one is chosen (tie: first)"
		}
		return text
	},
	Hint:   "add running requests or inflight to the routing score (running-requests, active-requests)",
	change: (*proposal).spreadRequests,
	others: append([]remedy{{"weigh requests in flight", (*proposal).readQueues}}, otherRouters...),
	holds: func(a *Analyzer, r *request) bool {
		return a.imbalanced(r) && a.topology.policy("routing") != "pools" && a.draws == ""
	}}

// imbalanced reports whether r was sent to a replica with many more requests than another.
func (a *Analyzer) imbalanced(r *request) bool {
	own, fewest := float64(r.contention.resident), float64(r.contention.fewestResident)
	if r.longerQueue() || own < 0 {
		return false
	}
	return own >= float64(busierFactor*fewest)+busierBy || a.blindRouter && own >= float64(blindFactor*fewest)+blindBy
}

// drawsBlindly reports whether the router does not compare loads, or draws at random whatever it has compared.
func (x *proposal) drawsBlindly() bool {
	switch x.topology.policy("routing") {
	case "random", "round-robin", "session-affinity":
		return true
	}
	return x.drawing() != ""
}

// howBlind says how a router chooses that does not compare queues.
func (a *Analyzer) howBlind() string {
	switch a.topology.policy("routing") {
	case "random":
		return "the policy draws at random"
	case "round-robin":
		return "the policy goes in turn"
	case "session-affinity":
		return "the policy keeps each session where it is"
	}
	return "the policy does not read queue lengths"
}

// spreadRequests proposes to draw among replicas with equal scores, where the first one is chosen.
func (x *proposal) spreadRequests() []Change {
	if x.tiesFirst {
		return []Change{x.set(tieRule, "random")}
	}
	return x.readQueues()
}

// tieRule is the parameter for replicas with equal scores.
const tieRule = "policies.routing.params.tie"

var poolTooSmall = Condition{Name: "pool_too_small", Component: routingComponent, rank: rankMechanism,
	parts: afterAdmitted,
	Doc: "sent by the policy pools to a queue at least twice the shortest plus 4, or to a replica with at least" +
		" twice as many requests as another plus 16, of another pool",
	cause: func(p *Pattern) string {
		return sentTo(p) + fmt.Sprintf(" (means); the pool that the policy chose (by %v) is too small for its requests",
			(&proposal{Analyzer: p.run}).config("policies.routing.params.by"))
	},
	Hint:   "give that pool more replicas (shares), or route by load over all of them",
	change: policy("routing", "least-loaded"),
	others: otherRouters,
	holds: func(a *Analyzer, r *request) bool {
		return a.topology.policy("routing") == "pools" && (r.longerQueue() && !r.stale() || a.imbalanced(r))
	}}

// temperature is the parameter of dynamo-kv by which it draws at random.
const temperature = "policies.routing.params.router_temperature"

var prefixUnseen = Condition{Name: "prefix_unseen", Component: routingComponent, rank: rankMechanism,
	parts: afterAdmitted,
	Doc: "routed by a policy that does not read prefixes, or gives them no weight (overlap_score_credit 0), no queue" +
		" much shorter; recomputed at least 256 tokens and 30 % of its prompt (by what the best tenth of its tenant" +
		" finds cached), or such tokens of others started during its wait (30 % of at least 2000)",
	cause: func(p *Pattern) string {
		return fmt.Sprintf("routed without prefix lookup; %s of %s prompt tokens cached; %s (means)",
			p.mean(cachedTokens), p.mean(inputTokens), recomputedMeanwhile(p))
	},
	Hint: "route by cached prefixes and queues: weighted (scorer prefix-affinity or precise-prefix) or" +
		" prefix-affinity",
	change: (*proposal).readPrefixes,
	others: otherRouters,
	took:   (*Analyzer).recomputing,
	holds: func(a *Analyzer, r *request) bool {
		return (a.blindRouter || !r.longerQueue()) && r.prefixIgnored() && !a.keepsSessions && r.recomputes()
	}}

var prefixHitSkipped = Condition{Name: "prefix_hit_skipped", Component: routingComponent, rank: rankMechanism,
	parts: afterAdmitted,
	Doc:   "not sent to a replica that held at least 256 more tokens of its prompt",
	cause: func(p *Pattern) string {
		return fmt.Sprintf("another replica held at least 256 more prompt tokens; %s of %s cached here (means)",
			p.mean(cachedTokens), p.mean(inputTokens))
	},
	Hint:   "raise the weight of prefixes, or keep requests with one prefix together",
	others: otherRouters,
	holds: func(a *Analyzer, r *request) bool {
		chosen, next := &r.seen().chosen, &r.seen().nextBest
		more := int64(next.Prefix - max(chosen.Prefix, 0))
		return next.Replica != missing && more*a.topology.blockSize(next.Replica) >= minPrefixTokens && a.draws == ""
	}}

var hotReplica = Condition{Name: "hot_replica", Component: routingComponent, rank: rankTrait, parts: anyPart,
	Doc:    "sent to a replica that gets at least twice an even share of the requests",
	cause:  always("no other condition explains these; sent to a replica that gets at least twice an even share"),
	Hint:   "balance by active-requests or queue-depth",
	change: (*proposal).readQueues,
	others: otherRouters,
	holds:  func(a *Analyzer, r *request) bool { return r.replica != missing && a.stats.hotReplicas[r.replica] },
	value:  func(_ *Analyzer, r *request) int32 { return r.replica }, valueName: (*Analyzer).Replica}

// longerQueue reports whether r was sent to a queue that was much longer than the shortest.
func (r *request) longerQueue() bool {
	c := &r.contention
	return c.queue >= 0 && c.queue >= longerFactor*c.shortest+longerBy
}

// seenOf says what the router saw of the queues of a pattern.
func seenOf(p *Pattern) string {
	if away := mean(p.losing, underway); 2*away > mean(p.losing, ownQueue) {
		return llmtext.Number(away) + " of them on their way to the engine, which signals of queues do not count"
	}
	return "which the router saw"
}

// stale reports whether r was sent to a much longer queue on old signals that were wrong.
func (r *request) stale() bool {
	queue, seen := r.contention.queue, &r.seen().chosen
	cutOff := r.labels.queuesCurrent && seen.Queue >= 0 // the router should have seen the queue as it was
	if !r.longerQueue() || seen.AgeUS < staleUS && !cutOff {
		return false
	}
	if cutOff {
		queue -= r.contention.underway
	}
	off := seen.Queue - queue
	return seen.Queue < 0 || max(off, -off) >= max(longerBy, queue/2)
}

// followedPrefix reports whether r was sent to a much longer queue for a prefix, and found at least half of it.
func (r *request) followedPrefix() bool {
	found := 2*r.tokens.cached >= r.tokens.expected || r.scheduled() == never
	return r.longerQueue() && !r.stale() && r.seen().chosen.Prefix > 0 && found
}

// queueUnseen reports whether r was sent to a much longer queue by a router that reads none.
func (r *request) queueUnseen() bool {
	seen := &r.seen().chosen
	return r.longerQueue() && !r.stale() && !r.followedPrefix() && seen.Queue < 0 && seen.Running < 0
}

// prefixIgnored reports whether the router did not read prefixes, or not count them.
func (r *request) prefixIgnored() bool {
	seen := &r.seen().chosen
	return seen.Replica != missing && seen.Prefix < 0
}

// recomputes reports whether r recomputed much of its prompt, or requests that did started during its wait, or slowed
// it down while it decoded.
func (r *request) recomputes() bool {
	c := &r.contention
	return c.recomputed >= minPrefixTokens && 10*c.recomputed >= 3*int64(r.tokens.input) ||
		r.mostlyBehind(c.ahead.recomputed) || r.isSlowedDown() && 10*c.interferingRecomputed >= 3*c.interfering
}

var prefixForgotten = Condition{Name: "prefix_index_small", Component: routingComponent, rank: rankMechanism,
	parts: afterAdmitted,
	Doc: "the router's prefix index (shadow_blocks) is at most half as large as the cache of a replica, and the" +
		" router expected nothing; recomputed at least 256 tokens and 30 % of its prompt (by what the best tenth of" +
		" its tenant finds cached), or such tokens of others started during its wait",
	cause: func(p *Pattern) string {
		return fmt.Sprintf("the router's index expected %s of %s prompt tokens; %s found; %s (means)",
			p.mean(expectedTokens), p.mean(inputTokens), p.mean(cachedTokens), recomputedMeanwhile(p))
	},
	Hint:   "enlarge the router's prefix index: control_plane.shadow_blocks as large as the cache of a replica",
	change: (*proposal).largerIndex,
	took:   (*Analyzer).recomputing,
	holds: func(a *Analyzer, r *request) bool {
		return a.indexSmall(r) && !r.prefixIgnored() && r.tokens.expected < minPrefixTokens && r.recomputes()
	}}

var stalePrefixes = Condition{Name: "stale_prefixes", Component: routingComponent, rank: rankMechanism,
	parts: afterAdmitted,
	Doc: "the router knew the caches as they were at least 100 ms ago (snapshots.cache); recomputed at least 256" +
		" tokens and 30 % of its prompt (by what the best tenth of its tenant finds cached), or such tokens of" +
		" others started during its wait or its decoding",
	cause: func(p *Pattern) string {
		return fmt.Sprintf("routed by caches as they were up to %s ms ago; %s of %s prompt tokens cached; %s"+
			" (means)", p.mean(cacheAgeMS), p.mean(cachedTokens), p.mean(inputTokens), recomputedMeanwhile(p))
	},
	Hint:   "report caches at once (snapshots.cache), or route by what was sent (prefix-affinity) or by session",
	change: (*proposal).readFreshCaches,
	others: otherRouters,
	took:   (*Analyzer).recomputing,
	holds:  when(func(r *request) bool { return r.seen().cacheAgeUS >= staleUS && r.recomputes() })}

func cacheAgeMS(r *request) float64 { return float64(r.seen().cacheAgeUS) / 1000 }

// indexSmall reports whether the router's prefix index is much smaller than the cache of the replica of r.
func (a *Analyzer) indexSmall(r *request) bool {
	index := a.topology.ControlPlane.ShadowBlocks
	return index > 0 && 2*index <= a.topology.deploymentOf(r.replica).usableBlocks()
}
