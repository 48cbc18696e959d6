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
	// KeepGaps: results carry every gap between tokens, not only the longest.
	KeepGaps bool
}

// Request is one request at a replica's door.
type Request struct {
	// Tag is the caller's number for it; results carry it.
	Tag           int32
	Path          kv.Path
	Input, Output int
}

// sequence is a request inside the engine.
type sequence struct {
	tag           int32
	kv            kv.Seq
	input, output int32
	// generated and computed count tokens; of a steady sequence they are those
	// at the time it became steady, which is tick since.
	generated, computed int32
	since               int64
	// scheduled is what the batch in flight computes of a sequence that is not
	// steady.
	scheduled int32
	state     state
	// admitted: it ran before; aborted: it leaves when the step ends.
	admitted, aborted bool
	// order counts admissions to running.
	order      int64
	prev, next int32 // in the wait queue
	lastToken  des.Time
	gaps       Gaps
}

type state uint8

const (
	waiting state = iota
	// single: running, visited one by one: it computes a prompt, or missed a step.
	single
	// steady: running, with one token in every step until it is done.
	steady
)

const none int32 = -1

// Engine is one replica.
type Engine struct {
	cfg   Config
	model latency.Model
	cache *kv.Cache

	seqs       []sequence
	spare      []int32
	head, tail int32 // of the wait queue
	queued     int

	// Those running: singles in order of admission, steadies by the tick at
	// which they will have all their output.
	singles  []int32
	steadies des.Queue
	orders   int64
	// newest is the highest order that ever became steady.
	newest int64
	// context + n·tick is the sum of what n steady sequences have computed.
	context int64

	step     Step
	inFlight bool
	// ticked: the step in flight gives the steady sequences a token.
	ticked bool
	// aborted are running sequences that leave when the step ends.
	aborted []int32
	// fruitless counts the steps since a token appeared; there can be patience
	// of them.
	fruitless, patience int

	log      gapLog
	finished []int32 // scratch
	ends     Ends
	stats    Stats
}

// Step is a batch and its time.
type Step struct {
	Start, End des.Time
	latency.Batch
	// Running, Waiting and UsedBlocks are as the batch was formed.
	Running, Waiting, UsedBlocks int
	// Admitted ran for the first time, Preempted were thrown back.
	Admitted  []Admission
	Preempted []int32
}

// Admission is a request's first place in a batch.
type Admission struct {
	Tag    int32
	Cached int // prompt tokens found in the prefix cache
}

// Ends is what became visible at the end of a step.
type Ends struct {
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
	PeakBlocks                  int
	// BlockUS is the integral of used blocks over time. A float64 holds what
	// years of a large cache are, and 2^53 exactly.
	BlockUS float64
}

// New returns an idle replica.
func New(cfg Config, model latency.Model, cache *kv.Cache) *Engine {
	return &Engine{cfg: cfg, model: model, cache: cache, head: none, tail: none, newest: -1,
		// The first in line computes a token a step, and no more than fit.
		patience: cache.Total()*cache.BlockSize() + 1,
		log:      gapLog{keep: cfg.KeepGaps, limit: minLog}}
}

// Waiting returns how many requests are queued.
func (e *Engine) Waiting() int { return e.queued }

// Running returns how many sequences hold a place in the batch.
func (e *Engine) Running() int { return len(e.singles) + e.steadies.Len() }

// Busy reports whether a step is in flight.
func (e *Engine) Busy() bool { return e.inFlight }

// Cache returns the replica's block cache.
func (e *Engine) Cache() *kv.Cache { return e.cache }

// Step returns the last batch. It is valid until the next Start.
func (e *Engine) Step() *Step { return &e.step }

// Stats returns the sums so far.
func (e *Engine) Stats() Stats { return e.stats }
