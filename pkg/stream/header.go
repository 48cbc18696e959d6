package stream

import "blis/pkg/registry"

// Kinds of streams.
const (
	StreamWorkload  = "workload"
	StreamRun       = "run"
	StreamRecording = "recording"
)

var streams = []string{StreamWorkload, StreamRun, StreamRecording}

// TraceLevels are the levels of detail of a run: header, metrics and end; also
// outcomes and decisions; also every step.
var TraceLevels = []string{"minimal", "decisions", "full"}

// What clairvoyant routing reaches for: the lowest mean E2E latency, or the most met SLO targets.
const (
	GoalLatency = "latency"
	GoalTargets = "targets"
)

// ClairvoyantGoals are the goals of clairvoyant routing.
var ClairvoyantGoals = []string{GoalLatency, GoalTargets}

// clocks whose times a recording may have.
var clocks = []string{"client", "server"}

// Header is the first record of a stream. It names no files.
//
//wire:record header
type Header struct {
	Kind string `json:"kind"`
	// What the stream is.
	Stream string `json:"stream" wire:"oneof=streams"`
	// Version of the stream format.
	StreamVersion int64 `json:"stream_version" wire:"min=StreamVersion,max=StreamVersion"`
	// Program that wrote the stream.
	Tool string `json:"tool"`
	// Version of that program.
	Version string `json:"version"`
	// Seed of the workload.
	Seed uint64 `json:"seed"`
	// SHA-256 of the resolved workload spec, in hex.
	SpecDigest string `json:"spec_digest,omitempty"`
	// Part of a larger workload that this one is; if absent, it is whole.
	Shard *Shard `json:"shard,omitempty"`
	// SLO classes and their targets.
	SLOClasses []SLOClass `json:"slo_classes,omitempty"`
	// Fields of a run's header only.
	Run *RunHeader `json:"run,omitempty"`
	// Fields of a recording's header only.
	Recording *RecordingHeader `json:"recording,omitempty"`
}

// RecordingHeader is the part of a header for recordings: the server and how it was measured.
//
//wire:object recording
type RecordingHeader struct {
	// Whose clock gave the times.
	Clock string `json:"clock" wire:"oneof=clocks"`
	// Whether arrival_us is the time of arrival.
	Arrivals bool `json:"arrivals"`
	// Served model.
	Model string `json:"model,omitempty"`
	// GPU of the server.
	GPU string `json:"gpu,omitempty"`
	// Engine and its version.
	Engine string `json:"engine,omitempty"`
	// Number of GPUs that share each layer.
	TensorParallelSize int64 `json:"tensor_parallel_size,omitempty" wire:"min=1,max=maxIndex"`
	// Number of engines.
	Replicas int64 `json:"replicas,omitempty" wire:"min=1,max=maxIndex"`
	// Intended rate, in requests per second.
	TargetRPS float64 `json:"target_rps,omitempty"`
}

// RunHeader is the part of a header for runs.
//
//wire:object run
type RunHeader struct {
	// Identity of the run, together with its configuration and workload.
	Key SimulationKey `json:"key"`
	// Level of detail of the run.
	Trace string `json:"trace" wire:"oneof=TraceLevels"`
	// When the run stops; if absent, when all requests have ended.
	HorizonUS *Micros `json:"horizon_us,omitempty"`
	// Whether outcomes carry every inter-token latency.
	ITL bool `json:"itl,omitempty"`
	// Interval between the records of the time series; if absent, there are none.
	SeriesUS *Micros `json:"series_us,omitempty"`
	// What routing minimized or maximized with knowledge of the future; if absent, the policy routed.
	Clairvoyant string `json:"clairvoyant,omitempty" wire:"oneof=ClairvoyantGoals"`
	// Which alternatives were evaluated.
	Counterfactual string `json:"counterfactual,omitempty"`
	// How far past each decision they were evaluated; if absent, to the end of the run.
	CounterfactualUS *Micros `json:"counterfactual_us,omitempty"`
	// Workload of the run.
	Workload Source `json:"workload"`
	// Original run, if this run is a what-if of it.
	Parent *Parent `json:"parent,omitempty"`
	// SHA-256 of the resolved configuration, in hex.
	ConfigDigest string `json:"config_digest"`
	// The complete resolved configuration.
	Config any `json:"config"`
}

// SimulationKey is the identity of a run: with equal configuration and workload, equal keys give equal bytes.
//
//wire:object simulation_key
type SimulationKey struct {
	// SHA-256 of the resolved policies, in hex.
	Policy string `json:"policy"`
	// Seed of the workload.
	WorkloadSeed uint64 `json:"workload_seed"`
	// Seed of the simulation.
	SimSeed uint64 `json:"sim_seed"`
	// Seed of the step-time noise.
	JitterSeed uint64 `json:"jitter_seed"`
}

// Source is the workload of a run, as the workload's header describes it.
//
//wire:object source
type Source struct {
	// Program that wrote the workload; absent for a headerless one.
	Tool string `json:"tool,omitempty"`
	// Seed of the workload.
	Seed uint64 `json:"seed"`
	// SHA-256 of the resolved workload spec, in hex.
	SpecDigest string `json:"spec_digest,omitempty"`
	// Part of a larger workload that it is; if absent, it is whole.
	Shard *Shard `json:"shard,omitempty"`
}

// ShardKeys are what decides the shard of a request.
var ShardKeys = []string{"session", "tenant"}

// Shard is a part of a workload for a fleet of independent cells: the requests whose sessions or tenants belong to
// one cell. The seed and the spec digest are those of the whole workload.
//
//wire:object shard
type Shard struct {
	// Number of the part, from 1.
	Part int64 `json:"part" wire:"min=1,max=maxIndex"`
	// Number of parts.
	Of int64 `json:"of" wire:"min=1,max=maxIndex"`
	// Whose hash decides the part.
	By string `json:"by" wire:"oneof=ShardKeys"`
}

// Parent is the original run of a what-if, identified by what a what-if may change.
//
//wire:object parent
type Parent struct {
	// SHA-256 of its resolved configuration, in hex.
	ConfigDigest string `json:"config_digest"`
	// SHA-256 of its resolved policies, in hex.
	Policy string `json:"policy"`
}

// Tiers of SLO classes, from the most to the least important: under overload,
// later ones are shed first.
var Tiers = []string{"critical", "standard", "sheddable"}

// Classes are the predefined SLO classes. They have no targets: a workload
// declares those.
var Classes = registry.Table[SLOClass]{
	class("critical", "critical", 100, "must be served"),
	class("realtime", "critical", 100, "a user waits for every token"),
	class("standard", "standard", 50, "ordinary requests"),
	class("interactive", "standard", 50, "a user reads along"),
	class("batch", "sheddable", 10, "requests that can wait"),
	class("best-effort", "sheddable", 0, "served when capacity is left"),
	class("sheddable", "sheddable", 0, "shed first"),
}

func class(name, tier string, priority float64, doc string) registry.Entry[SLOClass] {
	return registry.Entry[SLOClass]{Name: name, Doc: doc, Value: SLOClass{Name: name, Tier: tier, Priority: priority}}
}

// SLOClass is a class of requests with their SLO targets.
//
//wire:object slo_class
type SLOClass struct {
	// How requests refer to the class.
	Name string `json:"name" yaml:"name"`
	// Treatment of the class under overload.
	Tier string `json:"tier" yaml:"tier" wire:"oneof=Tiers"`
	// Requests of a higher priority are served sooner.
	Priority float64 `json:"priority" yaml:"priority"`
	// SLO targets.
	Targets Targets `json:"targets,omitzero" yaml:"targets"`
}

// Targets is the set of latency bounds of a class, in ms; an absent bound does not apply.
//
//wire:object targets
type Targets struct {
	// Time to first token.
	TTFTMS float64 `json:"ttft_ms,omitempty" yaml:"ttft_ms"`
	// Mean time per output token after the first.
	TPOTMS float64 `json:"tpot_ms,omitempty" yaml:"tpot_ms"`
	// Time from arrival to the last token.
	E2EMS float64 `json:"e2e_ms,omitempty" yaml:"e2e_ms"`
}

// Of returns the target in ms of a latency: ttft, tpot or e2e. It is 0 if there is none.
func (t Targets) Of(latency string) float64 {
	switch latency {
	case "ttft":
		return t.TTFTMS
	case "tpot":
		return t.TPOTMS
	case "e2e":
		return t.E2EMS
	}
	return 0
}

// ErrorRecord is an error that a stream carries instead of results.
//
//wire:record error
type ErrorRecord struct {
	Kind string `json:"kind"`
	// Program that found the error.
	Tool string `json:"tool"`
	// File with the error.
	File string `json:"file,omitempty"`
	// Line in the file, from 1.
	Line int64 `json:"line,omitempty" wire:"min=1"`
	// Column in the line, from 1.
	Col int64 `json:"column,omitempty" wire:"min=1"`
	// What is wrong and what is allowed.
	Msg string `json:"message"`
}

// End is the last record of a stream; a stream without it is truncated.
//
//wire:record end
type End struct {
	Kind string `json:"kind"`
	// Number of records before this one.
	Records int64 `json:"records"`
	// SHA-256 of their lines, each with its line feed, in hex.
	Digest string `json:"digest"`
	// Requests of a run by how they ended.
	Requests *Counts `json:"requests,omitempty"`
	// SHA-256 of the workload's lines as the run read them, in hex.
	WorkloadDigest string `json:"workload_digest,omitempty"`
}

// Counts is the number of requests that ended in each state.
//
//wire:object counts
type Counts struct {
	// Offered requests: the sum of the five states.
	Offered int64 `json:"offered"`
	// Requests that generated all their tokens.
	Completed int64 `json:"completed"`
	// Requests that were rejected.
	Rejected int64 `json:"rejected"`
	// Requests that reached their deadline.
	TimedOut int64 `json:"timed_out"`
	// Requests whose replica failed.
	Failed int64 `json:"failed"`
	// Requests still in flight at the horizon.
	Unfinished int64 `json:"unfinished"`
	// Attempts after the first ones of these requests, which are not offered.
	Retries int64 `json:"retries,omitempty"`
	// Requests that arrive after the horizon and were not offered.
	BeyondHorizon int64 `json:"beyond_horizon"`
}

// Count counts a request that ended in a state.
func (c *Counts) Count(state string) {
	switch state {
	case StateCompleted:
		c.Completed++
	case StateRejected:
		c.Rejected++
	case StateTimedOut:
		c.TimedOut++
	case StateFailed:
		c.Failed++
	case StateUnfinished:
		c.Unfinished++
	}
}
