package metrics

import "blis/pkg/stream"

// absent is a time in µs that a request does not have.
const absent = -1

// span is the time in µs from one instant to another, absent if one of them is
// missing.
func span(from, to stream.Micros) int64 {
	if from.IsZero() || to < from {
		return absent
	}
	return int64(to - from)
}

// tpot is the time per output token after the first, in ms; ok is false where
// there is none.
func tpot(ttft, e2e, outputTokens int64) (ms float64, ok bool) {
	if ttft == absent || e2e == absent || outputTokens <= 1 {
		return 0, false
	}
	return stream.TPOT(e2e-ttft, outputTokens), true
}

// SLOMet says whether the request met all targets of t that are given; a
// target is met by what is equal to it. A request that did not complete met
// none. A request of one token meets every TPOT target. Without any target the
// answer is nil. The result is not to be written through.
func SLOMet(o *stream.Outcome, t stream.Targets) *bool {
	if t == (stream.Targets{}) {
		return nil
	}
	ttft, e2e := span(o.ArrivalUS, o.FirstTokenUS), span(o.ArrivalUS, o.CompletedUS)
	if o.State != stream.StateCompleted || ttft == absent || e2e == absent {
		return stream.Met(false)
	}
	perToken, _ := tpot(ttft, e2e, o.OutputTokens)
	return stream.Met(within(float64(ttft)/1000, t.TTFTMS) && within(perToken, t.TPOTMS) && within(float64(e2e)/1000, t.E2EMS))
}

// Overdue reports whether a request that is not final at an instant has missed a
// target of t by then, however it would go on: tokens that have not come count as if
// they came now.
func Overdue(o *stream.Outcome, t stream.Targets, now stream.Micros) bool {
	if o.FirstTokenUS.IsZero() && !within(float64(now-o.ArrivalUS)/1000, t.TTFTMS) || !within(float64(now-o.ArrivalUS)/1000, t.E2EMS) {
		return true
	}
	first := span(o.ArrivalUS, o.FirstTokenUS)
	if first == absent {
		return false
	}
	perToken, _ := tpot(first, int64(now-o.ArrivalUS), o.OutputTokens)
	return !within(float64(first)/1000, t.TTFTMS) || !within(perToken, t.TPOTMS)
}

// within reports whether ms meets the target, which is 0 if there is none.
func within(ms, target float64) bool { return target == 0 || ms <= target }
