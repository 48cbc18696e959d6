package attribution

import (
	"math"
	"testing"

	"blis/pkg/stream"
)

// scalingHeader is header, with a deployment that scales.
func scalingHeader(replicas int) *stream.Header {
	h := header(replicas)
	d := h.Run.Config.(map[string]any)["deployments"].([]any)[0].(map[string]any)
	d["max_replicas"] = 4
	return h
}

// state is a change at a time in ms.
func state(a *Analyzer, atMS int64, replica stream.Index, state string) {
	a.ReplicaState(&stream.ReplicaState{AtUS: stream.Micros(atMS * 1000), Deployment: "main", Replica: replica,
		State: state})
}

// Replica 0 serves all the time. Replica 1 fails at 100 ms, loads from 200 ms, warms up from 300 ms. The auto-scaler
// orders replica 2 at 200 ms, which loads from 250 ms and is ready at 400 ms, and drains at 500 ms.
func TestFleetAtARequest(t *testing.T) {
	a := New(scalingHeader(2))
	state(a, 100, 1, stream.ReplicaFailed)
	state(a, 200, 1, stream.ReplicaLoading)
	state(a, 200, 2, stream.ReplicaProvisioning)
	state(a, 250, 2, stream.ReplicaLoading)
	state(a, 300, 1, stream.ReplicaWarming)
	state(a, 400, 2, stream.ReplicaReady)
	state(a, 500, 2, stream.ReplicaDraining)
	want := map[int64]fleetCounts{50: {2, 0, 0, 3, 0}, 150: {1, 0, 1, 3, 0}, 225: {1, 1, 1, 3, 0},
		275: {1, 1, 1, 3, 0}, 350: {2, 1, 0, 3, 1}, 450: {3, 0, 0, 3, 1}, 550: {2, 0, 0, 2, 1}}
	for at := range want {
		o := served(string(rune('A'+at/10)), 1, at, 0)
		a.Outcome(&o, false)
	}
	a.derive()
	a.measureFleet()
	for _, r := range a.requests.all() {
		at := int64(r.routed() / 1000)
		if r.evidence.fleet != want[at] {
			t.Errorf("at %d ms: %+v, want %+v", at, r.evidence.fleet, want[at])
		}
		if warms := at >= 300; r.evidence.warming != warms {
			t.Errorf("at %d ms: warming %t", at, r.evidence.warming)
		}
		down := replicaLost.holds(a, r)
		if want := at > 100 && at < 300; down != want {
			t.Errorf("at %d ms: replica_lost %t", at, down)
		}
		if late := scaledLate.holds(a, r); late != (at < 400) {
			t.Errorf("at %d ms: scaled_late %t", at, late)
		}
	}
}

// Of two requests that end with their replica, one was at a replica that failed, the other at one that the auto-scaler
// removed.
func TestLostAndRemovedReplicas(t *testing.T) {
	a := New(scalingHeader(3))
	state(a, 100, 1, stream.ReplicaFailed)
	state(a, 100, 2, stream.ReplicaDraining)
	for replica := range stream.Index(3) {
		o := served(string(rune('A'+replica)), replica, 90, 0)
		if o.Replica > 0 {
			o.State, o.Reason, o.EndedUS, o.CompletedUS = stream.StateFailed, stream.ReasonReplicaLost, 100_000, never
		}
		a.Outcome(&o, false)
	}
	a.derive()
	a.measureFleet()
	for i, want := range []struct{ lost, removed bool }{{false, false}, {true, false}, {false, true}} {
		if r := a.requests.at(i); replicaLost.holds(a, r) != want.lost || scaledIn.holds(a, r) != want.removed {
			t.Errorf("replica %d: lost %t, removed %t", i, replicaLost.holds(a, r), scaledIn.holds(a, r))
		}
	}
}

// A replica that is down has no queue, but no request could go there: the queue of 20 at the other one is not long.
func TestQueuesOfReplicasThatAreDownDoNotCount(t *testing.T) {
	for _, down := range []bool{false, true} {
		a := New(header(2))
		if down {
			state(a, 1, 1, stream.ReplicaFailed)
		}
		for i := range int64(21) {
			o := served(string(rune('A'+i)), 0, 10, 100+i)
			a.Outcome(&o, false)
		}
		a.stats.heavyTenant = a.heavyTenant()
		a.derive()
		a.computeStats()
		a.measureFleet()
		a.countQueues()
		if last := a.requests.at(20); last.longerQueue() == down || last.contention.queue != 20 {
			t.Errorf("down %t: queue %d, longer %t", down, last.contention.queue, last.longerQueue())
		}
	}
}

// Six requests time out and are sent again; then four new ones come within 10 s, and one later.
func TestRetriesAfterTimeouts(t *testing.T) {
	a := New(header(1))
	for i := range int64(6) {
		id := string(rune('A' + i))
		o := served(id, 0, 0, 1000)
		o.State, o.Retried, o.EndedUS, o.CompletedUS = stream.StateTimedOut, true, 1_000_000, never
		a.Outcome(&o, true)
		again := served(id+"/retry1", 0, 20_000, 200)
		again.RetryOf, again.RetryUS = id, 20_000_000
		a.Outcome(&again, false)
	}
	for i := range int64(5) {
		o := served(string(rune('a'+i)), 0, 21_000+20_000*(i/4), 200)
		a.Outcome(&o, false)
	}
	a.derive()
	a.measureRetries()
	for i, want := range map[int]float64{11: 1, 15: 0.6, 16: 0} {
		if got := a.requests.at(i).evidence.retryShare; math.Abs(got-want) > 1e-9 {
			t.Errorf("%s: %g, want %g", a.requests.at(i).id(), got, want)
		}
	}
}

// Two replicas decode with 8 ms and 0.5 ms for each other request; the third one takes three times as long, with more
// requests than the others ever have.
func TestSlowReplicaByAFitToItsPeers(t *testing.T) {
	a := New(header(3))
	for i := range 120 {
		replica, running := stream.Index(i%3), float64(2+i%7)
		tpot := 8 + 0.5*running
		if replica == 2 {
			running *= 10
			tpot = 3 * (8 + 0.5*running)
		}
		o := served(string(rune(0x100+i)), replica, int64(i), 0)
		o.OutputTokens, o.CompletedUS = 101, o.FirstTokenUS+stream.Micros(math.Round(tpot*100*1000))
		a.Outcome(&o, false)
		a.derive()
		a.requests.at(i).contention.concurrent = running
	}
	a.derive()
	a.measureSpeeds()
	for n, want := range []float64{1, 1, 3} {
		if got := a.stats.speeds.slower[n]; math.Abs(got-want) > 0.05 {
			t.Errorf("replica %d is %g times as slow, want %g", n, got, want)
		}
	}
}

// What is exceptional about one request is not said of another: one was preempted and lost its replica, the other one
// was sent before.
func TestExceptionsOfOneRequest(t *testing.T) {
	a := New(header(2))
	calm, lost := served("calm", 0, 0, 0), served("lost", 1, 10, 0)
	lost.Preemptions, lost.SlotWaitUS, lost.Redirects = 2, 1000, 1
	state(a, 5, 1, stream.ReplicaFailed)
	a.Outcome(&calm, false)
	a.Outcome(&lost, false)
	a.MeasureAll()
	a.Find()
	if r := a.requests.at(1); r.preemptions != 2 || r.stopped.slots != 1000 || !r.evidence.lostReplica ||
		r.evidence.fleet.down != 1 {
		t.Errorf("lost: %+v, %+v", r.incidents, r.evidence.exceptional)
	}
	if r := a.requests.at(0); *r.incidents != (incidents{}) || r.evidence.lostReplica || r.evidence.fleet.down != 0 {
		t.Errorf("calm: %+v, %+v", r.incidents, r.evidence.exceptional)
	}
	if noIncidents != (incidents{}) || noException != (exceptional{}) ||
		noLabels != (labels{}) {
		t.Errorf("shared by all others: %+v, %+v", noIncidents, noException)
	}
}
