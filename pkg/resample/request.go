package resample

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"blis/pkg/stream"
)

// Missing is a time in µs that a request does not have.
const Missing = -1

// Request holds what statistics need of one request. Arrival is in µs of the run; TTFT,
// E2E and Queue are in µs, each may be Missing. Input, Output and Cached are tokens, of which a stream has below 2³¹.
// More preemptions than an int32 holds count as its maximum.
type Request struct {
	Arrival, TTFT, E2E, Queue          int64
	Input, Output, Cached, Preemptions int32
	// NotIssued counts the calls that were not issued because this one ended its session.
	NotIssued int32
	State     State
	targets   targets
	// Admitted requests passed admission, Scheduled requests entered a batch.
	Admitted, Scheduled bool
}

// targets says in one byte whether the class of a request has SLO targets, and whether the request met them: with two
// flags a request in pkg/diff would be 72 bytes instead of 64.
type targets uint8

const (
	noTargets targets = iota
	targetsMissed
	targetsMet
)

// targetsOf returns the targets of a request; met is nil if it has none.
func targetsOf(met *bool) targets {
	switch {
	case met == nil:
		return noTargets
	case *met:
		return targetsMet
	}
	return targetsMissed
}

// HasTargets reports whether the class of the request has SLO targets.
func (r *Request) HasTargets() bool { return r.targets != noTargets }

// MetTargets reports whether the request met them.
func (r *Request) MetTargets() bool { return r.targets == targetsMet }

// State is the final state of a request; 0 means that the run does not have the request.
type State uint8

// The final states.
const (
	Completed State = 1 + iota
	Rejected
	TimedOut
	Failed
	Unfinished
	NumStates // the number of states, including 0
)

var stateNames = [NumStates]string{"absent", stream.StateCompleted, stream.StateRejected, stream.StateTimedOut,
	stream.StateFailed, stream.StateUnfinished}

func (s State) String() string { return stateNames[s] }

// NewRequest returns the request of the outcome of its last attempt. met is nil if its class has no targets.
func NewRequest(o *stream.Outcome, met *bool) Request {
	return Request{Arrival: int64(o.Began()), TTFT: elapsed(o.Began(), o.FirstTokenUS),
		E2E: elapsed(o.Began(), o.CompletedUS), Queue: elapsed(o.QueueStartUS(), o.ScheduledUS),
		Input: int32(o.InputTokens), Output: int32(o.OutputTokens), Cached: int32(o.CachedTokens),
		Preemptions: int32(min(o.Preemptions, math.MaxInt32)), targets: targetsOf(met),
		State: State(max(slices.Index(stateNames[:], o.State), 0)), Admitted: !o.AdmittedUS.IsZero(),
		Scheduled: !o.ScheduledUS.IsZero()}
}

// TPOT returns the time per output token after the first, in ms.
func (r *Request) TPOT() (ms float64, ok bool) {
	if r.TTFT == Missing || r.E2E == Missing || r.Output <= 1 {
		return 0, false
	}
	return stream.TPOT(r.E2E-r.TTFT, int64(r.Output)), true
}

// elapsed returns the µs between two times, Missing if one of them is.
func elapsed(from, to stream.Micros) int64 {
	if from.IsZero() || to < from {
		return Missing
	}
	return int64(to - from)
}

// CompareArrivals orders two requests by arrival. Ties are ordered by id, numbers in
// ids by value.
func CompareArrivals(atX, atY int64, idX, idY string) int {
	return cmp.Or(cmp.Compare(atX, atY), cmp.Compare(len(idX), len(idY)), strings.Compare(idX, idY))
}
