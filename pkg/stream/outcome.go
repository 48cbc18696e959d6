package stream

// States in which a request may end.
const (
	StateCompleted  = "completed"
	StateRejected   = "rejected"
	StateTimedOut   = "timed_out"
	StateFailed     = "failed"
	StateUnfinished = "unfinished"
)

// states in which a request may end, in the order of Counts.
var states = []string{StateCompleted, StateRejected, StateTimedOut, StateFailed, StateUnfinished}

// Reasons why a request did not complete.
const (
	ReasonNoDeployment     = "no_deployment"
	ReasonTooLongForModel  = "too_long_for_model"
	ReasonTooLongForCache  = "too_long_for_cache"
	ReasonTooLongForBudget = "too_long_for_budget"
	ReasonNoLoRA           = "no_lora" // the request has an adapter, and no deployment of its model serves any
	// The request has a grammar, and no deployment of its model is simulated with structured output.
	ReasonNoStructuredOutput = "no_structured_output"
	ReasonNoEncoder          = "no_encoder" // the request has media, and no deployment of its model encodes any
	ReasonTooLongForEncoder  = "too_long_for_encoder"
	ReasonAdmission          = "admission"
	ReasonAdmissionDelay     = "admission_delay"
	ReasonQueuedReqs         = "max_num_queued_reqs"
	ReasonQueuedTokens       = "max_num_queued_tokens"
	ReasonDeadline           = "deadline"
	ReasonHorizon            = "horizon"
	ReasonReplicaLost        = "replica_lost"
	ReasonNoReplica          = "no_replica"
	ReasonTransferTimeout    = "transfer_timeout"
)

// IsServerReason reports whether a request was rejected by its server, which has a limit for those that wait and run.
func IsServerReason(reason string) bool {
	return reason == ReasonQueuedReqs || reason == ReasonQueuedTokens
}

// Outcome is the result of one request. Times are µs since the workload's origin,
// absent for events that did not happen.
//
//wire:record outcome encode decode check
type Outcome struct {
	Kind string `json:"kind"`
	// Id of the request.
	ID string `json:"id" wire:"unique,shortlived"`
	// How the request ended.
	State string `json:"state" wire:"oneof=states"`
	// Why the request did not complete.
	Reason string `json:"reason,omitempty"`
	// When the request arrived.
	ArrivalUS Micros `json:"arrival_us"`
	// When the request was admitted.
	AdmittedUS Micros `json:"admitted_us,omitzero"`
	// When the request was sent to a replica.
	RoutedUS Micros `json:"routed_us,omitzero"`
	// Index of the prefill replica that computed the prompt, from 0; only if it is not the replica that decodes.
	PrefillReplica Index `json:"prefill_replica,omitzero"`
	// When the request entered the queue of the prefill replica.
	PrefillEnqueuedUS Micros `json:"prefill_enqueued_us,omitzero"`
	// When the request first entered a batch of the prefill replica.
	PrefillScheduledUS Micros `json:"prefill_scheduled_us,omitzero"`
	// When the prefill replica had computed the prompt.
	PrefilledUS Micros `json:"prefilled_us,omitzero"`
	// When the transfer of the KV blocks of the prompt from the prefill replica began, of which pieces may move before
	// the prompt is computed.
	TransferStartedUS Micros `json:"transfer_started_us,omitzero"`
	// When the KV blocks of the prompt had arrived from the prefill replica.
	TransferredUS Micros `json:"transferred_us,omitzero"`
	// KV blocks of the transfer from the prefill replica, which may not have ended.
	TransferBlocks int64 `json:"transfer_blocks,omitempty" wire:"min=1"`
	// When encode replicas had encoded the images or other media of the request.
	EncodedUS Micros `json:"encoded_us,omitzero"`
	// When the request entered the replica's queue.
	EnqueuedUS Micros `json:"enqueued_us,omitzero"`
	// When the last embeddings that it waited for in the queue had come from encode replicas, before the first batch.
	EmbeddingsUS Micros `json:"embeddings_us,omitzero"`
	// When the request first entered a batch.
	ScheduledUS Micros `json:"scheduled_us,omitzero"`
	// Time in the queue before the first batch while no batch slot was free, in µs.
	SlotWaitUS int64 `json:"slot_wait_us,omitempty" wire:"min=1"`
	// Time in the queue before the first batch while the batch had no tokens left in its budget, in µs.
	BudgetWaitUS int64 `json:"budget_wait_us,omitempty" wire:"min=1"`
	// Time in the queue before the first batch while there were too few free blocks, in µs.
	BlockWaitUS int64 `json:"block_wait_us,omitempty" wire:"min=1"`
	// Time in the queue before the first batch while the running requests had max_loras other adapters than all waiting
	// ones, in µs.
	AdapterWaitUS int64 `json:"adapter_wait_us,omitempty" wire:"min=1"`
	// Time in the queue before the first batch until the grammar was compiled, in µs.
	GrammarWaitUS int64 `json:"grammar_wait_us,omitempty" wire:"min=1"`
	// Time in the queue before the first batch while the encoder had no room for the images or other media with which
	// all waiting ones would begin, in µs.
	EncoderWaitUS int64 `json:"encoder_wait_us,omitempty" wire:"min=1"`
	// When the client received the first token.
	FirstTokenUS Micros `json:"first_token_us,omitzero"`
	// When the client received the last token; only if completed.
	CompletedUS Micros `json:"completed_us,omitzero"`
	// When a request that did not complete ended.
	EndedUS Micros `json:"ended_us,omitzero"`
	// Deployment that served the request.
	Deployment string `json:"deployment,omitempty"`
	// Index of the replica in its deployment, from 0.
	Replica Index `json:"replica,omitzero"`
	// Tenant that sent the request.
	Tenant string `json:"tenant,omitempty"`
	// SLO class of the request.
	SLOClass string `json:"slo_class,omitempty"`
	// Requested model.
	Model string `json:"model,omitempty"`
	// LoRA adapter of the model.
	Adapter string `json:"adapter,omitempty"`
	// Grammar that the output follows.
	Grammar string `json:"grammar,omitempty"`
	// Priority of the request; higher is served sooner.
	Priority float64 `json:"priority"`
	// Session that the request belongs to.
	Session string `json:"session,omitempty" wire:"nodict"`
	// Step of the session.
	Step string `json:"step,omitempty"`
	// Iteration of the step's loop, from 1.
	Iteration int64 `json:"iteration,omitempty" wire:"min=1"`
	// Id of the routing decision.
	Decision string `json:"decision,omitempty" wire:"unique,shortlived"`
	// Length of the prompt; 0 if a recording does not have it.
	InputTokens int64 `json:"input_tokens" wire:"max=maxTokens"`
	// Requested tokens; 0 if a recording does not have them.
	OutputTokens int64 `json:"output_tokens" wire:"max=maxTokens"`
	// Tokens generated.
	GeneratedTokens int64 `json:"generated_tokens" wire:"max=maxTokens"`
	// Prompt tokens found in the prefix cache when the request was first scheduled, on the prefill replica if there is
	// one.
	CachedTokens int64 `json:"cached_tokens" wire:"max=maxTokens"`
	// Prompt tokens found in the prefix cache of the replica that decodes, if another one computed the prompt.
	DecodeCachedTokens int64 `json:"decode_cached_tokens,omitempty" wire:"max=maxTokens"`
	// Tokens loaded from KV tiers before the request was first scheduled.
	LoadedTokens *LoadedTokens `json:"loaded_tokens,omitempty"`
	// Prompt tokens that the router expected to be cached.
	ExpectedCachedTokens int64 `json:"expected_cached_tokens" wire:"max=maxTokens"`
	// Number of times the request was preempted.
	Preemptions int64 `json:"preemptions"`
	// Total time in the queue after preemptions, in µs.
	PreemptedUS int64 `json:"preempted_us,omitempty" wire:"min=1"`
	// Number of times the request was sent to another replica because its own one went.
	Redirects int64 `json:"redirects,omitempty" wire:"min=1"`
	// Request that the client repeats with this one.
	RetryOf string `json:"retry_of,omitempty" wire:"unique,shortlived"`
	// Time from its arrival to that of this attempt, in µs.
	RetryUS int64 `json:"retry_us,omitempty" wire:"min=1"`
	// Whether the client sends the request again: then this attempt is not its last.
	Retried bool `json:"retried,omitempty"`
	// Number of times admission delayed the request.
	Delays int64 `json:"delays"`
	// Inter-token latencies, run-length encoded: [gap in µs, count].
	ITLUS [][2]int64 `json:"itl_us,omitempty"`
	// Largest inter-token latency, in µs.
	ITLMaxUS Micros `json:"itl_max_us,omitzero"`
	// Whether the request met all targets of its class; absent if the class has none.
	//
	// The value may be shared (see Met): replace the pointer, never write through it.
	SLOMet *bool `json:"slo_met,omitempty"`
}

// ClearPrefill makes all that only requests with a prefill replica or encode replicas have absent.
func (o *Outcome) ClearPrefill() {
	o.PrefillReplica, o.PrefillEnqueuedUS, o.PrefillScheduledUS = NoIndex, Never, Never
	o.PrefilledUS, o.TransferStartedUS, o.TransferredUS = Never, Never, Never
	o.TransferBlocks, o.DecodeCachedTokens = 0, 0
	o.EncodedUS, o.EmbeddingsUS = Never, Never
}

// PrefillPool is the deployment that records name for the prefill replicas of a disaggregated one.
func PrefillPool(deployment string) string { return deployment + ".prefill" }

// QueueStartUS is when the request entered the replica's queue, earlier by the time in the queue of a prefill replica:
// the time from then until it was scheduled is its time in queues. A request that entered it before its prompt was
// computed elsewhere waits from then on.
func (o *Outcome) QueueStartUS() Micros {
	if o.EnqueuedUS.IsZero() || o.PrefillScheduledUS.IsZero() {
		return o.EnqueuedUS
	}
	return max(o.EnqueuedUS, o.PrefilledUS) - (o.PrefillScheduledUS - o.PrefillEnqueuedUS)
}

// LoadedTokens are the tokens that a request loaded, by tier.
//
//wire:object loaded_tokens encode decode
type LoadedTokens struct {
	// From the memory of the host.
	CPU int64 `json:"cpu" wire:"max=maxTokens"`
	// From storage, by the memory of the host.
	Storage int64 `json:"storage,omitempty" wire:"max=maxTokens"`
}

// Total is the number of loaded tokens. t may be nil.
func (t *LoadedTokens) Total() int64 {
	if t == nil {
		return 0
	}
	return t.CPU + t.Storage
}

var yes, no = true, false

// BoolPtr points to a shared value equal to met, without allocating.
func BoolPtr(met bool) *bool {
	if met {
		return &yes
	}
	return &no
}

// TPOT is the time per output token after the first, in ms, of a request with more
// than one output token and us µs from the first to the last. It is rounded once.
func TPOT(us, outputTokens int64) float64 { return float64(us) / float64(1000*(outputTokens-1)) }
