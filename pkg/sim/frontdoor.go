package sim

import (
	"blis/pkg/cluster"
	"blis/pkg/stream"
)

// frontDoor are the limits with which a server rejects requests, of vLLM 0.33 (v1/engine/async_llm.py,
// AsyncLLM.check_admission); nil of a limit is none.
type frontDoor struct{ reqs, tokens *int }

// frontDoorOf converts the limits; nil if there are none.
func frontDoorOf(e *cluster.Engine) *frontDoor {
	if e.MaxNumQueuedReqs == nil && e.MaxNumQueuedTokens == nil {
		return nil
	}
	return &frontDoor{e.MaxNumQueuedReqs, e.MaxNumQueuedTokens}
}

// admitted is what a server counts: requests that it has admitted and that have not ended, and the prompts of those
// without a token. vLLM counts a whole prompt, whatever part of it is computed or cached.
type admitted struct{ reqs, promptTokens int64 }

// rejects is why the server of a replica rejects a request, "" if it does not. It checks when a request comes and,
// before it counts it, when it is tokenized.
func (s *simulation) rejects(replica int32) string {
	r := &s.replicas[replica]
	door := s.deployments[r.deployment].door
	switch {
	case door == nil:
	case door.reqs != nil && r.admitted.reqs >= int64(*door.reqs):
		return stream.ReasonQueuedReqs
	case door.tokens != nil && r.admitted.promptTokens >= int64(*door.tokens):
		return stream.ReasonQueuedTokens
	}
	return ""
}

// rejectSent ends a request that the server of its replica rejects. A replica that drains goes on: it has others.
func (s *simulation) rejectSent(slot int32, reason string) error {
	s.leaveOnTheWay(slot)
	return s.drop(slot, stream.StateRejected, reason)
}

// countAdmitted counts a request that the server of its replica has admitted.
func (s *simulation) countAdmitted(r *request) {
	n := &s.replicas[r.replica].admitted
	n.reqs++
	n.promptTokens += r.out.InputTokens
	r.atServer, r.queuedTokens = true, r.out.InputTokens
}

// countFirst counts the first token of a request, or its end.
func (s *simulation) countFirst(r *request) {
	s.replicas[r.replica].admitted.promptTokens -= r.queuedTokens
	r.queuedTokens = 0
}

// countEnd counts the end of a request, which its server may not have admitted.
func (s *simulation) countEnd(r *request) {
	if r.atServer {
		s.countFirst(r)
		s.replicas[r.replica].admitted.reqs--
		r.atServer = false
	}
}
