package attribution

import (
	"slices"

	"blis/pkg/registry"
	"blis/pkg/stream"
)

// Part is a part of the time of a request from its arrival to its end. The parts add up to it.
type Part int8

// All parts, in the order in which a request passes through them.
const (
	PartAdmission Part = iota
	PartFlow
	PartEncode
	PartFrontend
	PartQueue
	PartPrefill
	PartTransferWait
	PartTransfer
	PartDecode
	PartPreempted
	PartLimits
	PartRetries
	// PartCount is the number of parts.
	PartCount = iota
)

var parts = registry.Table[Part]{
	{Name: "admission", Doc: "from arrival to admission", Value: PartAdmission},
	{Name: "flow", Doc: "from admission to routing: flow control, backpressure, the latency of routing",
		Value: PartFlow},
	{Name: "encode", Doc: "from routing until encode replicas have encoded the images and other media of the request",
		Value: PartEncode},
	{Name: "frontend", Doc: "from routing, or the encoding, to the replica's queue, and tokens to the client: alpha",
		Value: PartFrontend},
	{Name: "queue", Doc: "in the replica's queue before the first batch", Value: PartQueue},
	{Name: "prefill", Doc: "from the first batch to the first token", Value: PartPrefill},
	{Name: "transfer_wait", Doc: "from the end of the prefill until the transfer of the KV blocks begins: the way to" +
		" the replica that decodes, its queue and room for the blocks; and from the end of the transfer to a batch",
		Value: PartTransferWait},
	{Name: "transfer", Doc: "the transfer of KV blocks from a prefill replica", Value: PartTransfer},
	{Name: "decode", Doc: "from the first token to the last", Value: PartDecode},
	{Name: "preempted", Doc: "in the queue again after a preemption", Value: PartPreempted},
	{Name: "limits", Doc: "no time: rejected on arrival because no replica can serve it", Value: PartLimits},
	{Name: "retries", Doc: "from arrival to that of the last attempt", Value: PartRetries},
}

// Parts lists all parts.
func Parts() registry.Table[Part] { return slices.Clone(parts) }

func (p Part) String() string { return parts[p].Name }

// partSet is a set of parts.
type partSet uint

func setOf(all ...Part) (set partSet) {
	for _, p := range all {
		set |= 1 << p
	}
	return set
}

func (set partSet) has(p Part) bool { return set&(1<<p) != 0 }

// partTimes is a time in µs for each part.
type partTimes [PartCount]int64

// split divides the time of a request. A request that ended early has no time in the parts
// that it did not reach. Where a recording lacks the end of a part but has that of a later one,
// the time counts in the later one. Time preempted is taken from decode, and from prefill where
// decode was shorter: records do not say when it was.
func (r *request) split() (s partTimes) {
	if r.ended() == never {
		return s
	}
	marks := r.marks()
	s[PartRetries] = r.retryUS
	from, last := r.arrival()+stream.Micros(r.retryUS), r.lastPart()
	for part, to := range marks {
		switch {
		case Part(part) >= last:
			to = r.ended()
		case to == never:
			continue
		}
		if to = min(to, r.ended()); to > from {
			s[part] = int64(to - from)
			from = to
		}
	}
	withOutput := PartPrefill
	if r.prefill != nil {
		withOutput = PartDecode
	}
	output := min(int64(r.outputUS), s[withOutput])
	s[withOutput] -= output
	s[PartFrontend] += output
	waits := min(r.batchWaitUS(), s[PartDecode])
	s[PartDecode] -= waits
	s[PartTransferWait] += waits
	preempted := min(r.preemptedUS, s[PartDecode])
	s[PartDecode] -= preempted
	s[PartPreempted] = preempted
	preempted = min(r.preemptedUS-preempted, s[PartPrefill])
	s[PartPrefill] -= preempted
	s[PartPreempted] += preempted
	return s
}

// batchWaitUS is the time from the end of the transfer of a request to its first batch at the replica that decodes, or
// to its end. marks has it in decode.
func (r *request) batchWaitUS() int64 {
	p := r.prefill
	if p == nil || p.transferred == never {
		return 0
	}
	return max(0, int64(min(r.leftQueue(), r.ended())-p.transferred))
}

// marks are the ends of the parts up to decode, never where a part did not end. A request whose prompt was computed by
// a prefill replica decodes when its blocks have come. Without a transfer the replica that decodes computes the prompt
// again, and it waits until then.
func (r *request) marks() [PartDecode + 1]stream.Micros {
	p := r.prefill
	if p == nil {
		return [...]stream.Micros{r.admitted(), r.routed(), r.encoded(), r.enqueued(), r.scheduled(),
			r.firstToken(), never, never, r.ended()}
	}
	started, transferred := p.started, p.transferred
	if transferred == never && r.scheduled() != never {
		started, transferred = r.scheduled(), r.scheduled()
	}
	return [...]stream.Micros{r.admitted(), r.routed(), r.encoded(), p.enqueued, p.scheduled, p.computed, started,
		transferred, r.ended()}
}

// lastPart is the part in which the request was when it ended.
func (r *request) lastPart() Part {
	if r.prefill != nil {
		marks := r.marks()
		for p := PartTransfer; p >= 0; p-- {
			if marks[p] != never {
				return p + 1
			}
		}
		return PartAdmission
	}
	switch {
	case r.firstToken() != never:
		return PartDecode
	case r.scheduled() != never:
		return PartPrefill
	case r.enqueued() != never:
		return PartQueue
	case r.routed() != never:
		return PartFrontend
	case r.admitted() != never:
		return PartFlow
	}
	return PartAdmission
}

// endedIn is the part in which the request was when it ended: split does not know a batch that never came.
func (r *request) endedIn() Part {
	if p := r.prefill; p != nil && p.transferred != never && r.scheduled() == never {
		return PartTransferWait
	}
	return r.lastPart()
}

// leftQueue is when the request left the queue of its replica, for a batch or for good.
func (r *request) leftQueue() stream.Micros {
	if r.scheduled() != never {
		return r.scheduled()
	}
	return r.ended()
}

// firstTokenOrEnd is when the request stopped waiting for its first token, never if neither came.
func (r *request) firstTokenOrEnd() stream.Micros {
	if r.firstToken() != never {
		return r.firstToken()
	}
	return r.ended()
}
