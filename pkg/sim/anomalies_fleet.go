package sim

import "blis/pkg/anomaly"

// What anomaly detectors learn of deployments that scale and of replicas that fail.

// fleetWatch has, by replica, whether it accepts requests, and whether it is missed since it failed.
type fleetWatch struct{ accepts, missed []bool }

// scaled notifies the detectors of an action of an auto-scaler.
func (l *anomalyMonitor) scaled(s *simulation, i int32) {
	if change := s.deployments[i].elastic.desired - s.fleet.last.current; change != 0 {
		l.notify(s, anomaly.Event{Kind: anomaly.Scaled, Deployment: i, Change: int32(change)})
	}
}

// phaseChanged notifies the detectors of a replica that is missed from now on, or no longer.
func (l *anomalyMonitor) phaseChanged(s *simulation, i int32) {
	if s.failures == nil {
		return
	}
	w := &l.fleet
	for k := len(w.accepts); k < len(s.replicas); k++ { // those at the start accept requests
		w.accepts, w.missed = append(w.accepts, s.fleet.members[k].createdAt == 0), append(w.missed, false)
	}
	before, now := w.accepts[i], s.accepts(i)
	w.accepts[i] = now
	phase := s.fleet.members[i].phase
	switch {
	case before && phase == failed && !w.missed[i]:
		w.missed[i] = true
		l.notify(s, anomaly.Event{Kind: anomaly.Lost, Deployment: int32(s.replicas[i].deployment),
			Replicas: w.size(s, s.replicas[i].deployment)})
	case w.missed[i] && (now || phase == gone):
		l.restored(s, i)
	case now && !before: // it may replace one that does not come back
		for k := range w.missed {
			if w.missed[k] && s.replicas[k].deployment == s.replicas[i].deployment &&
				s.failures.replicas[k].backAt == never {
				l.restored(s, int32(k))
				return
			}
		}
	}
}

func (l *anomalyMonitor) restored(s *simulation, i int32) {
	l.fleet.missed[i] = false
	l.notify(s, anomaly.Event{Kind: anomaly.Restored, Deployment: int32(s.replicas[i].deployment)})
}

// size is the number of replicas of a deployment that accept requests or are missed.
func (w *fleetWatch) size(s *simulation, deployment int) (n int32) {
	for k := range w.accepts {
		if s.replicas[k].deployment == deployment && (w.accepts[k] || w.missed[k]) {
			n++
		}
	}
	return n
}

// slowed notifies the detectors of steps of a replica that took longer than they should.
func (l *anomalyMonitor) slowed(s *simulation, i int32) {
	if s.failures == nil || i == missing {
		return
	}
	x := &s.failures.replicas[i].slow
	if x.count == 0 {
		return
	}
	l.notify(s, anomaly.Event{Kind: anomaly.Slowed, Replica: i, Slow: anomaly.Slow{From: x.from, Until: x.until,
		Steps: x.count, ActualUS: x.actualUS, NormalUS: x.normalUS}})
	*x = slowSteps{}
}
