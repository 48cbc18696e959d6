// Package reference simulates a small cluster of vLLM-like replicas in the
// plainest way there is: every instant, every step, every block and every
// token by itself, lists that are scanned, and prefixes compared as text. It is
// the second reading of the rules that the fast simulator implements, and only
// tests use it: it shares no code with what it is compared with, so it imports
// nothing of this module.
//
// It covers one deployment with synchronous or asynchronous scheduling, queues by
// arrival, priority or predicted length, preemption by recomputation of the last
// admitted or the lowest priority, always-admit, and routers that see queues as
// they are or as they were. Its own
// laws (each block owned as often as it is held, no batch above its limits) are
// checked at every batch; a breach panics.
package reference

import (
	"fmt"
	"math"
)

// Config is one cluster. All times are µs.
type Config struct {
	Replicas            int
	MaxNumSeqs          int
	MaxNumBatchedTokens int
	BlockSize           int
	// NumBlocks is the KV capacity of a replica.
	NumBlocks     int
	Chunked       bool
	PrefixCaching bool
	// LongPrefillThreshold caps what a step computes of one request; 0 is off.
	LongPrefillThreshold int
	// MaxModelLen bounds input plus output; 0 is no bound.
	MaxModelLen int
	// Switches are those of the engine's rules that are off by default.
	Switches
	// Alpha is the delay before the queue, constant and per input token, and
	// the delay of a token on its way to the client, constant and per decode
	// sequence of its step; what comes of a step is seen at least 1 after what came of
	// the one before.
	Alpha [4]float64
	// Beta is a step's time: constant, per prefill token, per decode sequence,
	// and, if there is a fourth, per token of decode context. StepTime, if there
	// is one, takes its place; no step is shorter than 1.
	Beta     []float64
	StepTime func(Batch) int64
	// Window is what the sums over windows are cut to; 0 leaves them 0.
	Window int
	// WindowBlocks and WindowExtra: beside each of its first WindowBlocks blocks a
	// request holds WindowExtra more, that have no content.
	WindowBlocks, WindowExtra int

	AdmissionLatencyUS int64
	RoutingLatencyUS   int64
	// Routing is round-robin, least-loaded (requests in flight), least-snapshot
	// (running and queued, as last seen) or weighted.
	Routing string
	// SnapshotUS is how often routers see the queues and batches of replicas: at
	// the multiples of it, after all that happens at that instant but the start of
	// steps; 0 is always.
	SnapshotUS int64
	// Scheduler is fcfs (also ""), priority-fcfs, reverse-priority or sjf,
	// Preemption last-in (also "") or lowest-priority.
	Scheduler, Preemption string
	// Victim, if there is one, takes the place of Preemption: the request of the
	// highest value is preempted, of equals the one admitted last. So many tokens
	// of its output have appeared; so many of all its tokens are computed, those of
	// batches that were formed included, in so many blocks.
	Victim func(q Request, generated, computed, blocks int) float64
	// Scorers are what weighted adds up, in this order.
	Scorers []Scorer
	// ShadowBlocks is how many blocks the router remembers for each replica;
	// 0 is DefaultShadowBlocks.
	ShadowBlocks int
	// HorizonUS ends the run; Never does not.
	HorizonUS int64
}

// Switches are rules of an engine that it may have or not.
type Switches struct {
	// Async forms each batch when the step before it starts.
	Async bool
	// ReserveFull admits a waiting request only if the blocks of all its tokens
	// are free, although it gets only those of its first chunk.
	ReserveFull bool
	// Watermark is the fraction of all blocks that must be left free by a
	// request that is admitted while others run.
	Watermark float64
}

// DefaultShadowBlocks is the capacity of the router's index of one replica.
const DefaultShadowBlocks = 31250

// Scorer is a term of the weighted router: prefix-affinity or queue-depth.
type Scorer struct {
	Name   string
	Weight float64
}

// Never is the time of what did not happen, and the replica of what was not
// routed.
const Never = -1

// Request is one request, as a workload has it.
type Request struct {
	ID        string
	ArrivalUS int64
	Input     int
	Output    int
	// Prompt names the leading tokens; what it leaves of Input is unique.
	Prompt []Segment
	// DeadlineUS aborts the request; Never does not.
	DeadlineUS int64
	// Priority is higher for what is sooner, Predicted what schedulers believe
	// Output to be.
	Priority  float64
	Predicted int
	SessionStep
}

// Segment is the first Tokens tokens of the sequence called ID. What request R
// generates is the sequence "R.out".
type Segment struct {
	ID     string
	Tokens int
}

// States of an Outcome. BeyondHorizon is a request, or a session, that was not
// offered, NotOffered a step of one that never came.
const (
	Completed     = "completed"
	Rejected      = "rejected"
	TimedOut      = "timed_out"
	Unfinished    = "unfinished"
	BeyondHorizon = "beyond_horizon"
	NotOffered    = "not_offered"
)

// Outcome is what became of one request. FirstTokenUS and CompletedUS are what
// the client saw, TokensUS the ends of the steps that made each token and SeenUS when
// the client saw it.
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
	ExpectedCached int
	Preemptions    int
	// PreemptedUS is how long it waited for a place again.
	PreemptedUS int64
	TokensUS    []int64
	SeenUS      []int64
	// Met says where a deadline met the request: admission, routing, delay,
	// queue, flight (in the queue, preempted, with a token still coming), running
	// (in the middle of a step), ahead (in the middle of a step, and only the
	// batch behind it has the request) or between (two steps).
	Met string
}

// Step is one step of one replica that ended within the run. Preempted,
// UsedBlocks, Running and Waiting are counted once its batch was formed.
type Step struct {
	StartUS, EndUS int64
	Batch
	Preempted        int
	UsedBlocks       int
	Running, Waiting int
}

// Result is one run: an outcome for each request, in their order, and the steps
// of each replica.
type Result struct {
	Outcomes []Outcome
	Steps    [][]Step
	// Duplicates counts blocks that took a hash which another block had;
	// Evictions counts blocks that lost theirs.
	Duplicates, Evictions int
	// Reserved and Kept count attempts to admit for which there was memory but
	// for ReserveFull, or else for Watermark.
	Reserved, Kept int
	// Undone counts requests that were preempted after the same batch had computed
	// something of them, Yielded those that were for want of blocks of their own,
	// Retries batches that preempted and computed nothing.
	Undone, Yielded, Retries int
	Ahead                    Ahead
}

// Ahead counts what only batches meet that are formed while a step is in
// progress.
type Ahead struct {
	// Victims were preempted with a token coming, LastVictims with their last.
	Victims, LastVictims int
	// Dropped batches compute nothing though somebody waits or is left to be
	// computed; DroppedVictims were preempted while such batches were formed.
	Dropped, DroppedVictims int
	// Seats counts batches that admit nobody more because requests whose last
	// token is coming have the seats.
	Seats int
	// Hashes counts blocks that got their hash when a token appeared; Lagging
	// counts lookups that ended at a block which a running request has computed
	// but for tokens that have not appeared.
	Hashes, Lagging int
	// Deserted counts steps that started after all their requests had left.
	Deserted int
}

func (a *Ahead) add(b Ahead) {
	a.Victims += b.Victims
	a.LastVictims += b.LastVictims
	a.Dropped += b.Dropped
	a.DroppedVictims += b.DroppedVictims
	a.Seats += b.Seats
	a.Hashes += b.Hashes
	a.Lagging += b.Lagging
	a.Deserted += b.Deserted
}

// Run simulates the requests, which are sorted by arrival. Input that no reader
// would let through panics.
func Run(c Config, requests []Request) Result {
	if err := check(c, requests); err != nil {
		panic("reference: " + err.Error())
	}
	s := newSimulation(c, requests)
	s.run()
	return s.result()
}

// check refuses what is an error in the data or the configuration.
func check(c Config, requests []Request) error {
	if c.Replicas < 1 || c.MaxNumSeqs < 1 || c.MaxNumBatchedTokens < 1 || c.BlockSize < 1 || c.NumBlocks < 1 {
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
	case "round-robin", "least-loaded", "least-snapshot", "weighted":
	default:
		return fmt.Errorf("unknown routing %q", c.Routing)
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
		if s.Name != "prefix-affinity" && s.Name != "queue-depth" {
			return fmt.Errorf("unknown scorer %q", s.Name)
		}
	}
	return nil
}

// queueDelay is how long a request takes from the router to the wait queue.
func (c *Config) queueDelay(input int) int64 {
	return roundHalfUp(c.Alpha[0] + float64(c.Alpha[1]*float64(input)))
}

// clientDelay is how long after its step a client sees a token.
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
