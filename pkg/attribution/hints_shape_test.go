package attribution

import (
	"math"
	"testing"

	"blis/pkg/stream"
)

// shapedRun is a run in which ten requests arrive at deployment main, one in 10 ms, with other fields of deployments.
func shapedRun(deployments ...map[string]any) *proposal {
	h := header(0)
	var all []any
	for _, d := range deployments {
		d["model"], d["gpu"] = "m", "H100"
		all = append(all, d)
	}
	h.Run.Config.(map[string]any)["deployments"] = all
	a := New(h)
	for i := range int64(10) {
		o := served(string(rune('a'+i)), 0, 10*i, 0)
		a.Outcome(&o, false)
	}
	return &proposal{a, &Pattern{Condition: &Condition{Name: "any"}, losing: a.requests.list()}, &Findings{}}
}

// same reports whether changes set these numbers, in their order.
func same(changes []Change, to ...float64) bool {
	ok := len(changes) == len(to)
	for i := range min(len(changes), len(to)) {
		ok = ok && changes[i].To == to[i]
	}
	return ok
}

// TestReplicasFromPool: prefills of 10 × 9 ms in 90 ms keep four replicas busy for a quarter of the time, which two
// replicas could do in half of it: the others decode. A deployment that scales, and a pattern without losses, have no
// replicas to move.
func TestReplicasFromPool(t *testing.T) {
	pool := func() *proposal {
		x := shapedRun(map[string]any{"id": "main", "replicas": 4, "prefill": map[string]any{"replicas": 4}})
		for _, r := range x.requests.all() {
			r.setIncidents(incidents{prefill: &prefillTimes{scheduled: r.arrival(), computed: r.arrival() + 9000}})
		}
		return x
	}
	x := pool()
	if got := x.replicasFromPool(); !same(got, 2, 6) {
		t.Errorf("%v, want 2 that prefill and 6 that decode", got)
	}
	x.topology.Deployments[0].MaxReplicas = 8
	if got := x.replicasFromPool(); got != nil {
		t.Errorf("%v for a deployment that scales", got)
	}
	x = pool()
	x.p.losing = nil
	if got := x.replicasFromPool(); got != nil {
		t.Errorf("%v without losing requests", got)
	}
}

// TestReplicasFromOthers: of seven replicas of two GPUs, two thirds of six are spare. Half of these four make one
// replica of four GPUs, which takes two of them.
func TestReplicasFromOthers(t *testing.T) {
	deployment := func(id string, replicas, gpus int) map[string]any {
		return map[string]any{"id": id, "replicas": replicas, "engine": map[string]any{"tensor_parallel_size": gpus}}
	}
	x := shapedRun(deployment("main", 3, 4), deployment("spare", 7, 2))
	x.f.Deployments = []ReplicaRow{{Name: "spare", Judged: 100, Lost: 1}}
	if got := x.replicasFromOthers(); !same(got, 4, 5) {
		t.Errorf("%v, want 4 replicas of main and 5 of spare", got)
	}
	x.f.Deployments[0].Lost = 2
	if got := x.replicasFromOthers(); got != nil {
		t.Errorf("%v from a deployment that loses 2 %%", got)
	}
}

// TestTooSlow: 101 tokens in 2 s are 20 ms a token after the first, and the fastest request takes 5 ms: √(5·20) = 10.
// An E2E target of 2 s allows 20 ms a token, a TPOT target counts before that.
func TestTooSlow(t *testing.T) {
	x := shapedRun(map[string]any{"id": "main", "replicas": 1})
	r := x.requests.at(0)
	r.tokens.output = 101
	r.set(whenEnded, r.firstToken()+2_000_000)
	x.stats.speeds.fastest = map[string]float64{"m": 5}
	for _, c := range []struct {
		targets stream.Targets
		want    float64
	}{{stream.Targets{E2EMS: 2000}, 0.5}, {stream.Targets{E2EMS: 2000, TPOTMS: 4}, 2.5}} {
		x.classes["fast"] = stream.SLOClass{Name: "fast", Targets: c.targets}
		if got := x.tooSlow(r); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%+v: %v, want %v", c.targets, got, c.want)
		}
	}
}
