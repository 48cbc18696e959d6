package attribution

import (
	"slices"

	"blis/pkg/registry"
)

// Components are what decides, as conditions are about them.
var Components = registry.Table[[]string]{
	{Name: "routing", Doc: "to which replica a request goes", Value: []string{"routing"}},
	{Name: "admission", Doc: "whether a request is let in, and when", Value: []string{"admission"}},
	{Name: "scheduling", Doc: "who is served first: priorities, the order of queues", Value: []string{"priority", "scheduler"}},
	{Name: "cache", Doc: "what replicas keep of prompts, and whom they throw out", Value: []string{"preemption"}},
	{Name: "engine", Doc: "how much replicas are set up to hold; no policy", Value: nil},
	{Name: "workload", Doc: "what was asked for; no policy", Value: nil},
}

// Ranks of conditions: whether replicas were too small for most of what was lost is looked
// for first, then what went wrong (there those of the first rank may hold for less), then
// whether there was too much of everything, then who the requests were.
const (
	rankRoom = iota
	rankMechanism
	rankOverload
	rankTrait
	ranks
)

// Thresholds of conditions.
const (
	longerFactor, longerBy = 2, 4 // a queue that is longer: twice as long, and four
	oldUS                  = 100_000
	fullQueue              = 8     // in every queue: overload
	manyTokens             = 2000  // that somebody waited behind
	fewTokens              = 256   // of a prefix that matter
	longFactor             = 4     // times the median prompt
	promptsPerToken        = 500   // that stretch steps
	busierFactor, busierBy = 2, 16 // a replica with more requests: twice as many, and 16
	crowd                  = 32    // requests at every replica
	longWaitUS             = 100_000
	fullCache              = 0.9  // of the blocks
	fullBatch              = 0.95 // of the seats
	spareCache             = 0.2  // of the blocks: five times as many would have had room
)

// Condition is one that a losing decision, or its request, may meet.
type Condition struct {
	Component string
	rank      int
	// about are the parts of the time in one of which a loss must be for the condition to
	// explain it, and what it was in others it does not; see blame.
	about partSet
	// of is the value for which the condition holds for r, as the number of a name or of a
	// replica; 0 where it has none. ok is false where it does not hold.
	of func(in *Analyzer, r *row) (value int32, ok bool)
}

// partSet is a set of Parts.
type partSet uint

func parts(of ...int) (set partSet) {
	for _, p := range of {
		set |= 1 << p
	}
	return set
}

var (
	anywhere = ^partSet(0)
	admitted = ^parts(partAdmission, partLimits)
	waiting  = parts(partQueue, partPreempted)
	decoding = parts(partDecode, partPreempted)
)

// explain reports whether the loss of r, if it has one, is in one of the parts.
func (set partSet) explain(r *row) bool { return r.loss == 0 || set&(1<<r.blame) != 0 }

// holds reports whether c holds for r and may explain its loss, if it has one, and for
// which value.
func (c *Condition) holds(in *Analyzer, r *row) (value int32, ok bool) {
	if !c.about.explain(r) {
		return 0, false
	}
	return c.of(in, r)
}

// Conditions are all that are tried, in the order in which equal ones come.
var Conditions = registry.Table[Condition]{
	{Name: "impossible", Doc: "refused on arrival: too long for every replica, or nobody serves its model",
		Value: Condition{"engine", rankMechanism, parts(partLimits), is((*Analyzer).impossible)}},
	{Name: "cache_full", Doc: "waited 100 ms or more for a batch, while fewer than 32 requests in batches took 90 % or more of the blocks of its replica (means, estimated), and no queue was much shorter",
		Value: Condition{"cache", rankRoom, waiting, is(cacheFull)}},
	{Name: "seats_full", Doc: "waited 100 ms or more for a batch, while 95 % or more of the seats (max_num_seqs) were taken and less than 20 % of the blocks of its replica (means, estimated), and no queue was much shorter",
		Value: Condition{"engine", rankRoom, waiting, is(seatsFull)}},
	{Name: "stale_signal", Doc: "sent to a queue twice as long as the shortest, and 4 longer, on signals 100 ms old or more that showed another length",
		Value: Condition{"routing", rankMechanism, admitted, is(stale)}},
	{Name: "hot_prefix", Doc: "sent to a queue twice as long as the shortest, and 4 longer, where its prefix was",
		Value: Condition{"routing", rankMechanism, admitted, is(hotPrefix)}},
	{Name: "queue_unseen", Doc: "sent to a queue twice as long as the shortest, and 4 longer, by a router that reads neither queues nor batches (inflight alone it may)",
		Value: Condition{"routing", rankMechanism, admitted, is(unseen)}},
	{Name: "queue_outweighed", Doc: "sent to a queue twice as long as the shortest, and 4 longer, which the router saw",
		Value: Condition{"routing", rankMechanism, admitted, is(outweighed)}},
	{Name: "busier_batch", Doc: "sent to a replica with twice as many requests as another, and 16 more, whose queue was not much longer, and lost most while decoding",
		Value: Condition{"routing", rankMechanism, decoding, is(busier)}},
	{Name: "prefix_unseen", Doc: "computed 256 tokens and 30 % of its prompt again, by what one in ten of its tenant finds cached, or waited behind such tokens (30 % of 2,000 or more), routed by a policy that does not look at prefixes, and no queue was much shorter",
		Value: Condition{"routing", rankMechanism, admitted, is(prefixUnseen)}},
	{Name: "prefix_passed", Doc: "sent past a replica that held 256 tokens more of its prompt",
		Value: Condition{"routing", rankMechanism, admitted, is(prefixPassed)}},
	{Name: "rejected", Doc: "refused by admission",
		Value: Condition{"admission", rankMechanism, parts(partAdmission), is(func(_ *Analyzer, r *row) bool { return r.rejected })}},
	{Name: "delayed", Doc: "delayed by admission, and lost most there",
		Value: Condition{"admission", rankMechanism, parts(partAdmission), is(func(_ *Analyzer, r *row) bool { return r.delays > 0 })}},
	{Name: "behind_lower_class", Doc: "waited behind 2,000 tokens or more, 30 % of them or more of classes of lower priority, and no queue was much shorter",
		Value: Condition{"scheduling", rankMechanism, admitted, is(behindLower)}},
	{Name: "behind_tenant", Doc: "waited behind 2,000 tokens or more, 30 % of them or more of the tenant that has 30 % of all work and 1.25 times an even part or twice its part of the requests, and no queue was much shorter",
		Value: Condition{"admission", rankMechanism, admitted, behindTenant}},
	{Name: "evicted", Doc: "computed 256 tokens and 30 % of its prompt again that the router expected to be cached, or waited behind such tokens (30 % of 2,000 or more), and no queue was much shorter",
		Value: Condition{"cache", rankMechanism, admitted, is(evicted)}},
	{Name: "preempted", Doc: "lost its place in a batch",
		Value: Condition{"cache", rankMechanism, admitted, is(func(_ *Analyzer, r *row) bool { return r.preemptions > 0 })}},
	{Name: "beside_prompts", Doc: "decoded while its replica took on 500 prompt tokens or more for each token of its answer, and missed its TPOT alone",
		Value: Condition{"scheduling", rankMechanism, admitted, is(besidePrompts)}},
	{Name: "overload", Doc: "routed when every queue held 8 or more",
		Value: Condition{"admission", rankOverload, admitted, is(func(_ *Analyzer, r *row) bool { return r.shortest >= fullQueue })}},
	{Name: "crowded", Doc: "routed when every replica had 32 requests or more, and lost most while decoding",
		Value: Condition{"admission", rankOverload, decoding, is(func(_ *Analyzer, r *row) bool { return r.idlest >= crowd })}},
	{Name: "hot_replica", Doc: "sent to a replica that gets twice its even part of the requests or more",
		Value: Condition{"routing", rankTrait, anywhere, hotReplica}},
	{Name: "burst", Doc: "in a burst of its tenant: 10 or more in a second, at three times the rate of the minute",
		Value: Condition{"workload", rankTrait, anywhere, is(func(_ *Analyzer, r *row) bool { return r.burst })}},
	{Name: "long_prompt", Doc: "a prompt four times the median or longer",
		Value: Condition{"workload", rankTrait, anywhere, is(func(in *Analyzer, r *row) bool { return int64(r.input) >= longFactor*in.facts.medianInput })}},
	{Name: "tenant", Doc: "of that tenant",
		Value: Condition{"workload", rankTrait, anywhere, trait(func(r *row) int32 { return r.tenant })}},
	{Name: "class", Doc: "of that SLO class",
		Value: Condition{"workload", rankTrait, anywhere, trait(func(r *row) int32 { return r.class })}},
}

// facts are what conditions need to know of the whole run.
type facts struct {
	medianInput int64
	heavy       int32
	// hot are the replicas that get twice an even part or more.
	hot []bool
}

func is(holds func(*Analyzer, *row) bool) func(*Analyzer, *row) (int32, bool) {
	return func(in *Analyzer, r *row) (int32, bool) { return 0, holds(in, r) }
}

// trait is a name that a request may have.
func trait(of func(*row) int32) func(*Analyzer, *row) (int32, bool) {
	return func(in *Analyzer, r *row) (int32, bool) {
		n := of(r)
		return n, in.names.list[n] != ""
	}
}

// longer reports whether r was sent to a queue that was much longer than the shortest.
func longer(r *row) bool { return r.queue >= 0 && r.queue >= longerFactor*r.shortest+longerBy }

func stale(_ *Analyzer, r *row) bool {
	if !longer(r) || r.seen.age < oldUS {
		return false
	}
	off := r.seen.queue - r.queue
	return r.seen.queue < 0 || max(off, -off) >= max(longerBy, r.queue/2)
}

func hotPrefix(in *Analyzer, r *row) bool {
	return longer(r) && !stale(in, r) && (r.seen.matched > 0 || r.seen.cached > 0)
}

func unseen(in *Analyzer, r *row) bool {
	return longer(r) && !stale(in, r) && !hotPrefix(in, r) && r.seen.queue < 0 && r.seen.running < 0
}

func outweighed(in *Analyzer, r *row) bool {
	return longer(r) && !stale(in, r) && !hotPrefix(in, r) && !unseen(in, r)
}

// busier reports whether r was sent to a replica with many more requests than another,
// where that shows in no queue.
func busier(_ *Analyzer, r *row) bool {
	return !longer(r) && r.busy >= 0 && r.busy >= busierFactor*r.idlest+busierBy
}

// waited reports whether r waited for a batch, and not since it was sent to the wrong
// queue.
func waited(r *row) bool { return r.besides > 0 && r.left()-r.enqueued >= longWaitUS && !longer(r) }

// cacheFull is about caches that are too small: one that holds many requests is full
// since there are too many.
func cacheFull(_ *Analyzer, r *row) bool {
	return waited(r) && r.held >= fullCache && r.besides < crowd
}

func seatsFull(in *Analyzer, r *row) bool {
	seats, _ := in.plan.room(r.replica)
	return waited(r) && seats > 0 && r.besides >= fullBatch*float64(seats) && r.held > 0 && r.held < spareCache
}

// blind reports whether the router did not look at prefixes.
func (r *row) blind() bool {
	return r.seen.replica != nowhere && r.seen.matched < 0 && r.seen.cached < 0
}

func prefixUnseen(_ *Analyzer, r *row) bool { return !longer(r) && r.blind() && repeats(r) }

// repeats reports whether r computed what had been computed, or waited for others who
// did.
func repeats(r *row) bool {
	return r.again >= fewTokens && 10*r.again >= 3*int64(r.input) || most(r, r.aheadAgain)
}

// most reports whether so many of the tokens that r waited behind are many of many.
func most(r *row, of int64) bool { return r.ahead >= manyTokens && 10*of >= 3*r.ahead }

func prefixPassed(in *Analyzer, r *row) bool {
	held := max(r.next.matched, r.next.cached) - max(r.seen.matched, r.seen.cached, 0)
	return r.next.replica != nowhere && int64(held)*in.plan.block(r.next.replica) >= fewTokens
}

func behindLower(_ *Analyzer, r *row) bool { return !longer(r) && most(r, r.aheadLower) }

func behindTenant(in *Analyzer, r *row) (int32, bool) {
	heavy := in.facts.heavy
	return heavy, heavy != nowhere && !longer(r) && most(r, r.aheadHeavy)
}

func evicted(_ *Analyzer, r *row) bool { return !longer(r) && !r.blind() && repeats(r) }

func hotReplica(in *Analyzer, r *row) (int32, bool) {
	return r.replica, r.replica != nowhere && in.facts.hot[r.replica]
}

// besidePrompts is about tokens that come slowly: it explains no late first token.
func besidePrompts(_ *Analyzer, r *row) bool {
	return r.output > 1 && (r.missed == 0 || r.missed == missedTPOT) && r.beside >= promptsPerToken*int64(r.output-1)
}

// learn finds the facts.
func (in *Analyzer) learn() {
	f := &in.facts
	f.heavy = in.heavy()
	var inputs []int64
	sent := make([]int64, len(in.plan.replicas))
	for i := range in.rows {
		r := in.rows[i]
		inputs = append(inputs, int64(r.input))
		if r.replica != nowhere {
			sent[r.replica]++
		}
	}
	slices.Sort(inputs)
	if len(inputs) > 0 {
		f.medianInput = inputs[(len(inputs)-1)/2]
	}
	f.hot = make([]bool, len(sent))
	for n, got := range sent {
		peers := in.plan.peersOf(int32(n))
		all := int64(0)
		for _, p := range peers {
			all += sent[p]
		}
		f.hot[n] = len(peers) > 1 && got*int64(len(peers)) >= 2*all && got > 0
	}
}
