package attribution

import (
	"cmp"
	"slices"
	"strings"

	"blis/pkg/stream"
)

// stateChange is a change of the state of a replica.
type stateChange struct {
	at      stream.Micros
	replica int32
	state   string
}

// ReplicaState takes a change of the state of a replica.
func (a *Analyzer) ReplicaState(s *stream.ReplicaState) {
	a.fleet.changes = append(a.fleet.changes, stateChange{s.AtUS, a.topology.number(s.Deployment, s.Replica),
		strings.Clone(s.State)})
}

// fleet is how the replicas of a run come and go. Without changes all serve all the time.
type fleet struct {
	changes []stateChange // in the order of time
	// states are those of all replicas at an instant, "" before they exist; recovering ones have failed and are not
	// ready yet; next is the first change after it.
	states     []string
	recovering []bool
	next       int
}

// fleetCounts are the replicas of the deployment of a request when it was routed, or arrived if it was not: those
// that serve, that start for the first time, and that have failed and are not back; later is the largest number that
// serve at any later time. Of those that serve, some warm up.
type fleetCounts struct{ serving, starting, down, later, warming int32 }

// startFleet goes back to the beginning of the run, when the replicas of the configuration are ready.
func (a *Analyzer) startFleet() {
	f := &a.fleet
	f.next, f.states, f.recovering = 0, make([]string, len(a.topology.replicas)), make([]bool, len(a.topology.replicas))
	for n, id := range a.topology.replicas {
		if int(id.index) < a.topology.deploymentOf(int32(n)).engines() {
			f.states[n] = stream.ReplicaReady
		}
	}
}

// until makes the changes up to an instant.
func (f *fleet) until(at stream.Micros) {
	for ; f.next < len(f.changes) && f.changes[f.next].at <= at; f.next++ {
		c := &f.changes[f.next]
		f.states[c.replica] = c.state
		switch c.state {
		case stream.ReplicaFailed:
			f.recovering[c.replica] = true
		case stream.ReplicaWarming, stream.ReplicaReady:
			f.recovering[c.replica] = false
		}
	}
}

// serves reports whether a replica computes requests. All do where no replica changes.
func (f *fleet) serves(n int32) bool {
	return len(f.changes) == 0 || f.states[n] == stream.ReplicaReady || f.states[n] == stream.ReplicaWarming
}

// AlwaysUp reports whether a replica of the configuration was ready from the beginning to the end of the run.
func (a *Analyzer) AlwaysUp(deployment string, index stream.Index) bool {
	return !index.IsZero() && int(index) < a.topology.deploymentNamed(deployment).engines() &&
		!slices.ContainsFunc(a.fleet.changes, func(c stateChange) bool {
			return a.topology.replicas[c.replica] == replicaID{deployment, index}
		})
}

// count counts the replicas with these numbers.
func (f *fleet) count(replicas []int32) (c fleetCounts) {
	for _, n := range replicas {
		switch {
		case f.serves(n):
			c.serving++
			if len(f.changes) > 0 && f.states[n] == stream.ReplicaWarming {
				c.warming++
			}
		case f.recovering[n]:
			c.down++
		case f.states[n] == stream.ReplicaProvisioning || f.states[n] == stream.ReplicaLoading:
			c.starting++
		}
	}
	return c
}

// measureFleet counts for each request the replicas of its deployment, and finds the state of its own one.
func (a *Analyzer) measureFleet() {
	f := &a.fleet
	if len(f.changes) == 0 && !slices.ContainsFunc(a.topology.Deployments, (deployment).scales) {
		return
	}
	byDeployment := map[string][]int32{}
	for n, id := range a.topology.replicas {
		byDeployment[id.deployment] = append(byDeployment[id.deployment], int32(n))
	}
	requests := a.requests.list()
	sent := a.requests.list()
	slices.SortStableFunc(sent, func(x, y *request) int { return cmp.Compare(x.sent(), y.sent()) })
	a.startFleet()
	for _, r := range sent {
		f.until(r.sent())
		e := r.evidence.except()
		e.fleet = f.count(byDeployment[a.deploymentID(r)])
		e.warming = r.replica != missing && f.states[r.replica] == stream.ReplicaWarming
	}
	slices.SortStableFunc(requests, func(x, y *request) int { return cmp.Compare(x.arrival(), y.arrival()) })
	a.startFleet()
	for _, r := range requests {
		f.until(r.arrival())
		n := f.count(byDeployment[a.deploymentID(r)])
		r.evidence.except().noneServed = n.serving == 0 && n.down == 0 && a.deploymentFor(r).scales()
	}
	a.findLater(sent, byDeployment)
	a.findRemoved()
}

// sent is when the request was routed, or else arrived.
func (r *request) sent() stream.Micros {
	if r.routed() != never {
		return r.routed()
	}
	return r.arrival()
}

// deploymentID is the deployment of a request, of one that was not routed the first one of its model.
func (a *Analyzer) deploymentID(r *request) string {
	if r.replica != missing {
		return a.topology.replicas[r.replica].deployment
	}
	return a.topology.modelDeployment(a.names.list[r.labels.model])
}

// recentUS is how far the fleet looks back for replicas that have gone.
const recentUS = 120_000_000

// findLater finds for each request, in the order of time, the most replicas that serve later, and those of the last
// recentUS.
func (a *Analyzer) findLater(requests []*request, byDeployment map[string][]int32) {
	f := &a.fleet
	type level struct {
		at      stream.Micros
		serving int32
	}
	levels := map[string][]level{}
	a.startFleet()
	for id, replicas := range byDeployment {
		levels[id] = []level{{0, f.count(replicas).serving}}
	}
	for i := range f.changes {
		f.until(f.changes[i].at)
		id := a.topology.replicas[f.changes[i].replica].deployment
		levels[id] = append(levels[id], level{f.changes[i].at, f.count(byDeployment[id]).serving})
	}
	for _, r := range requests {
		e := r.evidence.except()
		e.servedBefore = e.fleet.serving
		for i, l := range levels[a.deploymentID(r)] {
			if l.at > r.sent() {
				break
			}
			if all := levels[a.deploymentID(r)]; i+1 == len(all) || all[i+1].at > r.sent()-recentUS {
				e.servedBefore = max(e.servedBefore, l.serving)
			}
		}
	}
	most := map[string]int32{}
	for _, r := range slices.Backward(requests) {
		id := a.deploymentID(r)
		for n := len(levels[id]); n > 0 && levels[id][n-1].at > r.sent(); n = len(levels[id]) {
			most[id] = max(most[id], levels[id][n-1].serving)
			levels[id] = levels[id][:n-1]
		}
		e := r.evidence.except()
		e.fleet.later = max(most[id], e.fleet.serving)
	}
}

// findRemoved finds the requests that ended, or were sent elsewhere, because their replica was lost, and whether the
// auto-scaler had removed it.
func (a *Analyzer) findRemoved() {
	f := &a.fleet
	anyFailed := slices.ContainsFunc(f.changes, func(c stateChange) bool { return c.state == stream.ReplicaFailed })
	var lost []*request
	for _, r := range a.requests.all() {
		reason := a.names.list[r.labels.reason]
		if reason == stream.ReasonReplicaLost || reason == stream.ReasonNoReplica || r.redirects > 0 {
			r.evidence.except().lostReplica = true
			lost = append(lost, r)
		}
	}
	slices.SortStableFunc(lost, func(x, y *request) int { return cmp.Compare(x.ended(), y.ended()) })
	a.startFleet()
	for _, r := range lost {
		f.until(r.ended())
		drained := r.replica != missing && r.redirects == 0 &&
			(f.states[r.replica] == stream.ReplicaDraining || f.states[r.replica] == stream.ReplicaGone)
		r.evidence.except().removedReplica = drained || !anyFailed
	}
}

// measureRetries finds for each request the share of retries after a time-out among the requests that were sent to
// replicas in the last retryWindowUS.
func (a *Analyzer) measureRetries() {
	if !a.requests.contains(func(r *request) bool { return r.afterTimeout }) {
		return
	}
	sent := slices.DeleteFunc(a.requests.list(), func(r *request) bool { return r.routed() == never })
	slices.SortStableFunc(sent, func(x, y *request) int { return cmp.Compare(x.routed(), y.routed()) })
	first, retries := 0, 0
	for i, r := range sent {
		if r.afterTimeout {
			retries++
		}
		for ; sent[first].routed() <= r.routed()-retryWindowUS; first++ {
			if sent[first].afterTimeout {
				retries--
			}
		}
		r.evidence.except().retryShare = float64(retries) / float64(i+1-first)
	}
}

// retryWindowUS is the time in which retries are counted.
const retryWindowUS = 10_000_000
