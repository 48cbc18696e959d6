package policy

import "math"

// Request is what the control plane knows of a request. The output length is not part of it.
type Request struct {
	// Tenant, Class, Model and Session are names, "" where the request has none; TenantID and SessionID
	// number them (SessionID is -1 without a session).
	Tenant, Class, Model, Session string
	TenantID, SessionID           int32
	// Tier is the tier of the SLO class: Critical, Standard or Sheddable.
	Tier string
	// InputTokens is the prompt length, Predicted the predicted output length.
	InputTokens int64
	Predicted   float64
	// Priority is the priority of the SLO class and, from routing on, the one from the priority policy.
	// Higher is more urgent.
	Priority float64
	// Requested is the priority that the request asks for: lower is more urgent, 0 if it asks for none.
	Requested float64
	// Times are in µs of simulated time; DeadlineUS is negative if there is none.
	ArrivalUS, DeadlineUS int64
	// TTFTTargetMS is the TTFT target of the SLO class, 0 if it has none.
	TTFTTargetMS float64
	// Turn is the request's index in its session, from 0; Delays is how often admission delayed it.
	Turn, Delays int64
}

// The tiers of SLO classes.
const (
	Critical  = "critical"
	Standard  = "standard"
	Sheddable = "sheddable"
)

// Tenant holds the router's own counts for the request's tenant.
type Tenant struct {
	// Requests counts the offered ones so far, including this one; Active ones were admitted and have
	// not left, ActiveSheddable are those of them in the sheddable tier.
	Requests, Active, ActiveSheddable int64
	// Rate is requests per second over the last 10 s.
	Rate float64
	// Burst: the last second had at least 10 requests and three times the rate of the last 60 s.
	Burst bool
}

// Cluster holds the router's own counts for all requests.
type Cluster struct {
	// Inflight requests were admitted and have not left.
	Inflight int64
	// Rate counts offered and Throughput completed requests per second, over the last 10 s.
	Rate, Throughput float64
	// Tenants is the number of tenants seen.
	Tenants int64
}

// Replica is a candidate as the router sees it.
type Replica struct {
	// Index is the replica's number in the cluster. Inflight is the number of requests that were sent
	// there and have not left: the router's own count, never stale.
	Index, Inflight int32
	// Matched is how many leading blocks of the prompt the router expects to be cached there (its
	// shadow), out of Blocks full ones.
	Matched, Blocks int32
	Snapshot
	// Stats is the rest of the snapshot.
	Stats *Stats
}

// Snapshot is what the replica reported; Stats.TakenUS has the time of each value.
type Snapshot struct {
	// QueueDepth requests wait, Running sequences are in the batch.
	QueueDepth, Running int32
	// FreeBlocks and KVUtil describe the block cache; blocks kept only for reuse count as free.
	FreeBlocks int32
	// Cached is how many leading blocks of the prompt are in the replica's cache.
	Cached int32
	KVUtil float64
}

// Stats are a replica's own statistics, 0 where nothing was counted yet.
type Stats struct {
	// HitRate is the share of prompt tokens found cached, RecentTTFTMS and RecentTPOTMS are means; all
	// over the last 10 s.
	HitRate, RecentTTFTMS, RecentTPOTMS float64
	// EstWaitMS is the queue depth times the mean step time.
	EstWaitMS float64
	// KVUtilCPU is the share of the blocks of the tier cpu in use, Loading the number of requests that load from it;
	// both are 0 without a tier.
	KVUtilCPU float64
	Loading   int32
	// MaxSeqs is the maximum number of sequences that the replica runs.
	MaxSeqs int32
	// KVTokens is the number of tokens for which it has KV blocks.
	KVTokens int64
	// TakenUS is when each value of the snapshot was read: negative if never, Fresh if the value is
	// never stale.
	TakenUS [Fields]int64
	// StepUS is the mean step time, weighted toward recent steps. PrefillUS is the time of the prompt
	// by itself, without the part expected to be cached. Both are the router's own estimates.
	StepUS, PrefillUS float64
	// Prefix is what the router's block index has of the prompt.
	Prefix PrefixMatch
	// PrefillTokens are the tokens of prompts sent there that have no first token yet, without those
	// that were expected to be cached.
	PrefillTokens int64
	// Adapter is what the request's LoRA adapter has there, as old as QueueDepth.
	Adapter AdapterMatch
	// Active are the prompt blocks of requests in flight there.
	Active ActiveMatch
	// Tiers are blocks of the prompt in the replica's KV tiers.
	Tiers TierMatch
}

// TierMatch counts the leading blocks of a prompt behind those in a replica's cache that are in its tiers, as old as
// Cached. A block in both counts as CPU.
type TierMatch struct{ CPU, Storage int32 }

// AdapterMatch says whether a request there, waiting or running, has the adapter. Count adapters have such requests,
// and the replica serves Max at a time.
type AdapterMatch struct {
	Active     bool
	Count, Max int32
}

// ActiveMatch is the match of a prompt with ActiveBlocks: requests in flight have Blocks full blocks of
// BlockTokens tokens, of which Shared are leading blocks of the prompt.
type ActiveMatch struct{ Blocks, Shared, BlockTokens int }

// PrefixMatch is the match of a prompt with a BlockIndex: Matched of its Blocks blocks, each of
// BlockTokens tokens, the last one possibly of fewer.
type PrefixMatch struct{ Matched, Blocks, BlockTokens int32 }

// share returns which part of the blocks matches.
func (m *PrefixMatch) share() float64 {
	if m.Blocks == 0 {
		return 0
	}
	return float64(m.Matched) / float64(m.Blocks)
}

// Uncached returns how many tokens of a prompt are not expected to be cached, as llm-d counts them: a
// partly full last block that does not match counts in full (llm-d-router v0.10.0,
// dataproducer/inflightload/producer.go).
func (m *PrefixMatch) Uncached(input int64) int64 {
	indexed := int64(m.Blocks) * int64(m.BlockTokens)
	return indexed - int64(m.Matched)*int64(m.BlockTokens) + max(0, input-indexed)
}

// Field is a snapshot value that has its own age.
type Field uint8

// The snapshot fields. Fields is their number.
const (
	FieldQueueDepth Field = iota
	FieldRunning
	FieldKVUtil // and free blocks
	FieldHitRate
	FieldRecentTTFT
	FieldRecentTPOT
	FieldEstWait
	FieldCache // the content of the replica's cache and its tiers
	FieldTier  // KVUtilCPU and Loading
	Fields
)

// Fresh is the TakenUS of a value that is never stale.
const Fresh = math.MaxInt64

// FieldNames are the names of the fields in files.
var FieldNames = [Fields]string{"queue_depth", "running", "kv_util", "hit_rate", "recent_ttft_ms", "recent_tpot_ms",
	"est_wait_ms", "cache", "kv_util_cpu"}

// Capacity is how many more sequences the replica could run.
func (r *Replica) Capacity() int32 { return r.Stats.MaxSeqs - r.Running - r.QueueDepth }

// View is what admission, priority and routing see of a request, its tenant and the cluster. It is
// read-only, and valid until the policy returns, because its memory is reused.
type View struct {
	NowUS   int64
	Request *Request
	// Draw determines the random numbers of the decision.
	Draw    DrawKey
	Tenant  Tenant
	Cluster Cluster
	// Replicas are the candidates, the replicas that can hold the request, in order of index. Routers have
	// at least one; admission and priority may have none while a deployment is scaled to zero.
	Replicas []Replica
	// Extremes are those of all replicas, nil if there are few. Matched are the candidates whose count Matched is above
	// 0 if there are Extremes.
	Extremes *Extremes
	Matched  []int32
	// Trace records how a router decides; nil if the decision is not traced.
	Trace *Trace
	// memory is that of the policy which is deciding, if it has one.
	memory *memory
}

// Local is what a replica's scheduler sees: one request, and its own replica at this moment. Like a
// View it is read-only, and valid until the policy returns.
type Local struct {
	NowUS   int64
	Request *Request
	// Draw determines the random numbers of the decision.
	Draw DrawKey
	// Hints are those of the priority policy, in the order of its names.
	Hints   [MaxHints]float64
	Replica Snapshot
	// Sequence is the progress of the request if it runs.
	Sequence Sequence
	// memory is that of the policy which is deciding, if it has one.
	memory *memory
}

// MaxHints is the maximum number of hints of a priority policy.
const MaxHints = 4

// Sequence is the progress of a running request, for preemption policies.
type Sequence struct {
	// Generated tokens were emitted; Computed tokens occupy Blocks blocks.
	Generated, Computed, Blocks int
}

// Saturation is the mean over the candidates of max(queue/5, KV usage/0.8). llm-d calls a pool
// saturated from 1 on.
func (v *View) Saturation() float64 {
	return v.SaturationWith(func(*Replica) int32 { return 0 })
}

// SaturationWith is the saturation if each candidate had more requests in its queue. A deployment without replicas is
// saturated.
func (v *View) SaturationWith(more func(*Replica) int32) float64 {
	if len(v.Replicas) == 0 {
		return 1
	}
	sum := 0.0
	for i := range v.Replicas {
		r := &v.Replicas[i]
		sum += max(float64(r.QueueDepth+more(r))/5, r.KVUtil/0.8)
	}
	return sum / float64(len(v.Replicas))
}

// BestTTFTUS is the lowest estimated time to first token of any candidate: its queue depth times
// stepUS, or times its own mean step if stepUS is NaN, plus the time of the prompt.
func (v *View) BestTTFTUS(stepUS float64) float64 {
	best := math.Inf(1)
	for i := range v.Replicas {
		r := &v.Replicas[i]
		step := stepUS
		if math.IsNaN(step) {
			step = r.Stats.StepUS
		}
		best = min(best, float64(float64(r.QueueDepth)*step)+r.Stats.PrefillUS)
	}
	return best
}

// Needs is the set of view fields that a policy reads; other fields need not be maintained.
type Needs uint32

// The snapshot fields as needs.
const (
	NeedQueueDepth Needs = 1 << FieldQueueDepth
	NeedRunning    Needs = 1 << FieldRunning
	needKVUtil     Needs = 1 << FieldKVUtil
	NeedHitRate    Needs = 1 << FieldHitRate
	NeedRecentTTFT Needs = 1 << FieldRecentTTFT
	NeedRecentTPOT Needs = 1 << FieldRecentTPOT
	NeedEstWait    Needs = 1 << FieldEstWait
	NeedCache      Needs = 1 << FieldCache // Cached and Blocks
	NeedTier       Needs = 1 << FieldTier
)

// The other needs. In a View, Request is nil without NeedRequest; a Local always has its own.
const (
	NeedRequest      Needs = 1 << (iota + Fields)
	NeedShadow             // Matched and Blocks
	NeedEstimate           // StepUS and PrefillUS; with NeedShadow
	NeedTenant             // counts, and TenantID
	NeedRates              // of tenants
	NeedClusterRates       // Rate and Throughput
	NeedSession            // SessionID
	NeedPredicted
	NeedPriority      // the result of the priority policy
	NeedBlockIndex    // Stats.Prefix
	NeedPrefillTokens // Stats.PrefillTokens
	NeedActiveBlocks  // Stats.Active
	NeedAdapter       // Stats.Adapter, with NeedQueueDepth
	NeedTierBlocks    // Stats.Tiers, with NeedCache
	needTraffic       // Fleet.Traffic
	needEngine        // Fleet.Engine
)

// NeedsSnapshot is the set of all snapshot fields.
const NeedsSnapshot Needs = 1<<Fields - 1

// NeedsPrefix is the set of needs about cached prefixes.
const NeedsPrefix = NeedShadow | NeedCache | NeedBlockIndex

// Has reports whether the snapshot field is needed.
func (n Needs) Has(f Field) bool { return n>>f&1 == 1 }
