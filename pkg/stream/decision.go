package stream

// Stages of decisions.
const (
	StageAdmission   = "admission"
	StagePriority    = "priority"
	StageFlowControl = "flow_control"
	StageRouting     = "routing"
	// StagePrefillRouting picks the replica that computes the prompt in a disaggregated deployment.
	StagePrefillRouting = "prefill_routing"
)

// Stages in which policies decide, in the order in which a request meets them.
var Stages = []string{StageAdmission, StagePriority, StageFlowControl, StageRouting, StagePrefillRouting}

// VerdictExpire times a request out: admission returns it when the request has been
// delayed as often as is allowed, flow control when it has waited too long.
const VerdictExpire = "expire"

// Decision is one choice of a policy about a request.
//
//wire:record decision encode decode results
type Decision struct {
	Kind string `json:"kind"`
	// Name of the decision, unique in its stream.
	ID string `json:"id" wire:"unique,shortlived"`
	// Stage that decided.
	Stage string `json:"stage" wire:"oneof=Stages,result"`
	// Time of the decision, in µs since the workload's origin.
	AtUS Micros `json:"at_us" wire:"result"`
	// Id of the request.
	Request string `json:"request" wire:"unique,shortlived,result"`
	// Verdict of admission (admit, reject, delay, expire) or flow control (queue, reject, expire).
	Verdict string `json:"verdict,omitempty" wire:"result"`
	// How long the request was delayed, in µs.
	DelayUS int64 `json:"delay_us,omitempty" wire:"min=1,result"`
	// Deployment that routing chose.
	Deployment string `json:"deployment,omitempty" wire:"result"`
	// Index, in its deployment, of the replica that routing chose, from 0.
	Replica Index `json:"replica,omitzero" wire:"result"`
	// Score of the chosen replica, in the policy's own unit; for stage priority, the priority.
	Score float64 `json:"score" wire:"result"`
	// Number of candidates.
	Candidates int64 `json:"candidates"`
	// Number of equally good replicas among which the choice was drawn; absent where none was drawn.
	Tied int64 `json:"tied,omitempty" wire:"min=2"`
	// What decided, in a word or two.
	Reason string `json:"reason,omitempty"`
	// Path, in the policies, of the leaf or expression that decided.
	Rule string `json:"rule,omitempty"`
	// Cached tokens that the router expected on the chosen replica.
	ExpectedCachedTokens int64 `json:"expected_cached_tokens,omitempty" wire:"min=1,max=maxTokens"`
	// Names of the candidates' score terms, in order.
	Scorers []string `json:"scorers,omitempty"`
	// The best candidates, best first, including the chosen one; all of them at trace level full.
	Considered []Candidate `json:"considered,omitempty"`
}

// Candidate is a replica as a routing policy saw it. Signals that the policy does not read are absent.
//
//wire:object candidate encode decode
type Candidate struct {
	// Deployment of the replica.
	Deployment string `json:"deployment"`
	// Index of the replica in its deployment, from 0.
	Replica Index `json:"replica"`
	// Whether a filter excluded the replica.
	Filtered bool `json:"filtered,omitempty"`
	// Score of the replica, in the policy's own unit.
	Score Number `json:"score,omitzero"`
	// Value of each scorer, from 0 to 1.
	Terms []float64 `json:"terms,omitempty"`
	// Requests sent to the replica that have not left it, counted by the router.
	Inflight Index `json:"inflight"`
	// Requests in the replica's wait queue.
	QueueDepth Index `json:"queue_depth,omitzero"`
	// Sequences in the replica's batch.
	Running Index `json:"running,omitzero"`
	// Share of KV blocks in use.
	KVUtil Number `json:"kv_util,omitzero"`
	// Share of prompt tokens found cached in the last 10 s.
	HitRate Number `json:"hit_rate,omitzero"`
	// Mean TTFT of the last 10 s, in ms.
	RecentTTFTMS Number `json:"recent_ttft_ms,omitzero"`
	// Mean TPOT of the last 10 s, in ms.
	RecentTPOTMS Number `json:"recent_tpot_ms,omitzero"`
	// Queue length times the mean step time, in ms.
	EstWaitMS Number `json:"est_wait_ms,omitzero"`
	// Share of the blocks of the KV tier cpu in use.
	KVUtilCPU Number `json:"kv_util_cpu,omitzero"`
	// Requests that load from KV tiers.
	Loading Index `json:"loading,omitzero"`
	// Prompt blocks that the router's index expects on the replica.
	Matched Index `json:"matched_blocks,omitzero"`
	// Prompt blocks that the router saw on the replica.
	Cached Index `json:"cached_blocks,omitzero"`
	// Age of the oldest signal read from the replica, in µs.
	AgeUS int64 `json:"age_us,omitempty" wire:"min=1"`
}

// NewCandidate is a candidate without signals.
func NewCandidate(deployment string, replica Index) Candidate {
	return Candidate{Deployment: deployment, Replica: replica, Score: NoNumber, KVUtil: NoNumber, HitRate: NoNumber,
		RecentTTFTMS: NoNumber, RecentTPOTMS: NoNumber, EstWaitMS: NoNumber, KVUtilCPU: NoNumber, Loading: NoIndex,
		QueueDepth: NoIndex, Running: NoIndex, Matched: NoIndex, Cached: NoIndex}
}

// Snapshot is what the router read from a replica at one instant; what it did not read is absent. Of equal readings
// only the last is written, so a snapshot may follow records of later times.
//
// It is written at trace level full for periodic and on-demand views.
//
//wire:record snapshot
type Snapshot struct {
	Kind string `json:"kind"`
	// Time of the reading, in µs since the workload's origin.
	AtUS Micros `json:"at_us"`
	// Deployment of the replica.
	Deployment string `json:"deployment"`
	// Index of the replica in its deployment, from 0.
	Replica Index `json:"replica"`
	// Requests in the replica's wait queue.
	QueueDepth Index `json:"queue_depth,omitzero"`
	// Sequences in the replica's batch.
	Running Index `json:"running,omitzero"`
	// Share of KV blocks in use.
	KVUtil Number `json:"kv_util,omitzero"`
	// Share of prompt tokens found cached in the last 10 s.
	HitRate Number `json:"hit_rate,omitzero"`
	// Mean TTFT of the last 10 s, in ms.
	RecentTTFTMS Number `json:"recent_ttft_ms,omitzero"`
	// Mean TPOT of the last 10 s, in ms.
	RecentTPOTMS Number `json:"recent_tpot_ms,omitzero"`
	// Queue length times the mean step time, in ms.
	EstWaitMS Number `json:"est_wait_ms,omitzero"`
	// Share of the blocks of the KV tier cpu in use.
	KVUtilCPU Number `json:"kv_util_cpu,omitzero"`
	// Requests that load from KV tiers.
	Loading Index `json:"loading,omitzero"`
	// Whether the contents of the prefix cache were read.
	Cache bool `json:"cache,omitempty"`
}

// NewSnapshot is a snapshot without signals.
func NewSnapshot(at Micros, deployment string, replica Index) Snapshot {
	return Snapshot{Kind: KindSnapshot, AtUS: at, Deployment: deployment, Replica: replica, QueueDepth: NoIndex,
		Running: NoIndex, KVUtil: NoNumber, HitRate: NoNumber, RecentTTFTMS: NoNumber, RecentTPOTMS: NoNumber,
		EstWaitMS: NoNumber, KVUtilCPU: NoNumber, Loading: NoIndex}
}

// decisionResult decodes a decision without what explains it, such as candidates, which are most of its line.
type decisionResult struct{ *Decision }
