// Package reference simulates a small cluster of vLLM-like replicas in the simplest possible way:
// every instant, step, block and token on its own, lists that are scanned, prefixes compared as
// text. It implements the rules of the fast simulator a second time, for tests only. It shares no
// code with the fast simulator and imports nothing of this module.
//
// It covers one deployment with synchronous or asynchronous scheduling; queues ordered by arrival,
// priority or predicted length; preemption by recomputation of the request admitted last or of the
// lowest priority; always-admit; flow control; and routers that see current or stale queues. It checks its own
// invariants at every batch (each block has as many owners as holders, no batch exceeds its limits)
// and panics on a violation.
package reference

import (
	"fmt"
	"math"
	"slices"
)

// Config is one cluster. All times are in µs.
type Config struct {
	Replicas            int
	MaxNumSeqs          int
	MaxNumBatchedTokens int
	BlockSize           int
	// NumBlocks is the number of KV blocks of a replica. No request gets one of them, the null block.
	NumBlocks     int
	Chunked       bool
	PrefixCaching bool
	// LongPrefillThreshold limits the tokens of one request in a step; 0 is no limit.
	LongPrefillThreshold int
	// MaxModelLen limits input plus output; 0 is no limit.
	MaxModelLen int
	// PrefillInterval above 1 lets prompts be computed only in a step in this many, while any request decodes. It does
	// not go with Host.
	PrefillInterval int
	// Switches are engine rules that are off by default.
	Switches
	// Alpha is the delay before the queue (constant and per input token) and the delay of a token on
	// its way to the client (constant and per decoding sequence of its step). The tokens of a step
	// are seen at least 1 µs after those of the step before.
	Alpha [4]float64
	// Beta is the step time: constant, per prefill token, per decoding sequence and, if there is a
	// fourth number, per token of decode context. StepTime replaces it if set. No step is shorter
	// than 1 µs.
	Beta     []float64
	StepTime func(Batch) int64
	// Window limits the window sums of a batch; 0 leaves them 0.
	Window int
	// Host is the memory to which full blocks are offloaded, nil if there is none.
	Host *Host
	// Speculation is speculative decoding, nil for none. It goes with neither Host nor Groups.
	Speculation *Speculation
	// LoRA is the use of adapters, nil for none. It does not go with Host.
	LoRA *LoRA
	// Ranks are data-parallel ranks, nil for none. They go with neither Host, LoRA, Door, Scaling, Failures, Flow nor
	// Disaggregation.
	Ranks *Ranks
	// Grammars is structured output, nil if no request has a grammar. It does not go with Host.
	Grammars *Grammars
	// Pipeline divides the layers into stages, nil does not. It goes with neither Host nor Speculation.
	Pipeline *Pipeline
	// Encoder computes the embeddings of images, nil for none. It goes with none of Host, Speculation, LoRA, Grammars,
	// Pipeline and states.
	Encoder *Encoder
	// Door are the limits of the servers.
	Door FrontDoor
	// Groups are the KV cache groups; without any there is one of full attention with BlockSize.
	Groups []Group

	AdmissionLatencyUS int64
	RoutingLatencyUS   int64
	// Routing is round-robin, least-loaded (requests in flight), least-snapshot (running and queued,
	// as last seen), power-of-two, prefix-affinity, weighted, stateful, attribute, llm-d or
	// dynamo-kv with the parameters Named, pools with Pools, or profile: llm-d with the plugins Profile.
	Routing string
	Named   NamedRouter
	Pools   Pools
	Profile []Plugin
	// Admission may reject requests; nil admits all.
	Admission *Admission
	// TenantLimits limits tenants at admission; nil limits none.
	TenantLimits *TenantLimits
	// Flow is flow control, nil is none.
	Flow *Flow
	// Scaling is an auto-scaler, nil is none. It goes with round-robin, least-loaded, least-snapshot, power-of-two,
	// prefix-affinity and weighted.
	Scaling *Scaling
	// Failures are replicas that fail, nil are none.
	Failures *Failures
	// EncodePool encodes the items of prompts for an Encoder, nil if replicas do it.
	EncodePool *EncodePool
	// Disaggregation computes prompts on other replicas, nil does not.
	Disaggregation *Disaggregation
	Choices
	// SnapshotUS is the interval at which routers read the queues and batches of replicas: at its
	// multiples, after all other events of that instant except the start of steps; 0 is always.
	SnapshotUS int64
	// Scheduler is fcfs (also ""), priority-fcfs, reverse-priority or sjf. Preemption is last-in
	// (also "") or lowest-priority.
	Scheduler, Preemption string
	// Victim replaces Preemption if set: the request with the highest value is preempted, of equals
	// the one admitted last. generated is the number of output tokens so far. computed is the number
	// of tokens computed in blocks blocks, including batches already formed.
	Victim func(q Request, generated, computed, blocks int) float64
	// Scorers are the terms of weighted, in order.
	Scorers []Scorer
	// TierWeights are those of blocks in the cache, the host and the storage for the scorer tiered-prefix.
	TierWeights [3]float64
	// ShadowBlocks is the number of blocks that the router remembers for each replica; 0 is
	// DefaultShadowBlocks.
	ShadowBlocks int
	// HorizonUS ends the run, unless it is Never.
	HorizonUS int64
}

// Choices are rules by which routers choose.
type Choices struct {
	// Tie chooses among equally good replicas: first (also ""), random, or least-inflight and then
	// random.
	Tie string
	// Picker chooses by weighted scores: max-score (also ""), random or weighted-random.
	Picker string
	// TieSeed and DrawSeed start the random numbers for ties and for everything else.
	TieSeed, DrawSeed uint64
}

// Switches are optional rules of an engine.
type Switches struct {
	// Async forms each batch when the previous step starts.
	Async bool
	// ReserveFull admits a waiting request only if the blocks for all its tokens are free, although
	// it gets only those of its first chunk.
	ReserveFull bool
	// Watermark is the fraction of all blocks that a request admitted while others run must leave
	// free.
	Watermark float64
	// UnhashedFirst frees blocks without a hash to the front of the free list.
	UnhashedFirst bool
	// SpareLone does not apply LongPrefillThreshold to a request that is the only one. Adaptive raises
	// it to the share of each request in the budget.
	SpareLone, Adaptive bool
	// ContinueAfterSelf schedules the requests behind one that preempted itself.
	ContinueAfterSelf bool
	// SkipAfterIdle skips the request behind one that preempted an earlier one of which the batch
	// computes nothing.
	SkipAfterIdle bool
	// HashAll hashes every full block, also after the last multiple of all block sizes. Not with Sparse.
	HashAll bool
	// Sparse hashes blocks of windows only where a later prompt can continue: at the end of the prompt, where
	// the request left a cached prefix, and at multiples of Interval tokens, unless it is 0.
	Sparse   bool
	Interval int
	// KeepUntilComputed frees blocks of windows when the step that needs them has ended.
	KeepUntilComputed bool
	// ReserveWindow makes ReserveFull count no more blocks of a window than it can hold.
	ReserveWindow bool
	// States are the rules for groups with a recurrent state.
	States States
}

// defaultShadowBlocks is the capacity of the router's prefix index for one replica.
const defaultShadowBlocks = 31250

// Scorer is a term of the weighted router: prefix-affinity or queue-depth.
type Scorer struct {
	Name   string
	Weight float64
}

// Never is the time of an event that did not occur, and the replica of a request that was not
// routed.
const Never = -1

// Request is one request of a workload.
type Request struct {
	ID        string
	ArrivalUS int64
	Input     int
	Output    int
	// Prompt lists the leading segments; the rest of Input is unique.
	Prompt []Segment
	// DeadlineUS aborts the request, unless it is Never.
	DeadlineUS int64
	// A higher Priority runs sooner. Predicted is the output length that schedulers assume.
	Priority  float64
	Predicted int
	// EOS: the last token ends the output before the maximum length of the request.
	EOS bool
	// Adapter is its LoRA adapter, unless it is empty.
	Adapter string
	// Grammar is what its output follows, unless it is empty.
	Grammar string
	// DraftAcceptance replaces the rates of Speculation, unless it is nil.
	DraftAcceptance *float64
	// Sheddable requests may be rejected under load.
	Sheddable bool
	// Tenant sent it. TTFTTargetMS is the target of its class for the time to the first token, 0 is none.
	Tenant       string
	TTFTTargetMS float64
	SessionStep
	Retry
}

// Segment is the first Tokens tokens of the sequence called ID. The output of request R is the
// sequence "R.out". Media are images and the like.
type Segment struct {
	ID     string
	Tokens int
	Media  bool
}

// States of an Outcome. BeyondHorizon is a request or a session that was not offered, NotOffered a
// session step that was never issued.
const (
	Completed     = "completed"
	Rejected      = "rejected"
	TimedOut      = "timed_out"
	failed        = "failed"
	Unfinished    = "unfinished"
	BeyondHorizon = "beyond_horizon"
	NotOffered    = "not_offered"
)

// Outcome is the result of one request. FirstTokenUS and CompletedUS are client times. TokensUS are
// the ends of the steps that generated each token, SeenUS the times when the client saw it.
type Outcome struct {
	ID             string
	State          string
	Reason         string
	ArrivalUS      int64
	AdmittedUS     int64
	RoutedUS       int64
	EnqueuedUS     int64
	ScheduledUS    int64
	FirstTokenUS   int64
	CompletedUS    int64
	Replica        int
	Generated      int
	Cached         int
	Loaded         int // from the host
	FromStorage    int // of those
	ExpectedCached int
	Preemptions    int
	// Those with a prefill replica have its number, or Never, these times, and the hits on the decode replica.
	PrefillReplica                                     int
	PrefillEnqueuedUS, PrefillScheduledUS, PrefilledUS int64
	TransferStartedUS, TransferredUS                   int64
	TransferBlocks, DecodeCached                       int
	// EncodedUS is when encode replicas had encoded its items, EmbeddingsUS when the last embeddings of them came while
	// it waited for its first batch.
	EncodedUS, EmbeddingsUS int64
	Redirects               int
	// Retried: the client sends it again. RetryOf is the first attempt, RetryUS the time since it arrived.
	Retried bool
	RetryOf string
	RetryUS int64
	// PreemptedUS is the time spent waiting after preemptions.
	PreemptedUS int64
	// StoppedUS is the time in the queue before the first batch in which each limit stopped the queue.
	StoppedUS [stops]int64
	// GrammarUS is the time in the queue before that until its grammar was compiled.
	GrammarUS int64
	TokensUS  []int64
	SeenUS    []int64
	// DeadlineAt says where the request was at its deadline: admission, routing, flow, delay, queue,
	// flight (preempted and queued with a token in flight), running (in a step in progress), ahead
	// (in the batch behind the step in progress only) or between (two steps).
	DeadlineAt string
}

// Step is one step of one replica that ended within the run. Preempted, UsedBlocks, Running and
// Waiting are as of the forming of its batch.
type Step struct {
	StartUS, EndUS int64
	Batch
	Preempted int
	// AdapterUS is the time of its AdapterLoads into the memory of the host and AdapterCopies to the GPU.
	AdapterLoads, AdapterCopies int
	AdapterUS                   int64
	// Masks were filled for it in MaskUS. It ends MaskWaitUS later since it waits for them.
	Masks              int
	MaskUS, MaskWaitUS int64
	// EncoderUS is the time to encode EncodedItems with EncodedTokens.
	EncodedItems             int
	EncodedTokens, EncoderUS int64
	UsedBlocks               int
	Running, Waiting         int
	// Shares are the tokens of each request in the batch, in the order of scheduling.
	Shares []Share
}

// Share is the part of a batch that one request has.
type Share struct {
	ID     string
	Tokens int
}

// Result is one run: an outcome for each request, in order, then those of further attempts, and the steps of each
// replica.
type Result struct {
	Outcomes []Outcome
	Requests []Request // of these outcomes
	Steps    [][]Step
	// Decode is the number of replicas that are no prefill replicas. They come first.
	Decode int
	// Fleet are the looks of the auto-scaler and the changes of the states of replicas.
	Fleet []string
	// Duplicates counts blocks registered with the hash of another block. Evictions counts blocks
	// that lost their hash.
	Duplicates, Evictions int
	// ReservationBlocked counts attempts to admit that only ReserveFull prevented, WatermarkBlocked
	// those that only Watermark prevented.
	ReservationBlocked, WatermarkBlocked int
	// DeferredBatches had no prompts by PrefillInterval, and turned away TurnedAway requests.
	DeferredBatches, TurnedAway int
	// UndoneVictims counts requests preempted after the same batch had computed something of them.
	// SelfPreempted counts requests that were preempted for lack of blocks of their own. Retries
	// counts batches that preempted and computed nothing.
	UndoneVictims, SelfPreempted, Retries int
	// TieDraws counts choices drawn among equally good replicas.
	TieDraws int
	// HeldBack counts requests that waited for an open replica, without flow control.
	HeldBack int
	// Spared counts batches of one request that the threshold spares. Raised counts those in which it is
	// higher than configured. Continued counts requests scheduled behind one that preempted itself, Skipped
	// those that SkipAfterIdle skips.
	Spared, Raised, Continued, Skipped int
	// Junctions counts lookups in which one group had a longer prefix than all. Deferred counts attempts to admit
	// a request that waits for a state.
	Junctions, Deferred int
	Async               AsyncCounts
	// Transfers are those of each replica, in the order in which they ended.
	Transfers [][]Transfer
	Host      HostCounts
	Drafts    DraftCounts
	Adapters  AdapterCounts
	Ranks     RankCounts
	Grammars  GrammarCounts
	Pipeline  PipelineCounts
	// StageUS is the time in which the stages of each replica with a Pipeline computed.
	StageUS []int64
	Items   EncoderCounts
	Pieces  PieceCounts
	// EncodePool counts what encode replicas did, and Embeddings are the transfers from them.
	EncodePool EncodePoolCounts
	Embeddings []EmbeddingsTransfer
}

// AsyncCounts counts what happens only to batches formed while a step is in progress.
type AsyncCounts struct {
	// PendingVictims were preempted with a token in flight, DrainingVictims with their last one.
	PendingVictims, DrainingVictims int
	// DroppedBatches compute nothing although requests wait or have tokens left to compute.
	// DroppedVictims were preempted while such batches were formed.
	DroppedBatches, DroppedVictims int
	// DrainingSlots counts batches that admit no request because draining requests hold the batch
	// slots.
	DrainingSlots int
	// Overruns counts tokens scheduled behind the last one of a request.
	Overruns int
	// LateHashes counts blocks that got their hash when a token arrived. LateLookups counts lookups
	// that ended at a block that a running request has computed but for tokens still in flight.
	LateHashes, LateLookups int
	// AbandonedSteps counts steps that started after all their requests had left.
	AbandonedSteps int
}

func (a *AsyncCounts) add(b AsyncCounts) {
	a.PendingVictims += b.PendingVictims
	a.DrainingVictims += b.DrainingVictims
	a.DroppedBatches += b.DroppedBatches
	a.DroppedVictims += b.DroppedVictims
	a.DrainingSlots += b.DrainingSlots
	a.Overruns += b.Overruns
	a.LateHashes += b.LateHashes
	a.LateLookups += b.LateLookups
	a.AbandonedSteps += b.AbandonedSteps
}

// Run simulates the requests, which are sorted by arrival. It panics on input that no reader would
// accept.
func Run(c Config, requests []Request) Result {
	if err := check(c, requests); err != nil {
		panic("reference: " + err.Error())
	}
	s := newSimulation(c, requests)
	s.run()
	return s.result()
}

// check reports errors in the configuration and the requests.
func check(c Config, requests []Request) error {
	if c.Replicas < 1 || c.MaxNumSeqs < 1 || c.MaxNumBatchedTokens < 1 || c.BlockSize < 1 || c.usable() < 1 {
		return fmt.Errorf("a cluster that cannot exist: %+v", c)
	}
	if c.Watermark < 0 || c.Watermark > 1 {
		return fmt.Errorf("watermark must be between 0 and 1, is %g", c.Watermark)
	}
	if c.StepTime == nil && len(c.Beta) != 3 && len(c.Beta) != 4 {
		return fmt.Errorf("beta has %d numbers, not 3 or 4", len(c.Beta))
	}
	if err := checkRouting(c); err != nil {
		return err
	}
	seen := map[string]bool{}
	last := int64(0)
	for _, r := range requests {
		named := 0
		for _, s := range r.Prompt {
			if s.Tokens < 1 {
				return fmt.Errorf("request %s: segment %s has %d tokens", r.ID, s.ID, s.Tokens)
			}
			named += s.Tokens
		}
		switch {
		case seen[r.ID]:
			return fmt.Errorf("request %s: there are two", r.ID)
		case r.ArrivalUS < last:
			return fmt.Errorf("request %s: arrival %d after %d", r.ID, r.ArrivalUS, last)
		case r.Input < 1 || r.Output < 1:
			return fmt.Errorf("request %s: input and output must be at least 1 token", r.ID)
		case named > r.Input:
			return fmt.Errorf("request %s: segments of %d tokens in a prompt of %d", r.ID, named, r.Input)
		case r.DeadlineUS != Never && r.DeadlineUS < r.ArrivalUS:
			return fmt.Errorf("request %s: deadline %d before arrival %d", r.ID, r.DeadlineUS, r.ArrivalUS)
		}
		seen[r.ID], last = true, r.ArrivalUS
	}
	return nil
}

func checkRouting(c Config) error {
	switch c.Routing {
	case "round-robin", "least-loaded", "least-snapshot", "power-of-two", "prefix-affinity", "weighted",
		"stateful", "attribute", "llm-d", "profile", "dynamo-kv", "pools":
	default:
		return fmt.Errorf("unknown routing %q", c.Routing)
	}
	if !slices.Contains([]string{"", "first", "random", "least-inflight"}, c.Tie) {
		return fmt.Errorf("unknown tie %q", c.Tie)
	}
	if !slices.Contains([]string{"", "max-score", "random", "weighted-random"}, c.Picker) {
		return fmt.Errorf("unknown picker %q", c.Picker)
	}
	switch c.Scheduler {
	case "", "fcfs", "priority-fcfs", "reverse-priority", "sjf":
	default:
		return fmt.Errorf("unknown scheduler %q", c.Scheduler)
	}
	if c.Preemption != "" && c.Preemption != "last-in" && c.Preemption != "lowest-priority" {
		return fmt.Errorf("unknown preemption %q", c.Preemption)
	}
	for _, s := range c.Scorers {
		if s.Name != "prefix-affinity" && s.Name != "queue-depth" && s.Name != "tiered-prefix" {
			return fmt.Errorf("unknown scorer %q", s.Name)
		}
	}
	return nil
}

// usable is the number of blocks that requests can have.
func (c *Config) usable() int { return c.NumBlocks - 1 }

// queueDelay is the time from the router to the wait queue.
func (c *Config) queueDelay(input int) int64 {
	return roundHalfUp(c.Alpha[0] + float64(c.Alpha[1]*float64(input)))
}

// clientDelay is the time from the end of a step until clients see its tokens.
func (c *Config) clientDelay(b Batch) int64 {
	return roundHalfUp(c.Alpha[2] + float64(c.Alpha[3]*float64(b.Decode)))
}

func roundHalfUp(x float64) int64 {
	whole := math.Floor(x)
	if x-whole >= 0.5 {
		whole++
	}
	return int64(whole)
}
