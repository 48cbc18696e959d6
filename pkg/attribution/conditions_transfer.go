package attribution

import (
	"fmt"
	"math"
	"slices"

	"blis/pkg/llmtext"
	"blis/pkg/stream"
)

// Conditions about KV blocks that are moved: from prefill replicas, and from tiers.

var prefillPoolFull = Condition{Name: "prefill_pool_full", Component: engineComponent, rank: rankCapacity,
	parts: anyPart,
	Doc: "at least half of the time to its first token, or of a lost request's time, was the queue of a prefill" +
		" replica, or backpressure while most requests on their way to a decode replica were in the prefill pool," +
		" and no other prefill replica was nearly idle (prefill_imbalance)",
	cause: func(p *Pattern) string {
		return fmt.Sprintf("waited %s of %s ms to the first token for a prefill replica%s (means)",
			p.mean(prefillWaitMS), p.mean(ttftMS), p.heldBack()+p.run.prefillSteps(p))
	},
	Hint: "raise the token budget of prefill replicas where it is small, add prefill replicas, or let decode replicas" +
		" compute short prompts (decider)",
	change: (*proposal).fasterPrefill,
	others: []remedy{waitThere, {"add prefill replicas", (*proposal).morePrefill}, movePool,
		{"let decode replicas compute all prompts", (*proposal).neverDisaggregate}},
	isAbsolute: true,
	holds: func(a *Analyzer, r *request) bool {
		return r.takesHalf(r.prefillWaitUS()+r.evidence.held.prefillUS) && !a.linksFull(r) && !r.prefillUneven()
	}}

var slowTransfer = Condition{Name: "slow_transfer", Component: engineComponent, rank: rankCapacity, parts: anyPart,
	Doc: "at least half of the time to its first token, or of a lost request's time, passed until its KV blocks had" +
		" come from the prefill replica, at most half of this while the other one had no room, unless transfers" +
		" hold blocks there for longer than decoding; or the links between the pools were busy at least 90 % of the" +
		" time, and then the queue of the prefill replica counts, too",
	cause: func(p *Pattern) string {
		text := ""
		if len(p.losing) > 0 && p.run.linksFull(p.losing[0]) {
			text = "; the links between the pools were busy nearly all the time, and computed blocks waited for them"
		}
		return fmt.Sprintf("KV blocks came after %s of %s ms to the first token, and moved for %s ms of these (means)"+
			"%s", p.mean(transferMS), p.mean(ttftMS), p.mean(movedMS), text)
	},
	Hint:       "use a faster link between prefill and decode replicas (transfer), or disaggregate only long prompts",
	change:     (*proposal).fasterTransfer,
	others:     []remedy{{"let decode replicas compute all prompts", (*proposal).neverDisaggregate}},
	isAbsolute: true,
	holds: func(a *Analyzer, r *request) bool {
		us := r.transferUS()
		if a.linksFull(r) {
			held := r.evidence.held.prefillUS + r.evidence.held.decodeUS
			return r.takesHalf(r.prefillWaitUS() + us + held)
		}
		return r.takesHalf(us) && (2*r.movedUS() >= us || a.transfersHold(r))
	}}

var slowHandoff = Condition{Name: "slow_handoff", Component: engineComponent, rank: rankCapacity, parts: anyPart,
	Doc: "at least half of the time to its first token, or of a lost request's time, passed between the end of its" +
		" prompt at the prefill replica and the queue of the decode replica (transfer.hop_us, alpha)",
	cause: func(p *Pattern) string {
		return fmt.Sprintf("passing the request to its decode replica took %s of %s ms to the first token (means)",
			p.mean(handoffMS), p.mean(ttftMS))
	},
	Hint:       "shorten the hop between the pools (transfer.hop_us), or disaggregate only long prompts",
	change:     (*proposal).shorterHop,
	others:     []remedy{{"let decode replicas compute all prompts", (*proposal).neverDisaggregate}},
	isAbsolute: true,
	took:       func(_ *Analyzer, r *request) taken { return taken{before: float64(r.handoffUS())} },
	holds:      func(a *Analyzer, r *request) bool { return r.takesHalf(r.handoffUS()) && !a.leaseRanOut(r) }}

var leaseTooShort = Condition{Name: "lease_too_short", Component: engineComponent, rank: rankCapacity, parts: anyPart,
	Doc: "the lease of its computed blocks ran out before its decode replica had asked for them: it failed with" +
		" transfer_timeout, or its prompt was computed again, and the time since it was first computed is at least" +
		" half of that to its first token",
	cause: func(p *Pattern) string {
		return fmt.Sprintf("computed blocks waited %s ms for the decode replica until their lease ran out (means)",
			p.mean(handoffMS))
	},
	Hint:       "lengthen the lease of computed blocks (transfer.lease_s)",
	change:     (*proposal).longerLease,
	others:     []remedy{{"let decode replicas compute all prompts", (*proposal).neverDisaggregate}},
	isAbsolute: true,
	holds:      (*Analyzer).leaseRanOut}

// leaseRanOut reports whether r failed since its computed blocks were freed too soon, or most of its time to the first
// token passed since then.
func (a *Analyzer) leaseRanOut(r *request) bool {
	failed := a.names.list[r.labels.state] == stream.StateFailed &&
		a.names.list[r.labels.reason] == stream.ReasonTransferTimeout
	return failed || r.isRecomputed() && r.takesHalf(int64(r.firstTokenOrEnd()-r.prefill.computed))
}

// isRecomputed reports whether the lease of the computed blocks of r ran out and its decode replica computed them
// again: else it would have got at least one.
func (r *request) isRecomputed() bool {
	p := r.prefill
	return p != nil && p.computed != never && p.started == never && p.transferred == never &&
		r.scheduled() != never && r.redirects == 0
}

var decodePoolFull = Condition{Name: "decode_pool_full", Component: engineComponent, rank: rankCapacity, parts: anyPart,
	Doc: "at least half of the time to its first token, or of a lost request's time, passed at the replica that" +
		" decodes while it had no room: no blocks for the transfer, or no batch slot afterwards; or in backpressure" +
		" while most requests on their way there waited for its blocks; or missed its TPOT target when all replicas" +
		" that decode had at least 32 requests",
	cause: func(p *Pattern) string {
		if mean(p.losing, decodeWaitMS) < mean(p.losing, ttftMS)/2 {
			return fmt.Sprintf("the emptiest replica that decodes had %s requests; prefill replicas computed %s of the"+
				" time (means)", p.mean(fewestResident), llmtext.Percent(p.run.prefillBusy(p.losing[0])))
		}
		return fmt.Sprintf("waited %s of %s ms to the first token for room at a replica that decodes%s (means)",
			p.mean(decodeWaitMS), p.mean(ttftMS), p.heldBack())
	},
	Hint:       "add room where tokens are generated: batch slots (max_num_seqs), KV blocks, or decode replicas",
	change:     (*proposal).moreRoomToDecode,
	others:     []remedy{movePool, waitThere, {"add decode replicas", (*proposal).moreReplicas}},
	isAbsolute: true,
	holds: func(a *Analyzer, r *request) bool {
		if a.transfersHold(r) || a.linksFull(r) || r.isRecomputed() { // else no transfer waited
			return false
		}
		return r.takesHalf(r.decodeWaitUS()+r.evidence.held.decodeUS) || a.decodesInFullPool(r)
	}}

// decodesInFullPool reports whether r missed its TPOT target when all replicas that decode were full.
func (a *Analyzer) decodesInFullPool(r *request) bool {
	return r.verdict.missed&missedTPOT != 0 && a.deploymentFor(r).Prefill != nil &&
		r.contention.fewestResident >= fullReplica
}

// prefillBusy is the share of the time, from the first to the last arrival, in which the prefill replicas of the
// deployment of a request had one to compute.
func (a *Analyzer) prefillBusy(of *request) float64 {
	d, us, first, last := a.deploymentFor(of), int64(0), stream.Micros(math.MaxInt64), stream.Micros(0)
	for _, r := range a.requests.all() {
		first, last = min(first, r.arrival()), max(last, r.arrival())
		if p := r.prefill; p != nil && p.computed != never && a.deploymentFor(r) == d {
			us += int64(p.computed - p.scheduled)
		}
	}
	if d.Prefill == nil || last <= first {
		return 0
	}
	return min(1, float64(us)/(float64(d.Prefill.Replicas)*float64(last-first)))
}

var prefillPoolIdle = Condition{Name: "prefill_pool_idle", Component: engineComponent, rank: rankCapacity,
	parts: anyPart,
	Doc: "prompts of others started during its wait or its decoding, at a replica that decodes, while the prefill" +
		" replicas of its deployment computed less than 5 % of the time",
	cause: func(p *Pattern) string {
		return fmt.Sprintf("prefill replicas computed %s of the time; the decider (%v) left %s prompt tokens of others"+
			" to the replica that decodes (mean)", llmtext.Percent(p.run.prefillBusy(p.losing[0])), p.run.decider(p),
			p.mean(promptsHere))
	},
	Hint:    "let prefill replicas compute prompts (decider), or have fewer of them",
	change:  (*proposal).disaggregate,
	isWrong: true,
	holds: func(a *Analyzer, r *request) bool {
		return a.prefillIdle(r) && r.prefill == nil && (r.behindPrompts() || r.isSlowedDown())
	}}

// promptsHere are the prompt tokens of others that the replica of r computed before its first token and while it
// decoded.
func promptsHere(r *request) float64 {
	return r.evidence.promptsAhead + float64(r.contention.interfering)
}

// idleShare is the share of the time in which an idle pool computes at most.
const idleShare = 0.05

// prefillIdle reports whether the prefill replicas of the deployment of r computed hardly anything.
func (a *Analyzer) prefillIdle(r *request) bool {
	d := a.deploymentFor(r)
	if d.Prefill == nil {
		return false
	}
	share, known := a.stats.prefillBusy[d.ID]
	if !known {
		share = a.prefillBusy(r)
		a.stats.prefillBusy[d.ID] = share
	}
	return share < idleShare
}

// decider is the type of what decides which prompts prefill replicas compute.
func (a *Analyzer) decider(p *Pattern) any {
	x := &proposal{Analyzer: a, p: p}
	return x.config("deployments." + x.deployment().ID + ".decider.type")
}

// heldBack says for how much of the time backpressure held requests back, "" if it did not.
func (p *Pattern) heldBack() string {
	if mean(p.losing, heldMS) == 0 {
		return ""
	}
	return fmt.Sprintf(", %s of them before routing, held back by backpressure (max_waiting %g)", p.mean(heldMS),
		p.run.maxWaiting(p.losing[0]))
}

// maxWaiting is how many requests may wait at a replica of the deployment of r that decodes, 0 without backpressure.
func (a *Analyzer) maxWaiting(r *request) float64 {
	if b := a.deploymentFor(r).Backpressure; b != nil {
		return float64(b.MaxWaiting)
	}
	return 0
}

// measureHeldBack finds for how long backpressure held requests back. Those on their way to a decode replica are mostly
// where they pass most of their time: in the prefill pool, or waiting for blocks. With flow control all wait there.
func (a *Analyzer) measureHeldBack() {
	if a.topology.ControlPlane.FlowControl != nil {
		return
	}
	inPrefill, forBlocks := map[string]int64{}, map[string]int64{}
	for _, r := range a.requests.all() {
		if p := r.prefill; p != nil && p.enqueued != never && p.computed != never {
			inPrefill[a.deploymentFor(r).ID] += int64(p.computed - p.enqueued)
			forBlocks[a.deploymentFor(r).ID] += r.stopped.blocks
		}
	}
	for _, r := range a.requests.all() {
		d := a.deploymentFor(r)
		if d.Backpressure == nil {
			continue
		}
		flow := r.split()[PartFlow]
		us := flow - min(flow, a.topology.ControlPlane.RoutingLatencyUS)
		switch {
		case us == 0:
		case inPrefill[d.ID] >= forBlocks[d.ID]:
			r.evidence.except().held.prefillUS = us
		default:
			r.evidence.except().held.decodeUS = us
		}
	}
}

// deploymentFor is the deployment of a request's replica or, if it was not routed, the first one for its model.
func (a *Analyzer) deploymentFor(r *request) *deployment {
	n := r.replica
	if n == missing {
		n = a.topology.candidates(a.names.list[r.labels.model], n)[0]
	}
	return a.topology.deploymentOf(n)
}

// transfersHold reports whether requests hold blocks at the replica of r longer for transfers than to decode.
func (a *Analyzer) transfersHold(r *request) bool {
	return r.replica != missing && a.stats.transferHeldUS[r.replica] > 0
}

// measureTransfers finds runStats.transferHeldUS.
func (a *Analyzer) measureTransfers() {
	a.stats.transferHeldUS = make([]int64, len(a.topology.replicas))
	a.measureLinks()
	a.stats.prefillBusy = map[string]float64{}
	for _, r := range a.requests.all() {
		if r.replica != missing && r.prefill != nil && r.firstToken() != never && r.ended() != never {
			a.stats.transferHeldUS[r.replica] += r.movedUS() - int64(r.ended()-r.firstToken())
		}
	}
}

// linksFull reports whether the links between the pools of the deployment of r were busy nearly all the time.
func (a *Analyzer) linksFull(r *request) bool {
	return r.replica != missing && a.stats.linksFull[a.topology.replicas[r.replica].deployment]
}

// fullLinks is the share of the time in which full links are busy.
const fullLinks = 0.9

// measureLinks finds runStats.linksFull, by the bytes that were moved from the first to the last transfer.
func (a *Analyzer) measureLinks() {
	type moved struct {
		blocks      int64
		first, last stream.Micros
	}
	all := map[string]moved{}
	for _, r := range a.requests.all() {
		p := r.prefill
		if p == nil || r.replica == missing || p.transferred == never || p.blocks == 0 {
			continue
		}
		id := a.topology.replicas[r.replica].deployment
		m, known := all[id]
		if !known {
			m.first = p.computed
		}
		all[id] = moved{m.blocks + p.blocks, min(m.first, p.computed), max(m.last, p.transferred)}
	}
	a.stats.linksFull = map[string]bool{}
	for i := range a.topology.Deployments {
		d := &a.topology.Deployments[i]
		m := all[d.ID]
		if d.Prefill == nil || m.last <= m.first {
			continue
		}
		rate := min(d.Transfer.OutGBPerS*float64(d.Prefill.Replicas), d.Transfer.InGBPerS*float64(d.Replicas))
		us := float64(m.blocks*d.Computed.KVBlockBytes) / (1e3 * max(1e-9, rate))
		a.stats.linksFull[d.ID] = us >= fullLinks*float64(m.last-m.first)
	}
}

var slowTier = Condition{Name: "slow_tier", Component: cacheComponent, rank: rankCapacity, parts: anyPart,
	Doc: "at least half of the time to its first token, or of a lost request's time, a link loaded KV blocks from a" +
		" tier of its replica, its own blocks or those of others",
	cause: func(p *Pattern) string {
		return fmt.Sprintf("loads from a tier took %s of %s ms to the first token; %s of %s prompt tokens loaded"+
			" (means)%s", p.mean(tierMS), p.mean(ttftMS), p.mean(loadedTokens), p.mean(inputTokens), p.run.thrashing())
	},
	Hint: "use a faster link to the tier (kv_tiers), or compute short prefixes again" +
		" (kv_offload.min_load_blocks)",
	change: (*proposal).fasterTier,
	others: []remedy{{"compute prefixes again instead of loading them", (*proposal).noTier},
		{"load only prefixes longer than these (kv_offload.min_load_blocks)", (*proposal).longerLoads},
		{"keep blocks that are loaded again in a larger cache", (*proposal).moreBlocks}},
	isAbsolute: true,
	took:       func(_ *Analyzer, r *request) taken { return taken{before: float64(r.evidence.tierUS)} },
	holds:      when(func(r *request) bool { return r.takesHalf(r.evidence.tierUS) })}

// thrashing says how many of the blocks loaded in the run had been stored shortly before, if these are many.
func (a *Analyzer) thrashing() string {
	if a.metrics == nil || a.metrics.KV.ThrashingRate == nil || *a.metrics.KV.ThrashingRate < 0.2 {
		return ""
	}
	return "; " + llmtext.Percent(*a.metrics.KV.ThrashingRate) + " of the loaded blocks had left the cache within 10 s"
}

var tierTooSmall = Condition{Name: "tier_too_small", Component: cacheComponent, rank: rankMechanism,
	parts: afterAdmitted,
	Doc: "recomputed at least 256 tokens and 30 % of its prompt that the router expected in the cache or the KV tiers" +
		" of its replica, or such tokens of others started during its wait (30 % of at least 2000); no queue was much" +
		" shorter",
	cause: func(p *Pattern) string {
		return fmt.Sprintf("neither the cache nor a tier still had %s of %s prompt tokens that had been computed"+
			" there; %s were loaded; %s (means)", p.mean(recomputedTokens), p.mean(inputTokens), p.mean(loadedTokens),
			recomputedMeanwhile(p))
	},
	Hint:   "use a larger tier (kv_tiers), or a storage below it, or spread prefixes over fewer replicas each",
	change: (*proposal).largerTier,
	others: append([]remedy{{"keep more blocks in the cache", (*proposal).moreBlocks}}, shorterQueues...),
	took:   (*Analyzer).recomputing,
	holds:  func(a *Analyzer, r *request) bool { return a.lostPrefixes(r) && a.hasTiers(r) }}

// orEnd is the time at, or the end of the request if that did not come.
func (r *request) orEnd(at stream.Micros) stream.Micros {
	if at == never {
		return r.ended()
	}
	return at
}

// prefillWaitUS is the time in the queue of a prefill replica.
func (r *request) prefillWaitUS() int64 {
	p := r.prefill
	if p == nil || p.enqueued == never {
		return 0
	}
	until := r.orEnd(p.scheduled)
	if until == never {
		return 0
	}
	return int64(until - p.enqueued)
}

// transferUS is the time from the queue of the replica that decodes until the KV blocks had come.
func (r *request) transferUS() int64 {
	p := r.prefill
	if p == nil || r.enqueued() == never {
		return 0
	}
	until := r.orEnd(p.transferred)
	if until == never {
		return 0
	}
	return max(0, int64(until-r.enqueued()))
}

// handoffUS is the time from the end of the prompt until the request entered the queue of the replica that decodes.
func (r *request) handoffUS() int64 {
	p := r.prefill
	if p == nil || p.computed == never {
		return 0
	}
	until := r.orEnd(r.enqueued())
	if until == never {
		return 0
	}
	return max(0, int64(until-p.computed))
}

// movedUS is the part of transferUS in which blocks were moved. In a recording without the start of the transfer it is
// the part in which no limit stopped the queue.
func (r *request) movedUS() int64 {
	if p := r.prefill; p != nil && p.started != never {
		if until := r.orEnd(p.transferred); until != never {
			return min(r.transferUS(), int64(until-p.started))
		}
	}
	return min(r.transferUS(), r.decodeQueueUS()-r.decodeWaitUS())
}

// decodeQueueUS is the time in the queue of the replica that decodes.
func (r *request) decodeQueueUS() int64 {
	if r.prefill == nil || r.enqueued() == never || r.leftQueue() == never {
		return 0
	}
	return int64(r.leftQueue() - r.enqueued())
}

// decodeWaitUS is the part of decodeQueueUS in which a limit stopped the queue, and all after the transfer.
func (r *request) decodeWaitUS() int64 {
	queue := r.decodeQueueUS()
	return min(queue, max(r.stopped.slots+r.stopped.budget+r.stopped.blocks, queue-r.transferUS()))
}

// measureLoads finds for how long links loaded blocks from the tiers of its replica while each request waited. A load
// ends when its request enters a batch; a link runs one at a time. What the storage gave to the tier before counts,
// too, and with one for all replicas, which gave what shared says, what it gave to others.
func (a *Analyzer) measureLoads(n int32, started []*request, shared map[*deployment]progress) {
	d := a.topology.deploymentOf(n)
	if len(d.KVTiers) == 0 {
		return
	}
	own := d.loads(started, func(tier int) bool { return !d.KVTiers[tier].Shared })
	all := shared[d]
	for _, r := range started {
		wait := float64(r.scheduled() - r.enqueued())
		us := own.last(r.scheduled()) - own.last(r.enqueued())
		us += all.last(r.scheduled()) - all.last(r.enqueued())
		if us := int64(min(wait, us)); us != 0 {
			r.evidence.except().tierUS = us
		}
	}
}

// loads is the time in µs that links take for the loads from these tiers of requests, in the order in which they enter
// batches.
func (d *deployment) loads(started []*request, from func(tier int) bool) (p progress) {
	bytes := float64(d.Computed.KVBlockBytes) / float64(max(1, d.Engine.BlockSize))
	total := 0.0
	for _, r := range started {
		for i, tokens := range []int32{r.loaded, r.promoted}[:min(2, len(d.KVTiers))] {
			if load := d.KVTiers[i].Load; tokens > 0 && from(i) {
				total += load.LatencyUS + float64(float64(tokens)*bytes/(1e3*max(1e-9, load.GBPerS)))
			}
		}
		p.at, p.tokens = append(p.at, r.scheduled()), append(p.tokens, total)
	}
	return p
}

// sharedLoads are the loads from the storages that all replicas of a deployment share.
func (a *Analyzer) sharedLoads() map[*deployment]progress {
	shares := func(d *deployment) bool { return len(d.KVTiers) > 1 && d.KVTiers[1].Shared }
	if !slices.ContainsFunc(a.topology.Deployments, func(d deployment) bool { return shares(&d) }) {
		return nil // this spares most runs a look at all requests
	}
	started, loads := map[*deployment][]*request{}, map[*deployment]progress{}
	for _, r := range a.requests.all() {
		if d := a.topology.deploymentOf(r.replica); r.promoted > 0 && r.scheduled() != never && shares(d) {
			started[d] = append(started[d], r)
		}
	}
	for d, all := range started {
		sortByEntry(all)
		loads[d] = d.loads(all, func(tier int) bool { return d.KVTiers[tier].Shared })
	}
	return loads
}

func prefillWaitMS(r *request) float64 {
	return float64(r.prefillWaitUS()+r.evidence.held.prefillUS) / 1000
}
func transferMS(r *request) float64 { return float64(r.transferUS()) / 1000 }
func movedMS(r *request) float64    { return float64(r.movedUS()) / 1000 }
func handoffMS(r *request) float64  { return float64(r.handoffUS()) / 1000 }
func decodeWaitMS(r *request) float64 {
	return float64(r.decodeWaitUS()+r.evidence.held.decodeUS) / 1000
}
func heldMS(r *request) float64 {
	return float64(r.evidence.held.prefillUS+r.evidence.held.decodeUS) / 1000
}
func tierMS(r *request) float64       { return float64(r.evidence.tierUS) / 1000 }
func loadedTokens(r *request) float64 { return float64(r.loaded) }
