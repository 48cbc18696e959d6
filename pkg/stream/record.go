// Package stream is the wire format: every record of every stream as Go types, and
// a Reader and Writer of streams.
//
// A stream is JSON lines, one record per line, each with its kind. It begins with a
// header and ends with an end record that counts and digests the lines before it, so
// that a reader can distinguish a complete stream from a truncated one. Streams that
// leave a process are compressed with zstd; readers detect compression.
//
// The types are the one table of fields: pkg/internal/codecgen makes Objects, the
// encoders and the decoders from the fields, their tags and their comments.
package stream

//go:generate go run blis/pkg/internal/codecgen

import "math"

// StreamVersion is the version of the stream format that this package writes. It rises when
// a reader of an older version would misread a newer stream.
const StreamVersion = 2

// minSchema is the oldest version that this package reads. Version 1 has other fields in
// the records of changedKinds and calls stream_version of the header schema; all other
// records are equal.
const minSchema = 1

var changedKinds = []string{KindMetrics, KindRegret, KindAnomaly}

// Version is the version of the programs, as headers carry it.
const Version = "0.1.0"

// Kinds of records that this package has a type for, and the metrics of a run, whose
// type is in package metrics.
const (
	KindHeader         = "header"
	KindRequest        = "request"
	KindSession        = "session"
	KindDecision       = "decision"
	KindRegret         = "regret"
	KindPreemption     = "preemption"
	KindTransfer       = "transfer"
	KindSnapshot       = "snapshot"
	KindAnomaly        = "anomaly"
	KindStep           = "step"
	KindScaling        = "scaling"
	KindScalingChoice  = "scaling_choice"
	KindScalingRegret  = "scaling_regret"
	KindReplicaState   = "replica_state"
	KindSeries         = "series"
	KindOutcome        = "outcome"
	KindSessionOutcome = "session_outcome"
	KindMetrics        = "metrics"
	KindError          = "error"
	KindEnd            = "end"
)

// Micros is a time in simulated µs since the workload's origin, never negative.
// Never is absent on the wire.
type Micros int64

// Never is the time of an event that did not happen.
const Never Micros = -1

// IsZero reports whether m is absent; encoding/json calls it for omitzero.
func (m Micros) IsZero() bool { return m < 0 }

// Index is a position in a list, from 0. NoIndex is absent on the wire.
type Index int32

// NoIndex is a missing Index.
const NoIndex Index = -1

// IsZero reports whether i is absent; encoding/json calls it for omitzero.
func (i Index) IsZero() bool { return i < 0 }

// Number is a finite number. NaN is absent on the wire.
type Number float64

// NoNumber is a missing Number; it equals nothing, not even itself.
var NoNumber = Number(math.NaN())

// IsZero reports whether n is absent; encoding/json calls it for omitzero.
func (n Number) IsZero() bool { return n != n }

// Segment is a run of prompt tokens with an identity: prompts that begin with the same
// segments begin with the same tokens.
//
//wire:object segment encode decode
type Segment struct {
	// Name of the tokens. A shorter use of an id is a prefix of a longer one. The output of request R is R.out.
	ID string `json:"id"`
	// Number of its tokens that are used.
	Tokens int64 `json:"tokens" wire:"min=1,max=maxTokens"`
	// What an encoder makes them of: an image, an audio clip or a video. If absent, they are text. The same id with the
	// same tokens is the same content.
	Media string `json:"media,omitempty" wire:"oneof=mediaKinds"`
}

// Media of a Segment.
const (
	MediaImage = "image"
	MediaAudio = "audio"
	MediaVideo = "video"
)

var mediaKinds = []string{MediaImage, MediaAudio, MediaVideo}

// Request is one model call that a workload offers. Requests of a stream are sorted by arrival.
//
//wire:record request encode decode check
type Request struct {
	Kind string `json:"kind"`
	// Name of the request, unique in its stream.
	ID string `json:"id" wire:"unique"`
	// When the request arrives, in µs since the workload's origin.
	ArrivalUS Micros `json:"arrival_us"`
	// Length of the prompt.
	InputTokens int64 `json:"input_tokens" wire:"min=1,max=maxTokens"`
	// Tokens to generate.
	OutputTokens int64 `json:"output_tokens" wire:"min=1,max=maxTokens"`
	// What ends the output: eos is an end-of-sequence token. If absent, it ends at its maximum length.
	Stop string `json:"stop,omitempty" wire:"oneof=stops"`
	// Probability that a draft of speculative decoding is accepted if those before it are; if absent, that of the
	// engine.
	DraftAcceptance *float64 `json:"draft_acceptance,omitempty"`
	// The leading tokens of the prompt as segments; the rest of input_tokens is unique to the request.
	Prompt []Segment `json:"prompt,omitempty"`
	// Tenant that sent the request.
	Tenant string `json:"tenant,omitempty"`
	// SLO class of the request.
	SLOClass string `json:"slo_class,omitempty"`
	// What the request asks for, as in vLLM's header X-Vllm-Priority: lower is more urgent. It counts with the priority
	// policy request-priority, and is 0 if absent.
	Priority int64 `json:"priority,omitempty" wire:"min=-maxIndex,max=maxIndex"`
	// Requested model; if absent, the cluster's first.
	Model string `json:"model,omitempty"`
	// LoRA adapter of the model; if absent, none.
	Adapter string `json:"adapter,omitempty"`
	// Grammar, JSON schema or set of tools that its output must follow, by any name; if absent, the output is free.
	Grammar string `json:"grammar,omitempty"`
	// Conversation that the request belongs to.
	Session string `json:"session,omitempty"`
	// Position of the request in its conversation, from 0.
	Turn int64 `json:"turn,omitempty"`
	// When the request is aborted if it is not complete, in µs since the workload's origin.
	DeadlineUS Micros `json:"deadline_us,omitzero"`
	// Prediction of output_tokens that policies may use.
	PredictedOutputTokens int64 `json:"predicted_output_tokens,omitempty" wire:"min=1,max=maxTokens"`
	// When the client sends it again; absent if it does not.
	Retry *Retry `json:"retry,omitempty"`
}

// StopEOS is the Stop of an output that ends by an end-of-sequence token.
const StopEOS = "eos"

var stops = []string{StopEOS}

// Preemption is a request that lost its place in a replica's batch, written at trace level full.
//
//wire:record preemption
type Preemption struct {
	Kind string `json:"kind"`
	// When the batch without the request was formed, in µs since the workload's origin.
	AtUS Micros `json:"at_us"`
	// Deployment of the replica.
	Deployment string `json:"deployment"`
	// Index of the replica in its deployment, from 0.
	Replica Index `json:"replica"`
	// Id of the request.
	Request string `json:"request"`
}

// Transfer is a movement of KV blocks between memories, or of embeddings from an encode replica, written at trace level
// full when it ends.
//
//wire:record transfer
type Transfer struct {
	Kind string `json:"kind"`
	// Id of the transfer.
	ID string `json:"id" wire:"unique"`
	// What moves: store is to a tier, load from a tier to the GPU, promote from storage to the memory of the host, pd
	// from a prefill replica, embeddings from an encode replica.
	Type string `json:"type" wire:"oneof=transferTypes"`
	// Deployment of the replica.
	Deployment string `json:"deployment"`
	// Index of the replica in its deployment, from 0.
	Replica Index `json:"replica"`
	// Index of the prefill replica that the blocks come from; only of type pd.
	PrefillReplica Index `json:"prefill_replica,omitzero"`
	// Index of the encode replica that the embeddings come from; only of type embeddings.
	EncodeReplica Index `json:"encode_replica,omitzero"`
	// Id of the request whose blocks or embeddings move; empty for a store of what the cache gives away (policy lazy).
	Request string `json:"request"`
	// KV blocks that move; absent for embeddings.
	Blocks int64 `json:"blocks,omitempty" wire:"min=1"`
	// Tokens of the item whose embeddings move.
	Tokens int64 `json:"tokens,omitempty" wire:"min=1"`
	// Bytes that move.
	Bytes int64 `json:"bytes"`
	// Memory that the blocks come from.
	From string `json:"from" wire:"oneof=memories"`
	// Memory that the blocks go to.
	To string `json:"to" wire:"oneof=memories"`
	// When the transfer was asked for, in µs since the workload's origin.
	AskedUS Micros `json:"asked_us"`
	// When its link began with it, in µs since the workload's origin. If it failed before that: when it failed.
	StartedUS Micros `json:"started_us"`
	// When it ended, in µs since the workload's origin.
	EndedUS Micros `json:"ended_us"`
	// Whether it did not complete, since a replica at one of its ends went down or is gone.
	Incomplete bool `json:"incomplete,omitempty"`
}

// Types of transfers and the memories between which they move blocks.
const (
	TransferStore   = "store"
	TransferLoad    = "load"
	TransferPromote = "promote"
	TransferPD      = "pd"
	TransferEncoded = "embeddings"
	MemoryGPU       = "gpu"
	MemoryCPU       = "cpu"
	MemoryStorage   = "storage"
)

var (
	transferTypes = []string{TransferStore, TransferLoad, TransferPromote, TransferPD, TransferEncoded}
	memories      = []string{MemoryGPU, MemoryCPU, MemoryStorage}
)

// Step is one engine iteration of one replica, written at trace level full when it ends.
//
//wire:record step encode decode
type Step struct {
	Kind string `json:"kind"`
	// Deployment of the replica.
	Deployment string `json:"deployment"`
	// Index of the replica in its deployment, from 0.
	Replica Index `json:"replica"`
	// When the step began, in µs since the workload's origin.
	StartUS Micros `json:"start_us"`
	// When the step ended, in µs since the workload's origin.
	EndUS Micros `json:"end_us"`
	// Prompt and recomputed tokens in the batch.
	PrefillTokens int64 `json:"prefill_tokens"`
	// Decode tokens in the batch, one per sequence.
	DecodeTokens int64 `json:"decode_tokens"`
	// Drafts in the batch, which speculative decoding verifies.
	DraftTokens int64 `json:"draft_tokens,omitempty"`
	// LoRA adapters of the requests in the batch.
	Adapters int64 `json:"adapters,omitempty"`
	// Time for which the step waited for adapters that were not on the GPU, in µs.
	AdapterLoadUS int64 `json:"adapter_load_us,omitempty"`
	// Masks of tokens that the host filled for requests with a grammar.
	Masks int64 `json:"masks,omitempty"`
	// Time in which the host filled them, in µs.
	MaskUS int64 `json:"mask_us,omitempty"`
	// Time by which the step ended later since it waited for them, in µs.
	MaskWaitUS int64 `json:"mask_wait_us,omitempty"`
	// Images and other media that were encoded for the batch.
	EncodedItems int64 `json:"encoded_items,omitempty"`
	// Tokens of these.
	EncodedTokens int64 `json:"encoded_tokens,omitempty"`
	// Time of the step in the encoder, in µs.
	EncoderUS int64 `json:"encoder_us,omitempty"`
	// Requests in the replica's running list.
	Running int64 `json:"running"`
	// Requests in the replica's wait queue.
	Waiting int64 `json:"waiting"`
	// KV blocks held by requests.
	UsedBlocks int64 `json:"used_blocks"`
	// Requests preempted when the batch was formed.
	Preempted int64 `json:"preempted"`
	// The requests in the batch, in the order in which they were scheduled.
	Batch []BatchEntry `json:"batch"`
}

// BatchEntry is a request in the batch of a step.
//
//wire:object batch_entry encode decode
type BatchEntry struct {
	// Id of the request.
	Request string `json:"request"`
	// Tokens that the step computes for it.
	Tokens int64 `json:"tokens"`
}
