package reference

import "slices"

// request is a request in the simulation.
type request struct {
	Request
	sequence
	outcome Outcome
	stage   stage
	// cut: it is a first step of its session that would be issued after the horizon.
	cut bool
	// until is when a stage before stageQueued ends.
	until int64
	// tables has, for each group, the blocks that hold the first tokens of the sequence, or null. computed
	// of the tokens are done once the step in progress and the batch ahead are.
	tables   [][]int
	computed int
	// lastState has, for each group, the place of the block before the newest.
	lastState []int
	// junction is how long a prefix one group had at the last lookup, if that is longer than all had, or 0.
	junction int
	// inFlight is the number of tokens that those two will add to the output.
	inFlight int
	// flying is the number of its tokens in batches that have not ended, and nextBatch the number of the first
	// batch that may have it again, with a Pipeline.
	flying, nextBatch int
	// uncached is the number of prompt tokens that were not cached when the router sent the request.
	uncached int
	// encodedAt are the encode replicas of its contents, nil before it has them.
	encodedAt map[string]int
	// ghost: it has gone to another replica.
	ghost bool
	// twin is the request at its prefill replica, whose main request it is.
	twin, main *request
	// firstWay: the twin is on the way to the first queue of a decode replica. prefillCached are its hits there, and
	// prefillLoaded what it loaded there.
	firstWay                     bool
	prefillCached, prefillLoaded int
	// pulled: its prompt comes from a prefill replica. returns: it is on its way back to the choice of one.
	pulled, returns bool
	// leaseEnd is when the blocks of its prompt are freed unless it has come to its replica, or Never; then it lapsed.
	leaseEnd int64
	// pieces are the blocks of its prompt up to the end of each piece that is computed. read: a transfer reads the
	// blocks of a request that is aborted.
	pieces []int
	read   bool
	lapsed bool
	// flowAt is when it entered flow control. reported: its replica has reported a queue with the request, or a queue
	// that it had left.
	flowAt   int64
	reported bool
	host     hostUse
	drafting drafting
	// inPrompt: its last batch left tokens to compute.
	inPrompt bool
	arrival  int // at its replica
	// preemptedAt is the time of the preemption that the request has not recovered from, or Never.
	preemptedAt int64
	stoppedAt   int64 // see countStopped
	readyAt     int64 // when its grammar is compiled
	// refusedBy are the replicas that refused it at refusedAt.
	refusedAt int64
	refusedBy []int
	attempt
}

// held returns the blocks of all groups.
func (q *request) held() []int {
	return slices.DeleteFunc(slices.Concat(q.tables...), func(b int) bool { return b == null })
}

// visible is the number of tokens that exist: the prompt and the output so far.
func (q *request) visible() int { return q.Input + q.outcome.Generated }

// length is the number of tokens to compute, those in flight included.
func (q *request) length() int { return q.visible() + q.inFlight }

// draining reports whether the last token of a request is in flight, so that nothing is left to compute.
func (r *replica) draining(q *request) bool {
	if r.config.Speculation != nil || r.config.Pipeline != nil && r.config.Async {
		return r.config.hasAllOutput(q)
	}
	return q.outcome.Generated+q.inFlight == q.Output+r.config.overrun(q)
}

// overrun is the number of tokens that are scheduled behind the last one of a request, since it is not known to be the
// last before it is there. The length of the model ends all outputs.
func (c *Config) overrun(q *request) int {
	if c.Async && q.EOS && (c.MaxModelLen == 0 || q.Input+q.Output < c.MaxModelLen) {
		return 1
	}
	return 0
}

func (q *request) final() bool { return q.outcome.State != "" }

// addToken adds a token generated at now that the client sees at seen. The last one completes the
// request.
func (q *request) addToken(now, seen int64) {
	o := &q.outcome
	o.Generated++
	o.TokensUS, o.SeenUS = append(o.TokensUS, now), append(o.SeenUS, seen)
	if o.Generated == 1 {
		o.FirstTokenUS = seen
	}
	if o.Generated == q.Output {
		o.State = Completed
		q.endPreemption(now)
		o.CompletedUS = seen
	}
}
