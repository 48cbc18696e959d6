package sim

import (
	"blis/pkg/anomaly"
	"blis/pkg/engine"
	"blis/pkg/metrics"
	"blis/pkg/policy"
	"blis/pkg/stream"
)

// anomalyMonitor notifies the anomaly detectors of events. The anomalies that they find are written before the outcome
// of the next request that is final, or when the run is over.
type anomalyMonitor struct {
	records *recorder
	blocked []bool          // by replica: whether its queue was head-of-line blocked at its last batch
	routes  bool            // detectors see when requests are routed
	loads   bool            // and when loads from tiers end
	scratch anomaly.Request // of request
	fleet   fleetWatch
}

func newAnomalyMonitor(s *simulation, records *recorder) *anomalyMonitor {
	return &anomalyMonitor{records: records, blocked: make([]bool, len(s.replicas)), routes: s.backpressure != nil,
		loads: s.hasTiers()}
}

// request returns what detectors see of a request, valid until the next call. A router that ignores
// prefixes expects nothing and is never wrong.
func (l *anomalyMonitor) request(s *simulation, slot int32) *anomaly.Request {
	r := s.request(slot)
	o := &r.out
	l.scratch = anomaly.Request{ID: o.ID, Class: r.class.Name, Priority: o.Priority, ClassPriority: r.class.Priority,
		Input: o.InputTokens, Expected: o.ExpectedCachedTokens, Cached: o.CachedTokens + o.LoadedTokens.Total(),
		Completed: o.State == stream.StateCompleted, Failed: o.State == stream.StateFailed,
		HasTargets: o.SLOMet != nil, MetTargets: o.SLOMet != nil && *o.SLOMet}
	if s.router.needs.all&policy.NeedsPrefix == 0 {
		l.scratch.Expected = l.scratch.Cached
	}
	return &l.scratch
}

// notify passes an event at the present instant to the detectors.
func (l *anomalyMonitor) notify(s *simulation, e anomaly.Event) {
	e.At = s.now
	l.records.event(s, e)
}

func (l *anomalyMonitor) hooks() []hook {
	all := []hook{onEnqueue, onBatch, onScale, onPhase, onMove, onFinal, onClose}
	if l.routes {
		all = append(all, onSend)
	}
	if l.loads {
		all = append(all, onTransfer)
	}
	return all
}

func (l *anomalyMonitor) observe(s *simulation, h hook, i int32) error {
	switch h {
	case onSend:
		l.routed(s, i)
	case onEnqueue:
		if r := s.request(i); r.out.ScheduledUS.IsZero() { // else it is redirected after its first batch
			at, _ := r.queuedAt()
			l.notify(s, anomaly.Event{Kind: anomaly.Enqueued, Replica: at, Tag: i, Request: l.request(s, i)})
		}
	case onBatch:
		l.batchFormed(s, i, s.replicas[i].engine)
	case onMove:
		if at, queued := s.request(i).queuedAt(); queued {
			l.notify(s, anomaly.Event{Kind: anomaly.Dequeued, Replica: at, Tag: i})
		}
	case onTransfer:
		l.loaded(s, i)
	case onScale:
		l.scaled(s, i)
	case onPhase:
		l.phaseChanged(s, i)
	case onFinal:
		return l.finished(s, i)
	case onClose:
		for k := range s.replicas {
			l.slowed(s, int32(k))
		}
		l.notify(s, anomaly.Event{Kind: anomaly.Closed})
		return l.records.add(anomaliesEntry)
	}
	return nil
}

// routed reports that a request was sent to its replica, and for how long backpressure held it back.
func (l *anomalyMonitor) routed(s *simulation, slot int32) {
	e := anomaly.Event{Kind: anomaly.Routed, Replica: anomaly.NoReplica, Request: l.request(s, slot)}
	if held := s.request(slot).heldBack; held.since != never {
		e.HeldUS, e.ByPrefill = s.now-held.since, held.byPrefill
	}
	l.notify(s, e)
}

// loaded reports the loads that have ended with a transfer.
func (l *anomalyMonitor) loaded(s *simulation, slot int32) {
	i := s.transfers.slots[slot].replica
	for _, x := range s.replicas[i].engine.EndedLoads() {
		l.scratch = anomaly.Request{ID: s.transfers.requestOfLoad(i, &x)}
		l.notify(s, anomaly.Event{Kind: anomaly.Loaded, Replica: i, Request: &l.scratch, Blocks: int64(x.Blocks),
			Again: int64(x.Again)})
	}
}

// batchFormed reports the batches that a replica has just formed.
func (l *anomalyMonitor) batchFormed(s *simulation, i int32, e *engine.Engine) {
	for int(i) >= len(l.blocked) { // it was added during the run
		l.blocked = append(l.blocked, false)
	}
	if tag, room, ok := e.HeadOfLine(); ok {
		l.notify(s, anomaly.Event{Kind: anomaly.HeadOfLineBlocked, Replica: i, Request: l.request(s, tag),
			Room: int64(room)})
		l.blocked[i] = true
	} else if l.blocked[i] {
		l.notify(s, anomaly.Event{Kind: anomaly.HeadOfLineBlocked, Replica: i})
		l.blocked[i] = false
	}
	for _, step := range e.Formed() {
		for _, tag := range step.Preempted {
			l.notify(s, anomaly.Event{Kind: anomaly.Preempted, Replica: i, Request: l.request(s, tag)})
		}
		for _, a := range step.Admitted {
			l.notify(s, anomaly.Event{Kind: anomaly.Admitted, Replica: i, Tag: a.Tag, Request: l.request(s, a.Tag)})
		}
	}
}

// finished reports that a request is final. A request cut by the horizon is reported only if it has
// already missed a target.
func (l *anomalyMonitor) finished(s *simulation, slot int32) error {
	r := s.request(slot)
	l.slowed(s, r.replica)
	unfinished := r.out.State == stream.StateUnfinished
	if at, queued := r.queuedAt(); !unfinished && queued {
		l.notify(s, anomaly.Event{Kind: anomaly.Dequeued, Replica: at, Tag: slot})
	}
	if !unfinished || metrics.MissedByNow(&r.out, r.class.Targets, stream.Micros(s.now)) {
		l.notify(s, anomaly.Event{Kind: anomaly.Finished, Replica: r.replica, Tag: slot, Request: l.request(s, slot)})
	}
	return l.records.add(anomaliesEntry)
}
