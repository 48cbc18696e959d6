package anomaly

import (
	"fmt"
	"slices"
)

// An action of an auto-scaler is undone if the opposite one comes within undoneUS. minUndone of them, each within
// hourUS of the one before, are an oscillation.
const (
	undoneUS  = 600_000_000
	hourUS    = 3_600_000_000
	minUndone = 2
)

// scaler is a deployment whose number of replicas changes, with its actions.
type scaler struct {
	deployment int32
	actions    []action
}

type action struct {
	at         int64
	up, undoes bool
}

// newScaleOscillation reports, at the end of a run, episodes of actions that undo others. Severity is their share of
// the actions.
func newScaleOscillation(emit func(*Episode)) Detector {
	var all []*scaler
	return func(e *Event) {
		switch e.Kind {
		case Scaled:
			i := slices.IndexFunc(all, func(s *scaler) bool { return s.deployment == e.Deployment })
			if i < 0 {
				i = len(all)
				all = append(all, &scaler{deployment: e.Deployment})
			}
			s, x := all[i], action{at: e.At, up: e.Change > 0}
			if n := len(s.actions); n > 0 {
				last := &s.actions[n-1]
				x.undoes = x.up != last.up && x.at-last.at < undoneUS
			}
			s.actions = append(s.actions, x)
		case Closed:
			for _, s := range all {
				s.report(emit)
			}
		}
	}
}

// report reports the episodes.
func (s *scaler) report(emit func(*Episode)) {
	var open *Episode
	actions := int64(0) // from the first occurrence to the last one
	end := func() {
		if open != nil && open.Count >= minUndone {
			open.Severity = float64(open.Count) / float64(actions)
			open.Text = fmt.Sprintf("%d of %d changes of the number of replicas undid one of the last 10 minutes",
				open.Count, actions)
			emit(open)
		}
		open = nil
	}
	since := int64(0) // actions since the last occurrence
	for _, x := range s.actions {
		if since++; !x.undoes {
			continue
		}
		if open != nil && x.at-open.End > hourUS {
			end()
		}
		if open == nil {
			open, actions, since = &Episode{Start: x.at, Replica: NoReplica, OfDeployment: true,
				Deployment: s.deployment}, 0, 1
		}
		open.End, open.Count = x.at, open.Count+1
		actions, since = actions+since, 0
	}
	end()
}

// A replica is slow from minSlowSteps steps on that took slowFactor times as long as they should.
const (
	minSlowSteps = 20
	slowFactor   = 1.2
)

// slowReplica is a replica whose steps take longer than they should.
type slowReplica struct {
	episode          Episode
	actual, normalUS int64
}

// newReplicaSlow reports replicas that are slow. Severity is the share of the time of their steps that was lost.
func newReplicaSlow(emit func(*Episode)) Detector {
	var all []*slowReplica
	end := func(s *slowReplica) {
		e := &s.episode
		if e.Count < minSlowSteps || float64(s.actual) < slowFactor*float64(s.normalUS) {
			return
		}
		e.Severity = 1 - float64(s.normalUS)/float64(s.actual)
		e.Text = fmt.Sprintf("%d steps took %.2f times as long as they should", e.Count,
			float64(s.actual)/float64(s.normalUS))
		emit(e)
	}
	return func(e *Event) {
		i := slices.IndexFunc(all, func(s *slowReplica) bool { return s.episode.Replica == e.Replica })
		switch {
		case e.Kind == Slowed:
			if i >= 0 && e.Slow.From-all[i].episode.End > gapUS {
				end(all[i])
				all = slices.Delete(all, i, i+1)
				i = -1
			}
			if i < 0 {
				i = len(all)
				all = append(all, &slowReplica{episode: Episode{Start: e.Slow.From, Replica: e.Replica}})
			}
			s := all[i]
			s.episode.End, s.episode.Count = e.Slow.Until, s.episode.Count+e.Slow.Steps
			s.actual, s.normalUS = s.actual+e.Slow.ActualUS, s.normalUS+e.Slow.NormalUS
		case e.Kind == Finished && i >= 0 && e.At <= all[i].episode.End:
			if r := &all[i].episode.Requests; len(*r) < maxRequests {
				*r = append(*r, e.Request.ID)
			}
		case e.Kind == Closed:
			for _, s := range all {
				end(s)
			}
		}
	}
}

// Capacity is lost if at least minLost of a deployment's replicas are missed for minLostUS.
const (
	minLost   = 0.1
	minLostUS = 10_000_000
)

// fleetLoss is a deployment that misses replicas.
type fleetLoss struct {
	deployment   int32
	down         int32 // now
	since        int64
	most, of     int32 // the largest number that were missing, and of how many
	requests     []string
	lostRequests int64
}

// newCapacityLost reports deployments that miss replicas. Severity is the largest share that was missing.
func newCapacityLost(emit func(*Episode)) Detector {
	var all []*fleetLoss
	end := func(l *fleetLoss, at int64) {
		share := float64(l.most) / float64(l.of)
		if share < minLost || at-l.since < minLostUS {
			return
		}
		emit(&Episode{Start: l.since, End: at, Severity: share, Count: int64(l.most), Requests: l.requests,
			Replica: NoReplica, OfDeployment: true, Deployment: l.deployment,
			Text: fmt.Sprintf("%d of %d replicas were down; %d requests failed meanwhile", l.most, l.of,
				l.lostRequests)})
	}
	return func(e *Event) {
		i := slices.IndexFunc(all, func(l *fleetLoss) bool { return l.deployment == e.Deployment })
		switch e.Kind {
		case Lost:
			if i < 0 {
				i = len(all)
				all = append(all, &fleetLoss{deployment: e.Deployment, since: e.At})
			}
			l := all[i]
			if l.down++; l.down > l.most {
				l.most, l.of = l.down, max(e.Replicas, l.down)
			}
		case Restored:
			if i < 0 {
				return
			}
			if all[i].down--; all[i].down == 0 {
				end(all[i], e.At)
				all = slices.Delete(all, i, i+1)
			}
		case Finished:
			for _, l := range all {
				if e.Request.Failed {
					l.lostRequests++
					if len(l.requests) < maxRequests {
						l.requests = append(l.requests, e.Request.ID)
					}
				}
			}
		case Closed:
			for _, l := range all {
				end(l, e.At)
			}
		}
	}
}
