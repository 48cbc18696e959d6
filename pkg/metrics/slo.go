package metrics

import "blis/pkg/record"

// absent is a time in µs that a request does not have.
const absent = -1

// span is the time in µs from one instant to another, absent if one of them is
// missing.
func span(from, to record.Micros) int64 {
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
	return record.TPOT(e2e-ttft, outputTokens), true
}

// SLOMet says whether the request met all targets of t that are given; a
// target is met by what is equal to it. A request that did not complete met
// none. A request of one token meets every TPOT target. Without any target the
// answer is nil. The result is not to be written through.
func SLOMet(o *record.Outcome, t record.Targets) *bool {
	if t == (record.Targets{}) {
		return nil
	}
	ttft, e2e := span(o.ArrivalUS, o.FirstTokenUS), span(o.ArrivalUS, o.CompletedUS)
	if o.State != record.StateCompleted || ttft == absent || e2e == absent {
		return record.Met(false)
	}
	perToken, _ := tpot(ttft, e2e, o.OutputTokens)
	return record.Met(within(float64(ttft)/1000, t.TTFTMS) && within(perToken, t.TPOTMS) && within(float64(e2e)/1000, t.E2EMS))
}

// within reports whether ms meets the target, which is 0 if there is none.
func within(ms, target float64) bool { return target == 0 || ms <= target }
