// Package engine is the data plane: one replica that serves requests as vLLM's V1 engine does
// (vllm/v1/core/sched/scheduler.py), with continuous batching, chunked prefill, a prefix cache and
// preemption by recomputation.
//
// The caller owns the clock. Start forms a batch and says when its step ends; Finish, called at
// that time, makes its effects visible. A step that only decodes costs the same for one sequence as
// for a thousand.
package engine

import (
	"blis/pkg/des"
	"blis/pkg/kv"
	"blis/pkg/latency"
)

// Config limits what a batch may hold. The names are vLLM's.
type Config struct {
	MaxNumSeqs          int
	MaxNumBatchedTokens int
	// ChunkedPrefill allows a prompt to be computed over several steps.
	ChunkedPrefill bool
	// LongPrefillTokenThreshold is the maximum number of tokens that one sequence may compute in a
	// step; 0 means no limit. With ThresholdSparesLone it does not apply to a request that is alone,
	// running or waiting, when the batch is formed. With AdaptiveThreshold it is at least
	// MaxNumBatchedTokens divided by the requests that run or wait then.
	LongPrefillTokenThreshold              int
	ThresholdSparesLone, AdaptiveThreshold bool
	// PrefillInterval above 1 lets chunks of prompts be computed only in a step in this many, while any sequence
	// decodes. JointSteps counts the steps of all ranks of a server, as BeginJoint says, not those of the replica.
	// It does not go with Offload.
	PrefillInterval int
	JointSteps      bool
	// MaxSequenceTokens is another such maximum, without exceptions.
	MaxSequenceTokens int
	// AsyncScheduling forms the next batch when a step starts, not when it ends.
	AsyncScheduling bool
	// ReserveFullSequence admits a request only if there are free blocks for all its tokens, not only
	// for its first chunk.
	ReserveFullSequence bool
	// WatermarkBlocks must stay free when a request is admitted while others run.
	WatermarkBlocks int
	// StateBlock is the number of tokens in a block of recurrent states that are hashed, 0 if there are none. Chunks
	// then end with a block, as StateChunks says. StateCheckpoints is the number of states that the last chunk of a
	// prompt writes before its end, 0 or 1.
	StateBlock, StateCheckpoints int
	StateChunks                  kv.StateChunks
	// Window is the number of tokens that the model's sliding-window layers attend to; 0 if it has
	// none.
	Window int
	// PreemptionScore ranks running sequences for preemption when another one lacks blocks: the highest
	// score is preempted, of equal ones the one admitted last. It is called again for each preemption;
	// nil scores all the same.
	PreemptionScore func(tag int32, p Progress) float64
	// ContinueAfterSelfPreemption schedules the running sequences behind one that preempts itself.
	ContinueAfterSelfPreemption bool
	// IdleVictimSkipsNext does not schedule the sequence behind one for which an earlier one, with no tokens
	// in the batch, was preempted: vLLM up to 0.24 then goes one too far in its list.
	IdleVictimSkipsNext bool
	// Speculation is speculative decoding, nil for none. It goes with neither Offload nor KV cache groups.
	Speculation *Speculation
	// LoRA is the use of adapters, nil for none. It does not go with Offload.
	LoRA *LoRA
	// Grammars is structured output, of which there is none until a request has a grammar. It does not go with Offload.
	Grammars Grammars
	// Encoder computes the embeddings of items, nil for none. It goes with none of Speculation, LoRA, StateBlock,
	// Pipeline, the tier of an Offload and requests with a grammar, and with the rest of an Offload only if Remote.
	Encoder *Encoder
	// ByArrival is that of OffloadConfig, for LoRA, Grammars, Pipeline and Encoder: since requests are skipped, running
	// ones can have arrived after waiting ones.
	ByArrival bool
	// Pipeline is pipeline parallelism, nil for a single stage.
	Pipeline *Pipeline
	// Offload is the tier below the cache or the connection to other replicas, nil if there is neither.
	Offload *OffloadConfig
	// Intensity says how compute-bound steps are, for ComputeUS of Stats; nil leaves it out.
	Intensity *latency.Intensity
	// KeepGaps records every inter-token gap in the results, not only the longest.
	KeepGaps bool
	// KeepBatches lists the requests of each batch in its Step, which costs time for each of them.
	KeepBatches bool
}

// Request is a request to enqueue.
type Request struct {
	// Tag is the caller's number for the request; results carry it.
	Tag           int32
	Path          kv.Path
	Input, Output int
	// Order is the position in the wait queue, lowest first. Equal ones wait in order of arrival,
	// preempted ones ahead of them. A preempted request keeps its order.
	Order float64
	// Priority is that of its blocks in a tier, for eviction by priority.
	Priority float64
	// EOS: an end-of-sequence token ends the output before its maximum length. The engine knows so when it has that
	// token. With asynchronous scheduling the next batch may then have one more token of the request, which is lost
	// (AsyncScheduler in vllm/v1/core/sched/async_scheduler.py).
	EOS bool
	// Drafts are read if there is Speculation.
	Drafts Drafts
	// Adapter is its LoRA adapter, 0 for none. Its Path must be that of prompts with this adapter.
	Adapter int32
	// Grammar is what its output follows, 0 for none. It takes CompileUS unless the replica has it, and now is Now.
	Grammar        int32
	CompileUS, Now des.Time
	// Items are the images and other media in its prompt, in order of their offsets, which do not overlap. They are
	// read if there is an Encoder, and copied.
	Items []Item
	// Moved is what the request has from another replica, nil for a new one.
	Moved *Moved
	// Hold keeps the blocks of the request when it has all its output, until Release. Remote: the blocks of its prompt
	// are at another replica, which holds them, and come by a transfer. Both need an Offload.
	Hold, Remote bool
}

// Moved is a request that another replica has served for a while: its result there, when its client got the last
// token, and whether it was in a batch. Its prompt and its tokens are computed again.
type Moved struct {
	Result
	lastTokenAt des.Time
	admitted    bool
}

// noTag is the tag of a sequence that has moved to another replica.
const noTag int32 = -1

// Progress is how far a running sequence is. Generated counts tokens that clients have, Computed
// those that are computed once all formed batches have run, Blocks the blocks they occupy.
type Progress struct{ Generated, Computed, Blocks int }

// sequence is a request inside the engine.
type sequence struct {
	tag           int32
	kv            kv.Seq
	input, output int32
	adapter       int32
	grammar       int32
	// generated and computed count tokens as of the end of all formed batches. For a decoding sequence
	// they are as of startTick, when it started decoding; it is done at endTick.
	generated, computed int32
	startTick, endTick  int64
	// lastTokens is how many tokens it got in the batch with number lastBatch, the last one that has any of it.
	// For a decoding sequence they are out of date.
	lastTokens, lastBatch int32
	// emitted counts the tokens that clients have. While onClock is set, the tokens of ticks after
	// countedTick are not in it yet.
	emitted     int32
	onClock     bool
	countedTick int64
	state       state
	// admitted: the sequence ran before; aborted: it is dropped when the step ends.
	admitted, aborted bool
	// hold and remote are as in the Request. pulled: its prompt came from another replica. overruns: one more token
	// than its output has is scheduled.
	// inPrompt: tokens were left to compute when it was last scheduled; only with a cadence.
	// read: its blocks stay until Release although it is aborted.
	hold, remote, pulled, overruns, inPrompt, read bool
	// admission numbers the admissions to the batch, in order.
	admission int64
	// order is the request's Order, heapIndex the sequence's position in the wait queue. arrival is its rank when it
	// entered that first.
	order       float64
	arrival     int64
	heapIndex   int32
	lastTokenAt des.Time
	gaps        Gaps
}

type state uint8

const (
	waiting state = iota
	// individual: running and scheduled one by one, because it computes a prompt or missed a step.
	individual
	// decoding: running with one token in every step until it is done.
	decoding
	// finishing: running with its last token in a batch that has not ended.
	finishing
	// loading: not running, with blocks for a load from the tier or from another replica.
	loading
	// held: it has all its output and keeps its blocks until Release.
	held
)

// Engine is one replica.
type Engine struct {
	cfg   Config
	model latency.Model
	cache *kv.Cache

	seqs  []sequence
	spare []int32
	wait  waitQueue

	// The running sequences: individual ones in order of admission, decoding ones by the tick at which
	// they have all their output, finishing ones in any order.
	individual []int32
	decoding   des.Queue
	finishing  []int32
	// started has every decoding sequence and some that no longer decode, if KeepBatches is set.
	started    []started
	admissions int64
	// newestDecoding is the highest admission number that ever started decoding.
	newestDecoding int64
	// context + n·tick is the number of tokens that n decoding sequences have computed.
	context int64
	longest longest
	window  window

	// current is the step in flight or, between steps, the last one; next is the batch to run after it,
	// if hasNext.
	current, next     *batch
	inFlight, hasNext bool
	late              bool // see FormsAtEnd
	// now is when a step was last started.
	now    des.Time
	formed []*Step
	// newest is the number of the newest batch, and newestTicked that of the newest one with decoding sequences.
	newest, newestTicked int32
	// emittedTick is the last tick whose tokens were emitted; deliveredAt is when clients got the
	// tokens of the last step.
	emittedTick int64
	deliveredAt des.Time
	// notBefore is the earliest time for tokens, after the last ones of requests that came from other replicas.
	notBefore des.Time
	// slow changes the lengths of steps; nil does not.
	slow func(start, length des.Time) des.Time
	// used is the number of used blocks during the step in flight.
	used int
	// aborted holds running sequences to drop when the step ends.
	aborted []int32
	// tokenlessSteps counts the steps since the last emitted token; more than stallLimit of them is an
	// error.
	tokenlessSteps, stallLimit int
	// uncheckedSteps counts the calls of Check since the last recount of the cache.
	uncheckedSteps int

	// offload is the state of the tier, nil without one. loaders are the sequences that hold blocks for a load and are
	// not running, in the order in which they are tried.
	offload *offload
	loaders []int32

	spec    *speculation // nil without
	lora    *lora        // nil without
	pipe    *pipeline    // nil without
	cadence *cadence     // nil without
	// grammars is nil until a request has one.
	grammars *grammars
	host     host
	skipping skipping
	early    []int32 // see LeftEarly

	encoder *encoder // nil without
	// features: any of spec, lora, pipe, cadence, grammars and encoder is not nil.
	features bool

	log gapLog
	// scheduled holds the tokens given to each individual sequence in the batch being formed, in the
	// order of individual.
	scheduled []int
	// chunkLimit is the number of tokens that one sequence may compute in the batch being formed; 0: no limit.
	chunkLimit int
	// earlierPreempted holds requests preempted by batches that turned out empty.
	earlierPreempted []int32
	// lostVictims is the next step's EarlierVictims.
	lostVictims int
	finished    []int32 // scratch
	own         ownLoad
	result      StepResult
	stats       Stats
}

// batch is a step and the sequences that get a token at its end.
type batch struct {
	Step
	number int32
	length des.Time
	// ticked: the decoding sequences take part, and tick is the cache's clock then. decoding of them
	// get a token; for those in finishing it is the last one.
	ticked    bool
	tick      int64
	decoding  int
	coasted   bool // Coast formed it
	finishing []int32
	// individual holds the other sequences that get a token.
	individual []int32
	// At its end stores begin, those of the newest growth first if it grows. It starts at notBefore at the earliest.
	grows  bool
	stores []pendingStore
	// storesLeft: stores of requests that have left are among these, or began.
	storesLeft bool
	notBefore  des.Time
	// drafted are all sequences in it with Speculation; finishing and individual are empty then.
	drafted []drafted
	// masked are the sequences in it that sample by a grammar. deferred: their masks are filled when the step before it
	// has ended. They are filled at filled.
	masked   []masked
	deferred bool
	filled   des.Time
	// flights are all sequences in it with a Pipeline, and stages is when each stage computes it.
	flights []flight
	stages  []span
	// encoded are the items that it encodes, withItems the sequences in it that may release items when it ends.
	encoded   []encoded
	withItems []int32
}

// Step is a batch with its start and end.
type Step struct {
	Start, End des.Time
	latency.Batch
	// Running, Waiting and UsedBlocks are as of when the batch was formed: with asynchronous
	// scheduling, the start of the previous step.
	Running, Waiting, UsedBlocks int
	// Admitted requests run for the first time, Preempted ones go back to the queue, Resumed ones run
	// again after a preemption.
	Admitted           []Admission
	Preempted, Resumed []int32
	// EarlierVictims is the number of requests preempted by a batch that was formed ahead and is no step,
	// since it has no tokens.
	EarlierVictims int
	// Entries are the requests in the batch in the order in which they were scheduled, empty unless
	// KeepBatches is set.
	Entries []Entry
	// The step begins with AdapterLoads of adapters into the memory of the host and AdapterCopies from there to the
	// GPU, which take AdapterUS.
	AdapterLoads, AdapterCopies int
	AdapterUS                   des.Time
	// The host fills Masks for requests with a grammar in MaskUS. The step ends MaskWaitUS later since it waits for
	// them.
	Masks              int
	MaskUS, MaskWaitUS des.Time
	// The encoder computes EncodedItems with EncodedTokens for the batch, which takes EncoderUS of the step.
	EncodedItems  int
	EncodedTokens int64
	EncoderUS     des.Time
}

// Entry is a request in a batch.
type Entry struct {
	Tag       int32
	Tokens    int
	admission int64
}

// Admission is a request that enters a batch for the first time.
type Admission struct {
	Tag         int32
	Loaded      int32 // tokens loaded from the tier
	FromStorage int32 // those of them that came from the storage below
	Cached      int   // prompt tokens found in the prefix cache
}

// StepResult is what becomes visible at the end of a step.
type StepResult struct {
	// DeliveredAt is when clients get the tokens.
	DeliveredAt des.Time
	// First are the requests that got their first token.
	First []int32
	// Done are the requests that got their last token and have left, in order of admission.
	Done []Result
	// Aborted are the requests aborted earlier whose blocks are now freed, without those that have moved.
	Aborted []int32
	// Decoding is the number of sequences that got a token DecodeGap after their previous one; Gaps
	// holds the gaps of all other sequences.
	Decoding  int
	DecodeGap des.Time
	Gaps      []des.Time
	// Prompts are, with WholePrompts, the requests that compute prompts, and how many of their tokens are computed.
	Prompts []Prompt
	// Coasted holds the gaps of the steps of Coast, after which all other fields but DeliveredAt are empty.
	Coasted []GapRun
}

// Prompt is a request of whose prompt this many tokens are computed, the cached ones included.
type Prompt struct {
	Tag    int32
	Tokens int
}

// Result is the outcome of a request that leaves.
type Result struct {
	Tag       int32
	Generated int
	Gaps      Gaps
}

// Stats are totals over the life of a replica. Times are in µs.
type Stats struct {
	Steps, BusyUS               int64
	PrefillTokens, DecodeTokens int64
	// DraftTokens were verified, in this many steps of sequences, and AcceptedTokens of them accepted.
	Verifications, DraftTokens, AcceptedTokens int64
	// AdapterLoads, AdapterCopies and AdapterUS are those of all steps that were formed.
	AdapterLoads, AdapterCopies, AdapterUS int64
	// GrammarRequests have a grammar, for which GrammarWaits of them waited, in all GrammarWaitUS until it was
	// compiled; Compilations were made. Masks, MaskUS and MaskWaitUS are those of steps.
	GrammarRequests, GrammarWaits, GrammarWaitUS, Compilations int64
	Masks, MaskUS, MaskWaitUS                                  int64
	// EncodedItems, EncodedTokens and EncoderUS are those of all steps that were formed. EncoderHits are items found in
	// the encoder cache, PrefixItems those in the cached prefix of a request at its first admission, which need no
	// embeddings. EncoderCuts counts the chunks that ended before an item since the encoder had no room for it.
	EncodedItems, EncodedTokens, EncoderUS, EncoderHits, PrefixItems, EncoderCuts int64
	// LoadedItems with LoadedTokens entered the encoder cache after they came from encode replicas.
	LoadedItems, LoadedTokens int64
	// QueriedTokens counts the prompt tokens of requests at their first admission, CachedTokens those
	// found in the prefix cache, PulledTokens those of prompts that a prefill replica computed.
	QueriedTokens, CachedTokens, PulledTokens int64
	Preemptions                               int64
	PeakWaiting, PeakRunning                  int
	// PeakPrefill and PeakDecode are the maximum prefill tokens and decode sequences of a step.
	PeakPrefill, PeakDecode int64
	PeakBlocks              int
	// BlockUS is the integral of used blocks over time, exact up to 2^53, which is years of a large
	// cache.
	BlockUS float64
	// StageUS is the sum over the stages of a pipeline of the times in which they compute; 0 without one.
	StageUS int64
	// ComputeUS is the sum over steps of their times, each times its Intensity; 0 without one.
	ComputeUS float64
}

// New returns an idle replica.
func New(cfg Config, model latency.Model, cache *kv.Cache) *Engine {
	e := &Engine{cfg: cfg, model: model, cache: cache, newestDecoding: -1,
		current: &batch{}, next: &batch{}, window: newWindow(cfg.Window),
		// A sequence computes at least one token a step, and the cache bounds how many it can hold.
		stallLimit: 1000 + 8*cache.Total()*cache.BlockSize(),
		offload:    newOffload(cfg.Offload, cache),
		spec:       newSpeculation(cfg.Speculation),
		lora:       newLoRA(cfg.LoRA),
		skipping:   skipping{blocked: none},
		pipe:       newPipeline(cfg.Pipeline),
		encoder:    newEncoder(cfg.Encoder),
		cadence:    newCadence(&cfg),
		log:        gapLog{keep: cfg.KeepGaps, limit: minGapLog, minLimit: minGapLog}}
	e.features = e.spec != nil || e.cadence != nil || e.skips()
	e.stopGrowthOnDemand()
	return e
}

// Waiting returns how many requests are queued or load from the tier.
func (e *Engine) Waiting() int { return len(e.wait.heap) + len(e.loaders) }

// Running returns how many sequences occupy a batch slot.
func (e *Engine) Running() int { return len(e.individual) + e.decoding.Len() + len(e.finishing) }

// Busy reports whether a step is in flight or the host fills masks. Something is then to be done at WakeAt.
func (e *Engine) Busy() bool { return e.inFlight || e.host.filling }

// Slow makes f give the length of each step from its start and the length that its batch has by itself. It is also
// asked for steps that start later. nil ends that.
func (e *Engine) Slow(f func(start, length des.Time) des.Time) { e.slow = f }

// Length returns how long the step in flight would take if nothing made it slow.
func (e *Engine) Length() des.Time { return e.current.length }

// SetLength makes the step in flight, which has just started, take this long. It does not go with Offload.
func (e *Engine) SetLength(length des.Time) {
	e.current.length, e.current.End = length, e.current.Start+length
}

// HasWork reports whether a batch has been formed that did not run, or any request is here.
func (e *Engine) HasWork() bool { return e.hasNext || e.Running()+e.Waiting() > 0 }

// Duration returns how long the step in flight takes; with a pipeline, how long stages compute it.
func (e *Engine) Duration() des.Time {
	if e.pipe != nil {
		return e.current.stageUS(e.current.End)
	}
	return e.current.End - e.current.Start
}

// Cache returns the replica's block cache.
func (e *Engine) Cache() *kv.Cache { return e.cache }

// Step returns the step in flight or, between steps, the last one. It is valid until the next
// Start or Coast.
func (e *Engine) Step() *Step { return &e.current.Step }

// Formed returns the batches that the last Start formed: one, or up to two with asynchronous
// scheduling, or any number with a pipeline. They are valid until the next Start or Coast.
func (e *Engine) Formed() []*Step { return e.formed }

// Stats returns the totals so far.
func (e *Engine) Stats() Stats { return e.stats }
