// Package stream is the wire: every record of every stream, as Go types, and
// the Reader and Writer of streams of them.
//
// A stream is JSON lines, one record a line, each with its kind. It begins
// with a header and closes with an end record that counts and digests the
// lines before it, so that a reader can tell a whole stream from a truncated
// one. Streams that leave a process are compressed with zstd; readers sniff.
package stream

import "math"

// Schema is the version of the stream format that this package writes. It
// rises when a reader of the older one would misread the newer.
const Schema = 1

// Version is the version of the programs that speak it, as headers carry it.
const Version = "0.1.0"

// Kinds of record that this package has a type for. Filters pass the others
// through untouched.
const (
	KindHeader         = "header"
	KindRequest        = "request"
	KindSession        = "session"
	KindDecision       = "decision"
	KindRegret         = "regret"
	KindPreemption     = "preemption"
	KindSnapshot       = "snapshot"
	KindAnomaly        = "anomaly"
	KindStep           = "step"
	KindOutcome        = "outcome"
	KindSessionOutcome = "session_outcome"
	KindMetrics        = "metrics"
	KindError          = "error"
	KindEnd            = "end"
)

// Streams: what a header says the stream is.
const (
	StreamWorkload  = "workload"
	StreamRun       = "run"
	StreamRecording = "recording"
)

// TraceLevels say how much a run tells, from little to much: header, metrics
// and end; also outcomes and decisions; also every step.
var TraceLevels = []string{"minimal", "decisions", "full"}

// Micros is a point in simulated time in µs since the workload's origin, never
// negative. Never, for a time that did not come, is absent on the wire.
type Micros int64

// Never is the Micros of what did not happen.
const Never Micros = -1

// IsZero reports whether m is absent; encoding/json asks it for omitzero.
func (m Micros) IsZero() bool { return m < 0 }

// Index is a place in a list, counted from 0; Nowhere is absent on the wire.
type Index int32

// Nowhere is the Index of what has no place.
const Nowhere Index = -1

// IsZero reports whether i is absent; encoding/json asks it for omitzero.
func (i Index) IsZero() bool { return i < 0 }

// Segment is a run of prompt tokens with an identity: two prompts that begin
// with the same segments begin with the same tokens. A shorter use of an id is
// a prefix of a longer one. What request R generated is the segment "R.out".
type Segment struct {
	ID     string `json:"id"`
	Tokens int64  `json:"tokens"`
}

// Request is one call of a model, as a workload offers it. Requests of a
// stream are sorted by arrival.
type Request struct {
	Kind         string `json:"kind"`
	ID           string `json:"id"`
	ArrivalUS    Micros `json:"arrival_us"`
	InputTokens  int64  `json:"input_tokens"`
	OutputTokens int64  `json:"output_tokens"`
	// Prompt names the leading tokens of the prompt; what it leaves of
	// InputTokens is unique to this request.
	Prompt   []Segment `json:"prompt,omitempty"`
	Tenant   string    `json:"tenant,omitempty"`
	SLOClass string    `json:"slo_class,omitempty"`
	// Model is the model asked for; absent, the cluster's first.
	Model string `json:"model,omitempty"`
	// Session names the conversation that it belongs to, Turn its place there,
	// from 0.
	Session string `json:"session,omitempty"`
	Turn    int64  `json:"turn,omitempty"`
	// DeadlineUS is the instant at which the request is aborted wherever it is.
	DeadlineUS Micros `json:"deadline_us,omitzero"`
	// PredictedOutputTokens is what a policy may know of OutputTokens; 0 is
	// absent on the wire.
	PredictedOutputTokens int64 `json:"predicted_output_tokens,omitempty"`
}

// States in which a request may end.
const (
	StateCompleted  = "completed"
	StateRejected   = "rejected"
	StateTimedOut   = "timed_out"
	StateFailed     = "failed"
	StateUnfinished = "unfinished"
)

// Reasons why a request did not complete.
const (
	ReasonNoDeployment     = "no_deployment"
	ReasonTooLongForModel  = "too_long_for_model"
	ReasonTooLongForCache  = "too_long_for_cache"
	ReasonTooLongForBudget = "too_long_for_budget"
	ReasonAdmission        = "admission"
	ReasonAdmissionDelay   = "admission_delay"
	ReasonDeadline         = "deadline"
	ReasonHorizon          = "horizon"
)

// Outcome is what became of one request. Times are µs of simulated time and
// absent where they never came; FirstTokenUS and CompletedUS are what the
// client saw.
type Outcome struct {
	Kind         string `json:"kind"`
	ID           string `json:"id"`
	State        string `json:"state"`
	Reason       string `json:"reason,omitempty"`
	ArrivalUS    Micros `json:"arrival_us"`
	AdmittedUS   Micros `json:"admitted_us,omitzero"`
	RoutedUS     Micros `json:"routed_us,omitzero"`
	EnqueuedUS   Micros `json:"enqueued_us,omitzero"`
	ScheduledUS  Micros `json:"scheduled_us,omitzero"`
	FirstTokenUS Micros `json:"first_token_us,omitzero"`
	CompletedUS  Micros `json:"completed_us,omitzero"`
	// EndedUS is when a request that did not complete was final.
	EndedUS    Micros `json:"ended_us,omitzero"`
	Deployment string `json:"deployment,omitempty"`
	// Replica is the index within the deployment.
	Replica  Index   `json:"replica,omitzero"`
	Tenant   string  `json:"tenant,omitempty"`
	SLOClass string  `json:"slo_class,omitempty"`
	Model    string  `json:"model,omitempty"`
	Priority float64 `json:"priority"`
	// Session, Step and Iteration place a request in its session.
	Session   string `json:"session,omitempty"`
	Step      string `json:"step,omitempty"`
	Iteration int64  `json:"iteration,omitempty"`
	// Decision is the id of the routing decision.
	Decision     string `json:"decision,omitempty"`
	InputTokens  int64  `json:"input_tokens"`
	OutputTokens int64  `json:"output_tokens"`
	// GeneratedTokens is how many of OutputTokens were produced.
	GeneratedTokens int64 `json:"generated_tokens"`
	// CachedTokens were found in the replica's prefix cache when the request
	// was first scheduled; ExpectedCachedTokens is what the router counted on.
	CachedTokens         int64 `json:"cached_tokens"`
	ExpectedCachedTokens int64 `json:"expected_cached_tokens"`
	Preemptions          int64 `json:"preemptions"`
	// PreemptedUS is how long it waited in the queue again after that, in µs.
	PreemptedUS int64 `json:"preempted_us,omitempty"`
	Delays      int64 `json:"delays"`
	// ITLUS is the run-length list of gaps between tokens: [gap in µs, how often].
	ITLUS    [][2]int64 `json:"itl_us,omitempty"`
	ITLMaxUS Micros     `json:"itl_max_us,omitzero"`
	// SLOMet says whether the targets of the request's class were met; nil and
	// absent where the class has none. It may be shared (see Met): replace it,
	// never write through it.
	SLOMet *bool `json:"slo_met,omitempty"`
}

var yes, no = true, false

// Met is a value for Outcome.SLOMet that costs no allocation.
func Met(met bool) *bool {
	if met {
		return &yes
	}
	return &no
}

// TPOT is the time per output token after the first, in ms, of a request of
// more than one output token that took us µs from the first to the last. It is
// rounded once.
func TPOT(us, outputTokens int64) float64 { return float64(us) / float64(1000*(outputTokens-1)) }

// Stages of decisions.
const (
	StageAdmission   = "admission"
	StagePriority    = "priority"
	StageFlowControl = "flow_control"
	StageRouting     = "routing"
)

// VerdictExpire is that of admission on a request that it would delay once more than
// may be, and of flow control on one that has waited too long: it has timed out.
const VerdictExpire = "expire"

// Decision is one choice of a policy about a request.
type Decision struct {
	Kind    string `json:"kind"`
	ID      string `json:"id"`
	Stage   string `json:"stage"`
	AtUS    Micros `json:"at_us"`
	Request string `json:"request"`
	// Verdict is admission's (admit, reject, delay, expire) or flow control's (queue,
	// reject: its queue is full, expire); DelayUS is for how long it was delayed.
	Verdict string `json:"verdict,omitempty"`
	DelayUS int64  `json:"delay_us,omitempty"`
	// Deployment and Replica are where routing sent the request.
	Deployment string `json:"deployment,omitempty"`
	Replica    Index  `json:"replica,omitzero"`
	// Score is the winner's, in the policy's own unit, or the priority that was given;
	// Candidates is among how many it was chosen.
	Score      float64 `json:"score"`
	Candidates int64   `json:"candidates"`
	// Reason says in a word or two what decided, Rule is the path of the leaf or the
	// expression in the policies that did.
	Reason string `json:"reason,omitempty"`
	Rule   string `json:"rule,omitempty"`
	// ExpectedCachedTokens is what the router counted on where it sent the request.
	ExpectedCachedTokens int64 `json:"expected_cached_tokens,omitempty"`
	// Scorers are the terms of weighted scores, in the order of Candidate.Terms.
	// Considered are the best candidates, the best first, the choice among them; at
	// trace level full all of them.
	Scorers    []string    `json:"scorers,omitempty"`
	Considered []Candidate `json:"considered,omitempty"`
}

// Candidate is a replica as a routing policy saw it: what it does not look at is
// absent.
type Candidate struct {
	Deployment string `json:"deployment"`
	Replica    Index  `json:"replica"`
	// Filtered: a filter left it out. Score is absent where the policy gave none.
	Filtered bool      `json:"filtered,omitempty"`
	Score    Number    `json:"score,omitzero"`
	Terms    []float64 `json:"terms,omitempty"`
	// Inflight is the router's own count.
	Inflight   Index  `json:"inflight"`
	QueueDepth Index  `json:"queue_depth,omitzero"`
	Running    Index  `json:"running,omitzero"`
	KVUtil     Number `json:"kv_util,omitzero"`
	// HitRate is the share of prompt tokens found cached, the Recent are means, all of
	// the last 10 s; EstWaitMS is its queue times its mean step.
	HitRate      Number `json:"hit_rate,omitzero"`
	RecentTTFTMS Number `json:"recent_ttft_ms,omitzero"`
	RecentTPOTMS Number `json:"recent_tpot_ms,omitzero"`
	EstWaitMS    Number `json:"est_wait_ms,omitzero"`
	// Matched blocks of the prompt the router believed to be there, Cached ones it
	// saw there.
	Matched Index `json:"matched_blocks,omitzero"`
	Cached  Index `json:"cached_blocks,omitzero"`
	// AgeUS is how old the oldest of these values was that the replica gave.
	AgeUS int64 `json:"age_us,omitempty"`
}

// NewCandidate is one of which nothing was seen.
func NewCandidate(deployment string, replica Index) Candidate {
	none := Number(math.NaN())
	return Candidate{Deployment: deployment, Replica: replica, Score: none, KVUtil: none, HitRate: none, RecentTTFTMS: none, RecentTPOTMS: none, EstWaitMS: none,
		QueueDepth: Nowhere, Running: Nowhere, Matched: Nowhere, Cached: Nowhere}
}

// Number is a number, or absent on the wire if it is none (NaN).
type Number float64

// IsZero reports whether n is absent; encoding/json asks it for omitzero.
func (n Number) IsZero() bool { return n != n }

// Preemption is a request that lost its place in a replica's batch, written at
// trace level full when the batch without it is formed.
type Preemption struct {
	Kind       string `json:"kind"`
	AtUS       Micros `json:"at_us"`
	Deployment string `json:"deployment"`
	Replica    Index  `json:"replica"`
	Request    string `json:"request"`
}

// Step is one batch of one replica, written at trace level full when it ends.
type Step struct {
	Kind       string `json:"kind"`
	Deployment string `json:"deployment"`
	Replica    Index  `json:"replica"`
	StartUS    Micros `json:"start_us"`
	EndUS      Micros `json:"end_us"`
	// PrefillTokens and DecodeTokens are what the batch computes.
	PrefillTokens int64 `json:"prefill_tokens"`
	DecodeTokens  int64 `json:"decode_tokens"`
	Running       int64 `json:"running"`
	Waiting       int64 `json:"waiting"`
	UsedBlocks    int64 `json:"used_blocks"`
	Preempted     int64 `json:"preempted"`
}

// SLOClass is a class of requests with what it was promised.
type SLOClass struct {
	Name string `json:"name" yaml:"name"`
	// Tier is critical, standard or sheddable.
	Tier     string  `json:"tier" yaml:"tier"`
	Priority float64 `json:"priority" yaml:"priority"`
	Targets  Targets `json:"targets,omitzero" yaml:"targets"`
}

// Targets are upper bounds in ms; 0 is none.
type Targets struct {
	TTFTMS float64 `json:"ttft_ms,omitempty" yaml:"ttft_ms"`
	TPOTMS float64 `json:"tpot_ms,omitempty" yaml:"tpot_ms"`
	E2EMS  float64 `json:"e2e_ms,omitempty" yaml:"e2e_ms"`
}

// SimulationKey names a run: with the same configuration and workload, equal
// keys give equal bytes.
type SimulationKey struct {
	Policy       string `json:"policy"`
	WorkloadSeed uint64 `json:"workload_seed"`
	SimSeed      uint64 `json:"sim_seed"`
	JitterSeed   uint64 `json:"jitter_seed"`
}

// Source says what a run was fed: the workload header's own words.
type Source struct {
	Tool       string `json:"tool,omitempty"`
	Seed       uint64 `json:"seed"`
	SpecDigest string `json:"spec_digest,omitempty"`
}

// Header is the first record of a stream. It names no files.
type Header struct {
	Kind    string `json:"kind"`
	Stream  string `json:"stream"`
	Schema  int64  `json:"schema"`
	Tool    string `json:"tool"`
	Version string `json:"version"`
	// Seed and SpecDigest are a workload's; the digest is of the resolved spec.
	Seed       uint64     `json:"seed"`
	SpecDigest string     `json:"spec_digest,omitempty"`
	SLOClasses []SLOClass `json:"slo_classes,omitempty"`
	// Run is present in the header of a run, Recording in that of a recording.
	Run       *RunHeader       `json:"run,omitempty"`
	Recording *RecordingHeader `json:"recording,omitempty"`
}

// RecordingHeader is what the header of a recording adds: what is known of the
// server and of how it was measured. Clock is client or server; Arrivals says
// whether arrival_us is when requests came.
type RecordingHeader struct {
	Clock              string  `json:"clock"`
	Arrivals           bool    `json:"arrivals"`
	Model              string  `json:"model,omitempty"`
	GPU                string  `json:"gpu,omitempty"`
	Engine             string  `json:"engine,omitempty"`
	TensorParallelSize int64   `json:"tensor_parallel_size,omitempty"`
	Replicas           int64   `json:"replicas,omitempty"`
	TargetRPS          float64 `json:"target_rps,omitempty"`
}

// RunHeader is what the header of a run adds.
type RunHeader struct {
	Key   SimulationKey `json:"key"`
	Trace string        `json:"trace"`
	// HorizonUS is where the run was to stop; ITL: outcomes carry all gaps.
	HorizonUS *Micros `json:"horizon_us,omitempty"`
	ITL       bool    `json:"itl,omitempty"`
	// Clairvoyant: requests were routed by the true state, not by the policy.
	// Counterfactual is which other choices were looked into, CounterfactualUS how
	// far beyond the decision.
	Clairvoyant      bool    `json:"clairvoyant,omitempty"`
	Counterfactual   string  `json:"counterfactual,omitempty"`
	CounterfactualUS *Micros `json:"counterfactual_us,omitempty"`
	Workload         Source  `json:"workload"`
	// Parent is the run that this one is a what-if of.
	Parent       *Parent `json:"parent,omitempty"`
	ConfigDigest string  `json:"config_digest"`
	// Config is the whole resolved configuration.
	Config any `json:"config"`
}

// Parent names a run by what a what-if of it changes.
type Parent struct {
	ConfigDigest string `json:"config_digest"`
	Policy       string `json:"policy"`
}

// Counts says how many requests were offered and how they ended; Offered is
// the sum of the five states. BeyondHorizon were not offered.
type Counts struct {
	Offered       int64 `json:"offered"`
	Completed     int64 `json:"completed"`
	Rejected      int64 `json:"rejected"`
	TimedOut      int64 `json:"timed_out"`
	Failed        int64 `json:"failed"`
	Unfinished    int64 `json:"unfinished"`
	BeyondHorizon int64 `json:"beyond_horizon"`
}

// Fault is an error that travels down the pipe in place of a product.
type Fault struct {
	Kind string `json:"kind"`
	Tool string `json:"tool"`
	File string `json:"file,omitempty"`
	Line int64  `json:"line,omitempty"`
	Col  int64  `json:"column,omitempty"`
	Msg  string `json:"message"`
}

// End is the last record of a stream.
type End struct {
	Kind string `json:"kind"`
	// Records counts the lines before this one, Digest is the SHA-256 of them,
	// in hex, each with its line feed.
	Records int64  `json:"records"`
	Digest  string `json:"digest"`
	// Requests and WorkloadDigest close a run; the digest is of the workload's
	// lines as they were read.
	Requests       *Counts `json:"requests,omitempty"`
	WorkloadDigest string  `json:"workload_digest,omitempty"`
}
