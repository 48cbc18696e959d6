package attribution

import (
	"testing"

	"blis/pkg/stream"

	"github.com/google/go-cmp/cmp"
)

// linearHeader has steps of 10 ms, 20 µs for each prompt token and nothing for sequences, and a TPOT target of 30 ms.
func linearHeader(replicas int) *stream.Header {
	h := header(replicas)
	h.SLOClasses[0].Targets = stream.Targets{TPOTMS: 30}
	d := h.Run.Config.(map[string]any)["deployments"].([]any)[0].(map[string]any)
	d["latency"] = map[string]any{"model": "linear", "beta_us": []float64{10_000, 20, 0}}
	d["engine"] = map[string]any{"max_num_seqs": 256, "max_num_batched_tokens": 8192}
	return h
}

// A request decodes 11 tokens in 400 ms, 40 ms each. 20 ms of that are the 10,000 prompt tokens of the others
// then, 5 ms those of 2500. At an even rate of 25 tokens a ms steps take half of the time for prompts, 20 ms with all
// else; at 40 they take 50 ms.
func TestSlowedByPrompts(t *testing.T) {
	for _, c := range []struct {
		meanwhile, perMS float64
		slowed, tooMany  bool
	}{{10_000, 25, true, false}, {2500, 25, false, false}, {10_000, 40, true, true}, {10_000, 60, true, true}} {
		a := New(linearHeader(1))
		o := served("r", 0, 0, 0)
		o.OutputTokens, o.CompletedUS = 11, o.FirstTokenUS+400_000
		a.Outcome(&o, false)
		a.stats.heavyTenant = a.heavyTenant()
		a.derive()
		a.computeStats()
		a.measureSteps()
		r := a.requests.at(0)
		r.evidence.promptsMeanwhile, a.stats.prefillRates = c.meanwhile, []float64{c.perMS / 1000}
		if slowed, tooMany := a.slowedByPrompts(r); slowed != c.slowed || tooMany != c.tooMany {
			t.Errorf("%+v: slowed %t, too many %t", c, slowed, tooMany)
		}
	}
}

// Replica 0 computes a prompt of 1000 tokens each 100 ms: 10 tokens a ms, which steps of 256 tokens compute in 15.1 ms
// and steps of 64 in 11.3, which is too slow. With 30 ms between the prompts not even the former do. It does not matter
// when the first of them comes, and it counts, too: of two the rate is about twice as high.
func TestBudgetThatCarriesPrompts(t *testing.T) {
	for _, c := range []struct {
		requests       int64
		firstMS, gapMS int64
		budget         int64
		want           bool
	}{{20, 0, 100, 256, true}, {20, 0, 100, 64, false}, {20, 0, 30, 256, false}, {20, 0, 30, 2048, true},
		{20, 60_000, 100, 64, false}, {20, 60_000, 30, 256, false}, {2, 0, 100, 256, false}} {
		a := New(linearHeader(1))
		for i := range c.requests {
			o := served(string(rune('a'+i)), 0, c.firstMS+c.gapMS*i, 0)
			o.InputTokens = 1000
			a.Outcome(&o, false)
		}
		a.stats.heavyTenant = a.heavyTenant()
		a.derive()
		a.computeStats()
		a.measureSteps()
		x := &proposal{a, &Pattern{losing: a.requests.list()}, &Findings{}}
		if got := x.carries(c.budget); got != c.want {
			t.Errorf("%+v: %t", c, got)
		}
	}
}

// With steps of 10 ms and 20 µs a token, (30 - 10) ms hold 1000 tokens, half of the next power of 2 is 512. Prompts
// wait for the class that misses its TPOT target only if most requests are of another class.
func TestLaterPrompts(t *testing.T) {
	for others, want := range map[int]any{3: int64(512), 2: nil} {
		h := linearHeader(1)
		h.SLOClasses = append(h.SLOClasses, stream.SLOClass{Name: "patient", Tier: "standard"})
		a := New(h)
		for i := range 2 + others {
			o := served(string(rune('a'+i)), 0, int64(i), 0)
			if i >= 2 {
				o.SLOClass = "patient"
			}
			a.Outcome(&o, false)
		}
		a.stats.heavyTenant = a.heavyTenant()
		a.derive()
		a.computeStats()
		a.measureSteps()
		x := &proposal{a, &Pattern{losing: a.requests.list()[:2]}, &Findings{}}
		var got any
		if changes := x.laterPrompts(); len(changes) > 0 {
			got = changes[0].To
		}
		if got != want {
			t.Errorf("%d others: %v, want %v", others, got, want)
		}
	}
}

// Of two replicas one can have all prompts of 1000 tokens each 50 ms, but not each 10 ms.
func TestPoolsThatCarryTheirRequests(t *testing.T) {
	for gapMS, want := range map[int64]bool{50: true, 10: false} {
		a := New(linearHeader(2))
		for i := range int64(20) {
			o := served(string(rune('a'+i)), stream.Index(i%2), gapMS*i, 0)
			o.InputTokens = 1000
			a.Outcome(&o, false)
		}
		a.stats.heavyTenant = a.heavyTenant()
		a.derive()
		a.computeStats()
		a.measureSteps()
		x := &proposal{a, &Pattern{losing: a.requests.list()}, &Findings{}}
		if got := x.poolsCarry(1, 2, func(*request) bool { return false }); got != want {
			t.Errorf("a prompt each %d ms: %t", gapMS, got)
		}
	}
}

// What holds growth back is lifted: nothing of the defaults, and no interval gets longer.
func TestSoonerScaling(t *testing.T) {
	up := func(replicas, period any) []any { return []any{map[string]any{"replicas": replicas, "period": period}} }
	for name, c := range map[string]struct {
		auto map[string]any
		want map[string]any
	}{
		"defaults": {map[string]any{"interval": "2s", "stabilization": map[string]any{"up": "0s"},
			"limits": map[string]any{"select": "max", "up": up(4.0, "15s")}}, map[string]any{}},
		"stabilization": {map[string]any{"interval": "5s", "stabilization": map[string]any{"up": "40s"}},
			map[string]any{"policies.autoscale.stabilization.up": "0s"}},
		"limits": {map[string]any{"interval": "5s", "limits": map[string]any{"select": "max", "up": up(1.0, "60s")}},
			map[string]any{"policies.autoscale.limits.up": []any{}}},
		"interval": {map[string]any{"interval": "25s"}, map[string]any{"policies.autoscale.interval": "5s"}},
	} {
		h := scalingHeader(1)
		h.Run.Config.(map[string]any)["policies"].(map[string]any)["autoscale"] = c.auto
		a := New(h)
		o := served("r", 0, 0, 0)
		a.Outcome(&o, false)
		x, got := &proposal{a, &Pattern{losing: a.requests.list()}, &Findings{}}, map[string]any{}
		a.derive()
		for _, change := range x.sooner() {
			got[change.Path] = change.To
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// A target is halved if no more replicas served later, or three times as many; if 1.25 times as many did, it is 0.8 of
// what it was.
func TestLowerTarget(t *testing.T) {
	for name, c := range map[string]struct {
		serving, later int32
		auto           map[string]any
		want           map[string]any
	}{
		"mean": {1, 1, map[string]any{"type": "target-utilization", "params": map[string]any{"target": 0.85}},
			map[string]any{"policies.autoscale.params.target": 0.42}},
		"queue": {4, 5, map[string]any{"type": "queue-depth", "params": map[string]any{"target": 10.0}},
			map[string]any{"policies.autoscale.params.target": 8.0}},
		"limits": {1, 3, map[string]any{"type": "threshold", "params": map[string]any{"up": 0.8, "down": 0.3}},
			map[string]any{"policies.autoscale.params.up": 0.4, "policies.autoscale.params.down": 0.15}},
		"totals": {1, 0, map[string]any{"type": "average-value", "params": map[string]any{
			"targets": map[string]any{"inflight": 16.0, "pending": 1.0}}},
			map[string]any{"policies.autoscale.params.targets.inflight": 8.0,
				"policies.autoscale.params.targets.pending": 0.5}},
		"attainment": {1, 0, map[string]any{"type": "slo-attainment"}, map[string]any{}},
	} {
		h := scalingHeader(1)
		h.Run.Config.(map[string]any)["policies"].(map[string]any)["autoscale"] = c.auto
		a := New(h)
		o := served("r", 0, 0, 0)
		a.Outcome(&o, false)
		a.derive()
		a.requests.at(0).evidence.fleet.serving, a.requests.at(0).evidence.fleet.later = c.serving, c.later
		x, got := &proposal{a, &Pattern{losing: a.requests.list()}, &Findings{}}, map[string]any{}
		for _, change := range x.lowerTarget() {
			got[change.Path] = change.To
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// A tenant has most of the work. It is what the others wait behind where they miss their targets as often.
func TestOthersLose(t *testing.T) {
	for others, want := range map[int64]bool{0: false, 5: true} {
		a := New(header(1))
		for i := range int64(40) {
			o := served(string(rune('A'+i)), 0, 10*i, 5)
			if o.Tenant = "heavy"; i%4 == 0 {
				o.Tenant = "calm"
			}
			a.Outcome(&o, false)
		}
		n := int64(0)
		for i, r := range a.requests.all() {
			a.derive()
			r.verdict.judged, r.verdict.loss = true, 1
			if i%4 == 0 {
				if n++; n > others {
					r.verdict.loss = 0
				}
			}
		}
		a.stats.heavyTenant = a.heavyTenant()
		a.derive()
		if got := a.othersLose(); a.stats.heavyTenant == missing || got != want {
			t.Errorf("%d of 10 others lose: %t", others, got)
		}
	}
}

// Ten requests are sent to replica 0 at once and reach its queue a second later: a router that sees none there is
// right. If they reach it at once, it should have seen them.
func TestRequestsOnTheirWay(t *testing.T) {
	for delayMS, want := range map[int64]bool{1000: false, 0: true} {
		h := header(2)
		h.Run.Config.(map[string]any)["control_plane"] = map[string]any{"snapshots": map[string]any{
			"queue_depth": immediate}}
		a := New(h)
		for i := range int64(10) {
			o := served(string(rune('a'+i)), 0, 0, 2000)
			o.RoutedUS, o.EnqueuedUS = stream.Micros(i), stream.Micros(i+1000*delayMS)
			a.Decision(&stream.Decision{ID: o.Decision, Stage: stream.StageRouting, AtUS: o.RoutedUS, Request: o.ID,
				Deployment: "main", Replica: 0, Candidates: 2,
				Considered: []stream.Candidate{{Deployment: "main", Replica: 0, QueueDepth: 0, Running: stream.NoIndex,
					Matched: stream.NoIndex, Cached: stream.NoIndex}}})
			a.Outcome(&o, false)
		}
		a.stats.heavyTenant = a.heavyTenant()
		a.derive()
		a.computeStats()
		a.countQueues()
		if got := a.requests.at(9).stale(); got != want {
			t.Errorf("%d ms on the way: stale %t, underway %d", delayMS, got, a.requests.at(9).contention.underway)
		}
	}
}

// Of four replicas three warm up, with 4 or 20 requests each: the warm one would have 16 or 80 of them.
func TestRouteToWarmWhereThereIsRoom(t *testing.T) {
	for resident, want := range map[int32]int{4: 1, 20: 0} {
		h := scalingHeader(1)
		h.Run.Config.(map[string]any)["policies"].(map[string]any)["autoscale"] = map[string]any{
			"actuation": map[string]any{"route_while_warming": true}}
		a := New(h)
		o := served("r", 0, 0, 0)
		a.Outcome(&o, false)
		r := a.requests.at(0)
		a.derive()
		r.evidence.fleet, r.contention.resident = fleetCounts{serving: 4, warming: 3}, resident
		x := &proposal{a, &Pattern{losing: a.requests.list()}, &Findings{}}
		if got := x.routeToWarm(); len(got) != want {
			t.Errorf("%d requests each: %v", resident, got)
		}
	}
}

// Requests that wait for slots of a full batch miss their TTFT target; where they miss the TPOT target, too, more slots
// do not help.
func TestRoomToDecodeInAFullBatch(t *testing.T) {
	for missed, want := range map[targetSet]string{
		missedTTFT:              "deployments.main.engine.max_num_seqs",
		missedTTFT | missedTPOT: "deployments.main.replicas",
	} {
		a := New(linearHeader(1))
		o := served("r", 0, 0, 0)
		a.Outcome(&o, false)
		a.derive()
		a.requests.at(0).setIncidents(incidents{stopped: stopped{slots: 1000}})
		a.requests.at(0).verdict.missed = missed
		x := &proposal{a, &Pattern{losing: a.requests.list()}, &Findings{}}
		if got := x.moreRoomToDecode(); len(got) == 0 || got[0].Path != want {
			t.Errorf("missed %b: %v, want %s", missed, got, want)
		}
	}
}
