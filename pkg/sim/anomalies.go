package sim

import (
	"blis/pkg/anomaly"
	"blis/pkg/engine"
	"blis/pkg/metrics"
	"blis/pkg/policy"
	"blis/pkg/stream"
)

// lookout tells the detectors of anomalies what happens, and writes and counts what
// they find.
type lookout struct {
	watch anomaly.Watch
	found []*anomaly.Episode // and not written
	count func(kind string)
	held  []bool          // of replicas, whether a request held up the queue when it was last looked at
	about anomaly.Request // scratch
}

func newLookout(replicas int, count func(kind string)) *lookout {
	l := &lookout{count: count, held: make([]bool, replicas)}
	l.watch = anomaly.New(func(e *anomaly.Episode) { l.found = append(l.found, e) })
	return l
}

// of is what detectors know of a request, until it is called again. A router that does
// not look at prefixes is not wrong about them.
func (l *lookout) of(s *simulation, slot int32) *anomaly.Request {
	r := &s.slots[slot]
	o := &r.out
	l.about = anomaly.Request{ID: o.ID, Class: r.class.Name, Priority: o.Priority, ClassPriority: r.class.Priority,
		Input: o.InputTokens, Expected: o.ExpectedCachedTokens, Cached: o.CachedTokens,
		Promised: o.SLOMet != nil, Met: o.SLOMet != nil && *o.SLOMet}
	if s.seen.needs&(policy.NeedShadow|policy.NeedCache) == 0 {
		l.about.Expected = o.CachedTokens
	}
	return &l.about
}

// enqueued tells that a request entered the queue of its replica.
func (l *lookout) enqueued(s *simulation, slot int32) {
	l.watch.Enqueued(s.now, s.slots[slot].replica, slot, l.of(s, slot))
}

// formed tells of the batches that a replica has just formed.
func (l *lookout) formed(s *simulation, i int32, e *engine.Engine) {
	if tag, room, ok := e.Holder(); ok {
		l.watch.Held(s.now, i, l.of(s, tag), int64(room))
		l.held[i] = true
	} else if l.held[i] {
		l.watch.Held(s.now, i, nil, 0)
		l.held[i] = false
	}
	for _, step := range e.Formed() {
		for _, tag := range step.Preempted {
			l.watch.Preempted(s.now, i, l.of(s, tag))
		}
		for _, a := range step.Admitted {
			l.watch.Admitted(s.now, i, a.Tag, l.of(s, a.Tag))
		}
	}
}

// final tells that a request has ended. What the horizon cuts has not, but for what has
// missed a target by then.
func (l *lookout) final(s *simulation, slot int32) error {
	r := &s.slots[slot]
	if r.out.State == stream.StateUnfinished {
		if metrics.Overdue(&r.out, r.class.Targets, stream.Micros(s.now)) {
			l.watch.Final(s.now, l.of(s, slot))
		}
		return l.write(s)
	}
	if r.seq != nowhere && r.out.ScheduledUS.IsZero() {
		l.watch.Left(s.now, r.replica, slot)
	}
	l.watch.Final(s.now, l.of(s, slot))
	return l.write(s)
}

// close tells that the run is over.
func (l *lookout) close(s *simulation) error {
	l.watch.Close(s.now)
	return l.write(s)
}

// write writes what was found since.
func (l *lookout) write(s *simulation) error {
	for _, e := range l.found {
		l.count(e.Type)
		a := stream.Anomaly{Kind: stream.KindAnomaly, Type: e.Type, StartUS: stream.Micros(e.Start), EndUS: stream.Micros(e.End),
			Severity: e.Severity, Count: e.Count, Requests: e.Requests, Replica: stream.Nowhere, SLOClass: e.Class, Text: e.Text}
		if e.Replica != anomaly.Nowhere {
			at := &s.replicas[e.Replica]
			a.Deployment, a.Replica = s.deployments[at.deployment].id, at.index
		}
		if err := s.out.w.Any(&a); err != nil {
			return err
		}
	}
	l.found = l.found[:0]
	return nil
}
