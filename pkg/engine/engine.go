// Package engine is the data plane: one replica that serves requests as vLLM's
// V1 engine does (vllm/v1/core/sched/scheduler.py), with continuous batching,
// chunked prefill, a prefix cache and preemption by recomputation.
//
// The caller owns the clock: Start forms a batch and says when its step ends,
// Finish, at that time, makes its effects visible. While a step only decodes,
// both cost the same for one sequence as for a thousand.
package engine

import (
	"blis/pkg/des"
	"blis/pkg/kv"
	"blis/pkg/latency"
)

// Config is what bounds a batch. The names are vLLM's.
type Config struct {
	MaxNumSeqs          int
	MaxNumBatchedTokens int
	// ChunkedPrefill: a prompt may be computed over several steps.
	ChunkedPrefill bool
	// LongPrefillTokenThreshold is the most tokens that one sequence may
	// compute in a step; 0 is no such bound.
	LongPrefillTokenThreshold int
	// AsyncScheduling: the next batch is formed when a step starts, not when it
	// ends.
	AsyncScheduling bool
	// ReserveFullSequence: a request is admitted only if blocks for all its
	// tokens are free, not only for its first chunk.
	ReserveFullSequence bool
	// WatermarkBlocks must stay free when a request is admitted beside others.
	WatermarkBlocks int
	// Window is how many tokens the sliding-window layers of the model see; 0
	// where there are none.
	Window int
	// Victim says how gladly a running sequence is preempted when another one
	// lacks blocks: the highest is, of equals the one admitted last. It is asked
	// anew each time; nil is the same for all.
	Victim func(tag int32, p Progress) float64
	// KeepGaps: results carry every gap between tokens, not only the longest.
	KeepGaps bool
}

// Request is one request at a replica's door.
type Request struct {
	// Tag is the caller's number for it; results carry it.
	Tag           int32
	Path          kv.Path
	Input, Output int
	// Order is its place in the wait queue, the lowest first; equals wait as they
	// came, preempted ones before them. It keeps it when it is preempted.
	Order float64
}

// Progress is how far a running sequence is: Generated tokens have appeared,
// Computed are, when all batches that were formed have run, in Blocks blocks.
type Progress struct{ Generated, Computed, Blocks int }

// sequence is a request inside the engine.
type sequence struct {
	tag           int32
	kv            kv.Seq
	input, output int32
	// generated and computed count tokens as they will be when all batches that
	// were formed have run; of a steady sequence, as of the time it became
	// steady, which is tick since: it is done at tick until.
	generated, computed int32
	since, until        int64
	// shown counts the tokens that have appeared; if counting, those of ticks
	// after seen come to it.
	shown    int32
	counting bool
	seen     int64
	state    state
	// admitted: it ran before; aborted: it leaves when the step ends.
	admitted, aborted bool
	// turn counts admissions to running.
	turn int64
	// order is what the wait queue is ordered by, place the sequence's place
	// there.
	order     float64
	place     int32
	lastToken des.Time
	gaps      Gaps
}

type state uint8

const (
	waiting state = iota
	// single: running, visited one by one: it computes a prompt, or missed a step.
	single
	// steady: running, with one token in every step until it is done.
	steady
	// ending: running, with its last token in a batch that has not ended.
	ending
)

// Engine is one replica.
type Engine struct {
	cfg   Config
	model latency.Model
	cache *kv.Cache

	seqs  []sequence
	spare []int32
	wait  waitQueue

	// Those running: singles in order of admission, steadies by the tick at
	// which they will have all their output, endings in any order.
	singles  []int32
	steadies des.Queue
	endings  []int32
	turns    int64
	// newest is the highest turn that ever became steady.
	newest int64
	// context + n·tick is the sum of what n steady sequences have computed.
	context int64
	window  window

	// current is the step in flight or, between steps, the last one; ahead is
	// the batch to run next, if it isQueued.
	current, ahead     *batch
	inFlight, isQueued bool
	formed             []*Step
	// shown is the last tick whose tokens have appeared, seen when clients saw the
	// tokens of the last step.
	shown int64
	seen  des.Time
	// used blocks while the step in flight runs.
	used int
	// aborted are running sequences that leave when the step ends.
	aborted []int32
	// fruitless counts the steps since a token appeared; there can be patience
	// of them.
	fruitless, patience int

	log gapLog
	// parts are what the sequences got that had their turn in the batch that is
	// being formed, by their places in singles.
	parts []int
	// thrown were preempted by batches that came to nothing.
	thrown   []int32
	finished []int32 // scratch
	ending   []until // scratch of Outlook, as is before
	before   kv.Ahead
	ends     Ends
	stats    Stats
}

// batch is a step and who gets a token at its end.
type batch struct {
	Step
	length des.Time
	// ticked: the steady sequences take part, and the cache's clock is tick then.
	// steady of them get a token, which for those in last is the last one.
	ticked bool
	tick   int64
	steady int
	last   []int32
	// tokens are the other sequences that get a token.
	tokens []int32
}

// Step is a batch and its time.
type Step struct {
	Start, End des.Time
	latency.Batch
	// Running, Waiting and UsedBlocks are as the batch was formed, which with
	// asynchronous scheduling is at the start of the step before.
	Running, Waiting, UsedBlocks int
	// Admitted ran for the first time, Preempted were thrown back, Resumed run again
	// after they had been.
	Admitted           []Admission
	Preempted, Resumed []int32
}

// Admission is a request's first place in a batch.
type Admission struct {
	Tag    int32
	Cached int // prompt tokens found in the prefix cache
}

// Ends is what became visible at the end of a step.
type Ends struct {
	// Seen is when clients see the tokens.
	Seen des.Time
	// First got their first token.
	First []int32
	// Done got their last one and have left, in order of admission.
	Done []Result
	// Left were aborted before and have now given back their blocks.
	Left []int32
	// Steady sequences got a token Gap after their last one; Gaps are the
	// others' gaps.
	Steady int
	Gap    des.Time
	Gaps   []des.Time
}

// Result is what a request has when it leaves.
type Result struct {
	Tag       int32
	Generated int
	Gaps      Gaps
}

// Stats are sums over a replica's life. Times are µs.
type Stats struct {
	Steps, BusyUS               int64
	PrefillTokens, DecodeTokens int64
	// QueriedTokens are the prompt tokens of requests at their first admission,
	// CachedTokens those of them that were found.
	QueriedTokens, CachedTokens int64
	Preemptions                 int64
	PeakWaiting, PeakRunning    int
	// PeakPrefill and PeakDecode are the most prefill tokens and decode sequences
	// of a step.
	PeakPrefill, PeakDecode int64
	PeakBlocks              int
	// BlockUS is the integral of used blocks over time. A float64 holds what
	// years of a large cache are, and 2^53 exactly.
	BlockUS float64
}

// New returns an idle replica.
func New(cfg Config, model latency.Model, cache *kv.Cache) *Engine {
	return &Engine{cfg: cfg, model: model, cache: cache, newest: -1,
		current: &batch{}, ahead: &batch{}, window: newWindow(cfg.Window),
		// One sequence computes a token a step at least, and no more than fit.
		patience: 1000 + 8*cache.Total()*cache.BlockSize(),
		log:      gapLog{keep: cfg.KeepGaps, limit: minLog, least: minLog}}
}

// Waiting returns how many requests are queued.
func (e *Engine) Waiting() int { return len(e.wait.heap) }

// Running returns how many sequences hold a place in the batch.
func (e *Engine) Running() int { return len(e.singles) + e.steadies.Len() + len(e.endings) }

// Busy reports whether a step is in flight.
func (e *Engine) Busy() bool { return e.inFlight }

// Cache returns the replica's block cache.
func (e *Engine) Cache() *kv.Cache { return e.cache }

// Step returns the step in flight or, between steps, the one that has ended. It
// is valid until the next Start.
func (e *Engine) Step() *Step { return &e.current.Step }

// Formed returns the batches that the last Start formed: one, with asynchronous
// scheduling one or two. They are valid until the next Start.
func (e *Engine) Formed() []*Step { return e.formed }

// Stats returns the sums so far.
func (e *Engine) Stats() Stats { return e.stats }
