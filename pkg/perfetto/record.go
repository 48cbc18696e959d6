package perfetto

import "blis/pkg/stream"

// Window limits the timeline to requests that arrive, and to all else that begins, from from until to. A negative
// to is no limit.
func (t *Trace) Window(from, to stream.Micros) { t.from, t.to = from, to }

func (t *Trace) outside(at stream.Micros) bool { return at < t.from || !t.to.IsZero() && at >= t.to }

// Record adds the current record of r; o is it, decoded, if it is an outcome. Kinds that the timeline does not show
// are ignored.
func (t *Trace) Record(r *stream.Reader, o *stream.Outcome) (err error) {
	switch r.Kind() {
	case stream.KindOutcome:
		if !t.outside(o.ArrivalUS) {
			t.Outcome(o)
		}
	case stream.KindDecision:
		if err = r.Decision(&t.decision); err == nil && !t.outside(t.decision.AtUS) {
			t.Decision(&t.decision)
		}
	case stream.KindStep:
		if err = r.Step(&t.step); err == nil && !t.outside(t.step.StartUS) {
			t.Step(&t.step)
		}
	case stream.KindPreemption:
		var p stream.Preemption
		if err = r.Decode(&p); err == nil && !t.outside(p.AtUS) {
			t.Preemption(&p)
		}
	case stream.KindTransfer:
		x := stream.Transfer{PrefillReplica: stream.NoIndex, EncodeReplica: stream.NoIndex}
		if err = r.Decode(&x); err == nil && !t.outside(x.StartedUS) {
			t.Transfer(&x)
		}
	case stream.KindAnomaly:
		a := stream.Anomaly{Replica: stream.NoIndex}
		if err = r.Decode(&a); err == nil && !t.outside(a.StartUS) {
			t.Anomaly(&a)
		}
	case stream.KindReplicaState:
		var s stream.ReplicaState
		if err = r.Decode(&s); err == nil && !t.outside(s.AtUS) {
			t.ReplicaState(&s)
		}
	}
	return err
}
