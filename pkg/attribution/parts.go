package attribution

import (
	"blis/pkg/registry"
	"blis/pkg/stream"
)

// Parts divide the time of a request from its arrival to its end; they add up to it.
var Parts = registry.Table[int]{
	{Name: "admission", Doc: "from arrival to admission", Value: partAdmission},
	{Name: "dispatch", Doc: "from admission to the replica's queue: flow control, routing, alpha", Value: partDispatch},
	{Name: "queue", Doc: "in the replica's queue before the first batch", Value: partQueue},
	{Name: "prefill", Doc: "from the first batch to the first token", Value: partPrefill},
	{Name: "decode", Doc: "from the first token to the last", Value: partDecode},
	{Name: "preempted", Doc: "in the queue again after losing its place in the batch", Value: partPreempted},
	{Name: "limits", Doc: "no time: refused on arrival, since no replica could ever serve it", Value: partLimits},
}

const (
	partAdmission = iota
	partDispatch
	partQueue
	partPrefill
	partDecode
	partPreempted
	partLimits
	// PartCount is how many Parts there are.
	PartCount
)

// Split is a time in µs for each of the Parts.
type Split [PartCount]int64

// split divides the time of r. A request that ended early has no time in the parts that it
// did not reach. Where a recording does not say when a part ended, though a later one
// did, its time is counted in the next one. The time preempted is taken from decode, and
// from prefill where that was shorter: records do not say when it was.
func (t *times) split() (s Split) {
	if t.ended == never {
		return s
	}
	marks := [...]stream.Micros{t.admitted, t.enqueued, t.scheduled, t.first, t.ended}
	last := len(marks) - 2 // the last that came, before the end
	for last >= 0 && marks[last] == never {
		last--
	}
	from := t.arrival
	for part, to := range marks {
		switch {
		case part > last:
			to = t.ended
		case to == never:
			continue
		}
		if to = min(to, t.ended); to > from {
			s[part] = int64(to - from)
			from = to
		}
	}
	again := min(t.preempted, s[partDecode])
	s[partDecode] -= again
	s[partPreempted] = again
	again = min(t.preempted-again, s[partPrefill])
	s[partPrefill] -= again
	s[partPreempted] += again
	return s
}

// reached is the part in which r was when it ended.
func (t *times) reached() int8 {
	switch {
	case t.first != never:
		return partDecode
	case t.scheduled != never:
		return partPrefill
	case t.enqueued != never:
		return partQueue
	case t.admitted != never:
		return partDispatch
	}
	return partAdmission
}
