package attribution

import (
	"fmt"
	"testing"

	"blis/pkg/stream"
)

// pooled is a run with two prefill replicas.
func pooled() *Analyzer {
	h := header(1)
	d := h.Run.Config.(map[string]any)["deployments"].([]any)[0].(map[string]any)
	d["prefill"] = map[string]any{"replicas": 2}
	return New(h)
}

// prefilled is a request that a prefill replica computes; it waits there for 800 of 1000 ms to its first token.
func prefilled(id string, at stream.Index, routedMS, waitMS int64) stream.Outcome {
	o := served(id, 0, routedMS, 0)
	us := func(ms int64) stream.Micros { return o.ArrivalUS + stream.Micros(1000*ms) }
	o.PrefillReplica, o.PrefillEnqueuedUS, o.PrefillScheduledUS = at, us(0), us(waitMS)
	computed := us(waitMS + 100)
	o.PrefilledUS, o.EnqueuedUS, o.TransferStartedUS, o.TransferredUS = computed, computed, computed, us(waitMS+150)
	o.ScheduledUS, o.FirstTokenUS, o.CompletedUS = us(waitMS+150), us(waitMS+200), us(waitMS+200)
	return o
}

// TestPrefillReplicasHaveRows: a request counts at both of its replicas, with the tokens that each had in its cache.
// A prefill replica without requests has a row, too.
func TestPrefillReplicasHaveRows(t *testing.T) {
	a := pooled()
	for i := range int64(3) {
		o := prefilled(fmt.Sprint("p", i), 1, i, 800)
		o.CachedTokens, o.DecodeCachedTokens = 40, 10
		a.Outcome(&o, false)
	}
	own := served("own", 0, 5, 0)
	own.CachedTokens = 100
	a.Outcome(&own, false)
	f := a.Find()
	rows := map[string]string{}
	for _, r := range append(f.Replicas, f.Deployments...) {
		rows[r.Name] = fmt.Sprint(r.Sent, r.Lost, r.Share, r.HitRate(), r.Prefills)
	}
	want := map[string]string{"main/0": "4 3 1 0.325 false", "main": "4 3 1 0.325 false",
		"main.prefill/0": "0 0 0 0 true", "main.prefill/1": "3 3 0.75 0.4 true", "main.prefill": "3 3 0.75 0.4 true"}
	for name, row := range want {
		if rows[name] != row {
			t.Errorf("%s: %q, want %q", name, rows[name], row)
		}
	}
	if len(rows) != len(want) {
		t.Errorf("rows %v", rows)
	}
}

// TestPrefillImbalance: the queue of a prefill replica with four requests more than that of an idle one is the choice
// of the router; with fewer, or without an idle one, the pool is too small. Replicas that come and go do not count.
func TestPrefillImbalance(t *testing.T) {
	for _, c := range []struct {
		ahead, other  int
		waitMS        int64
		changes       bool
		uneven, small bool
	}{
		{4, 0, 800, false, true, false},
		{3, 0, 800, false, false, true},
		{5, 1, 800, false, true, false},
		{8, 2, 800, false, false, true},
		{4, 0, 80, false, false, false},
		{4, 0, 800, true, false, true},
	} {
		a := pooled()
		if c.changes {
			a.ReplicaState(&stream.ReplicaState{AtUS: 1, Deployment: "main.prefill", Replica: 0,
				State: stream.ReplicaFailed})
		}
		for i := range c.ahead {
			o := prefilled(fmt.Sprint("a", i), 1, 0, 2000)
			a.Outcome(&o, false)
		}
		for i := range c.other {
			o := prefilled(fmt.Sprint("b", i), 0, 0, 2000)
			a.Outcome(&o, false)
		}
		gone := prefilled("gone", 0, 0, 1) // it has left its queue
		a.Outcome(&gone, false)
		o := prefilled("r", 1, 2, c.waitMS)
		a.Outcome(&o, false)
		a.MeasureAll()
		a.Find()
		r := a.requests.at(a.requests.len() - 1)
		got := [2]bool{prefillImbalance.holds(a, r), prefillPoolFull.holds(a, r)}
		if got != [2]bool{c.uneven, c.small} {
			t.Errorf("%+v: %v (queue %d, shortest %d)", c, got, r.prefill.queue, r.prefill.shortest)
		}
	}
}

// TestHintsOfPrefillRouting: the router of prefill replicas is changed first, unless it is the proposed one.
func TestHintsOfPrefillRouting(t *testing.T) {
	for routing, want := range map[string]string{"random": "map[type:least-loaded]",
		"least-loaded": "map[type:weighted]"} {
		h := header(1)
		config := h.Run.Config.(map[string]any)
		config["deployments"].([]any)[0].(map[string]any)["prefill"] = map[string]any{"replicas": 2}
		config["policies"].(map[string]any)["prefill_routing"] = map[string]any{"type": routing}
		a := New(h)
		for i := range int64(60) {
			o := prefilled(fmt.Sprint("r", i), stream.Index(i%2), i, 800*(1-i%2))
			a.Outcome(&o, false)
		}
		f := a.Find()
		if len(f.Patterns) == 0 || f.Patterns[0].Condition != &prefillImbalance || len(f.Hints) == 0 ||
			f.Hints[0].Path != "policies.prefill_routing" || fmt.Sprint(f.Hints[0].To) != want {
			t.Errorf("%s: %+v", routing, f.Hints)
		}
	}
}

// TestConditionsFitTheirSet: a conditionSet has a bit for each condition.
func TestConditionsFitTheirSet(t *testing.T) {
	if len(conditions) > 64*len(conditionSet{}) {
		t.Errorf("%d conditions", len(conditions))
	}
}
