package policy

import "math"

// Request is what the control plane knows of a request. How long its answer
// will be is not among it.
type Request struct {
	// Tenant, Class, Model and Session are names, "" where the request has none;
	// TenantID and SessionID number them (SessionID is -1 without a session).
	Tenant, Class, Model, Session string
	TenantID, SessionID           int32
	// Tier is the class's: Critical, Standard or Sheddable.
	Tier string
	// InputTokens is the length of the prompt, Predicted what somebody believes
	// the answer's to be.
	InputTokens int64
	Predicted   float64
	// Priority is the class's; from routing on, what the priority policy gave.
	// Higher is sooner.
	Priority float64
	// Times are µs of simulated time; DeadlineUS is negative if there is none.
	ArrivalUS, DeadlineUS int64
	// TTFTTargetMS is what the class was promised, 0 if nothing.
	TTFTTargetMS float64
	// Turn is its place in its session, from 0; Delays is how often admission put
	// it off.
	Turn, Delays int64
}

// The tiers of SLO classes.
const (
	Critical  = "critical"
	Standard  = "standard"
	Sheddable = "sheddable"
)

// Tenant is the router's own count of the request's tenant.
type Tenant struct {
	// Requests were offered so far, this one included; Active of them were
	// admitted and have not left, ActiveSheddable of those in the sheddable tier.
	Requests, Active, ActiveSheddable int64
	// Rate is requests per second over the last 10 s.
	Rate float64
	// Burst: the last second had at least 10 requests and three times the rate
	// of the last 60 s.
	Burst bool
}

// Cluster is the router's own count of everything.
type Cluster struct {
	// Inflight requests were admitted and have not left.
	Inflight int64
	// Rate is of offered, Throughput of completed requests per second over the
	// last 10 s.
	Rate, Throughput float64
	// Tenants is how many have been seen.
	Tenants int64
}

// Replica is a candidate as the router sees it.
type Replica struct {
	// Index is the replica's number in the cluster. Inflight is how many requests
	// were sent there and have not left: the router's own count, never stale.
	Index, Inflight int32
	// Matched is how many leading blocks of the prompt the router believes to be
	// there (its shadow), of Blocks full ones.
	Matched, Blocks int32
	Snapshot
	// Stats are the rest of the snapshot.
	Stats *Stats
}

// Snapshot is what the replica said of itself, each value as old as
// Stats.TakenUS says.
type Snapshot struct {
	// QueueDepth requests wait, Running sequences are in the batch.
	QueueDepth, Running int32
	// FreeBlocks and KVUtil are of the block cache; blocks that are only kept for
	// their content are free.
	FreeBlocks int32
	// Cached is how many leading blocks of the prompt are in the true cache.
	Cached int32
	KVUtil float64
}

// Stats are a replica's own statistics, 0 where there is nothing to count yet.
type Stats struct {
	// HitRate is the share of prompt tokens found cached, RecentTTFTMS and
	// RecentTPOTMS are means, all over the last 10 s.
	HitRate, RecentTTFTMS, RecentTPOTMS float64
	// EstWaitMS is the queue's length times the mean time of a step.
	EstWaitMS float64
	// MaxSeqs is the most sequences that the replica runs.
	MaxSeqs int32
	// TakenUS is when each value of the snapshot was read, negative if it has not
	// been and Fresh if it is as it is.
	TakenUS [Fields]int64
	// StepUS is the mean time of a step, newer ones counting more; PrefillUS is
	// how long the prompt takes alone, without what the shadow believes to be
	// cached. The router's own estimates.
	StepUS, PrefillUS float64
}

// Field is a value of a snapshot that has an age of its own.
type Field uint8

// The fields of snapshots. Fields is their number.
const (
	FieldQueueDepth Field = iota
	FieldRunning
	FieldKVUtil // and free blocks
	FieldHitRate
	FieldRecentTTFT
	FieldRecentTPOT
	FieldEstWait
	FieldCache // the content of the true cache
	Fields
)

// Fresh is the TakenUS of a value that is never stale.
const Fresh = math.MaxInt64

// FieldNames are what files call the fields.
var FieldNames = [Fields]string{"queue_depth", "running", "kv_util", "hit_rate", "recent_ttft_ms", "recent_tpot_ms", "est_wait_ms", "cache"}

// Capacity is how many more sequences the replica would run.
func (r *Replica) Capacity() int32 { return r.Stats.MaxSeqs - r.Running - r.QueueDepth }

// View is what admission, priority and routing see of a request, its tenant and
// the cluster. It is to be read only, and valid until the policy returns: what it
// points to is used again.
type View struct {
	NowUS   int64
	Request *Request
	Tenant  Tenant
	Cluster Cluster
	// Replicas are the candidates, those that can hold the request, in the order
	// of their index; never none.
	Replicas []Replica
	// Account is where a router writes down how it chooses; nil if nobody keeps it.
	Account *Account
}

// Local is what a replica's scheduler sees: one request, and its own replica as
// it is at this moment. Like a View it is to be read only, and valid until the
// policy returns.
type Local struct {
	NowUS   int64
	Request *Request
	// Hints are those of the priority policy, in the order of its names.
	Hints   [MaxHints]float64
	Replica Snapshot
	// Sequence is of the request itself where it runs.
	Sequence Sequence
}

// MaxHints is how many hints a priority policy can give.
const MaxHints = 4

// Sequence is how far a running request is, for choosing whom to preempt.
type Sequence struct {
	// Generated tokens have appeared, Computed tokens are in Blocks blocks.
	Generated, Computed, Blocks int
}

// Saturation is the mean over the candidates of how full they are, the fuller
// of queue/5 and KV usage/0.8; from 1 on llm-d calls a pool saturated.
func (v *View) Saturation() float64 {
	sum := 0.0
	for i := range v.Replicas {
		r := &v.Replicas[i]
		sum += max(float64(r.QueueDepth)/5, r.KVUtil/0.8)
	}
	return sum / float64(len(v.Replicas))
}

// BestTTFTUS is the shortest that any candidate's time to the first token is
// estimated to be: the queue's length times stepUS, or times the replica's own
// mean step if stepUS is not a number, and the prompt's own time.
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

// Needs is what a policy must be shown, so that nothing else is kept up.
type Needs uint32

// The fields of snapshots as needs.
const (
	NeedQueueDepth Needs = 1 << FieldQueueDepth
	NeedRunning    Needs = 1 << FieldRunning
	NeedKVUtil     Needs = 1 << FieldKVUtil
	NeedHitRate    Needs = 1 << FieldHitRate
	NeedRecentTTFT Needs = 1 << FieldRecentTTFT
	NeedRecentTPOT Needs = 1 << FieldRecentTPOT
	NeedEstWait    Needs = 1 << FieldEstWait
	NeedCache      Needs = 1 << FieldCache // Cached, and Blocks
)

// What else policies may need. In a View there is no Request without NeedRequest;
// a Local always has its own.
const (
	NeedRequest      Needs = 1 << (iota + Fields)
	NeedShadow             // Matched and Blocks
	NeedEstimate           // StepUS and PrefillUS; with NeedShadow
	NeedTenant             // counts, and TenantID
	NeedRates              // of tenants
	NeedClusterRates       // Rate and Throughput
	NeedSession            // SessionID
	NeedPredicted
	NeedPriority // what the priority policy gave
)

// NeedsSnapshot is any field of a snapshot.
const NeedsSnapshot Needs = 1<<Fields - 1

// Of reports whether the snapshot's field is needed.
func (n Needs) Of(f Field) bool { return n>>f&1 == 1 }
