package sim

import (
	"strconv"

	"blis/pkg/des"
	"blis/pkg/stream"
)

// Clients that retry. An attempt after the first one is a new request at the same position of the workload.

// retryStride divides the numbers of attempts at a position: a position is below it, and that of attempt n is
// n·retryStride higher. Events of one instant thus come behind those of all earlier attempts.
const retryStride = 1 << 44

// retryPlan is what a client needs to send a request again.
type retryPlan struct {
	*stream.Retry
	timeout         stream.Micros // from its arrival, stream.Never if none
	predictedTokens int64
	stop            string
	draftAcceptance *float64
}

// newRetryPlan returns nil if the client does not retry.
func newRetryPlan(in *stream.Request) *retryPlan {
	if in.Retry == nil {
		return nil
	}
	p := &retryPlan{in.Retry, stream.Never, in.PredictedOutputTokens, in.Stop, in.DraftAcceptance}
	if !in.DeadlineUS.IsZero() {
		p.timeout = in.DeadlineUS - in.ArrivalUS
	}
	return p
}

// attempt is the number of attempts before this one.
func (r *request) attempt() int { return int(r.position / retryStride) }

// nextAttempt returns when the client sends the request again, which has just ended without completing; ok is false
// if it does not, or only after the horizon.
func (s *simulation) nextAttempt(r *request) (at des.Time, ok bool) {
	if r.retry == nil {
		return 0, false
	}
	us, ok := r.retry.Next(r.attempt(), r.out.State, r.out.Reason)
	at = s.now + us
	return at, ok && at <= min(s.horizon, maxClock)
}

// sendAgain creates the next attempt of the request in a slot, which arrives at the given time. Its prompt is the same,
// so that it can hit what the replicas cached of it, and it has as much time until its deadline.
func (s *simulation) sendAgain(slot int32, at des.Time) {
	next := s.requests.newSlot()
	r := s.request(slot)
	o := &r.out
	in := stream.Request{ID: retryID(o.Original(), r.attempt()+1), ArrivalUS: stream.Micros(at),
		InputTokens: o.InputTokens, OutputTokens: o.OutputTokens, Tenant: o.Tenant, SLOClass: o.SLOClass,
		Priority: int64(r.requested),
		Model:    o.Model, Adapter: o.Adapter, Grammar: o.Grammar, Session: o.Session, Turn: r.turn,
		DeadlineUS:            stream.Never,
		PredictedOutputTokens: r.retry.predictedTokens, Stop: r.retry.stop, DraftAcceptance: r.retry.draftAcceptance,
		Retry: r.retry.Retry}
	if t := r.retry.timeout; !t.IsZero() {
		in.DeadlineUS = in.ArrivalUS + t
	}
	q := s.request(next)
	q.path = append(q.path[:0], r.path...)
	s.tree.Ref(q.path[len(q.path)-1].Node)
	q.items = append(q.items[:0], r.items...)
	s.fill(next, &in, r.position+retryStride)
	q.sessionSlot, q.step = r.sessionSlot, r.step
	q.out.Step, q.out.Iteration = o.Step, o.Iteration
	q.out.RetryOf, q.out.RetryUS = o.Original(), int64(in.ArrivalUS-o.Began())
}

// retryID is the id of attempt n, from 0, at the request with an id.
func retryID(id string, n int) string { return id + "/retry" + strconv.Itoa(n) }
