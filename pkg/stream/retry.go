package stream

import (
	"cmp"
	"slices"
)

// Retry says when a client sends a request again that did not complete.
//
//wire:object retry encode decode check
type Retry struct {
	// States after which it does.
	On []string `json:"on" wire:"oneof=retryStates"`
	// Times from the end of an attempt to the next one, in µs; their number is that of the retries at most.
	BackoffUS []int64 `json:"backoff_us"`
}

// RetryStates are the states after which a client may retry.
func RetryStates() []string { return []string{StateRejected, StateTimedOut, StateFailed} }

// retryStates is RetryStates for the table of fields.
var retryStates = RetryStates()

// check tests the rules that involve several fields.
func (r *Retry) check(s *scanner) {
	switch {
	case len(r.On) == 0:
		s.failf("on is empty")
	case len(r.BackoffUS) == 0:
		s.failf("backoff_us is empty")
	}
}

// Next returns the time from the end of an attempt, counted from 0, to the next one; ok is false if the client gives
// up. Requests that no replica can serve are not sent again.
func (r *Retry) Next(attempt int, state, reason string) (us int64, ok bool) {
	if attempt >= len(r.BackoffUS) || !slices.Contains(r.On, state) {
		return 0, false
	}
	switch reason {
	case ReasonNoDeployment, ReasonTooLongForModel, ReasonTooLongForCache, ReasonTooLongForBudget,
		ReasonNoLoRA, ReasonNoStructuredOutput, ReasonNoEncoder, ReasonTooLongForEncoder:
		return 0, false
	}
	return r.BackoffUS[attempt], true
}

// Original is the id under which the client knows the request: that of its first attempt.
func (o *Outcome) Original() string { return cmp.Or(o.RetryOf, o.ID) }

// Began is when the client sent the request first, from which on latencies count.
func (o *Outcome) Began() Micros { return o.ArrivalUS - Micros(o.RetryUS) }
