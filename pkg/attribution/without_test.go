package attribution

import (
	"slices"
	"testing"

	"blis/pkg/stream"
)

// A request takes 1 s to its first token and 2 s for 20 further ones. It meets a TTFT target of 700 ms if 300 ms
// before the token are not taken, a TPOT target of 90 ms if 200 ms after it are not, and an E2E target of 2.5 s if 500
// ms anywhere are not; all of them only if each one does.
func TestMetWithout(t *testing.T) {
	for _, c := range []struct {
		targets        stream.Targets
		before, decode float64
		want           bool
	}{
		{stream.Targets{TTFTMS: 700}, 300_000, 0, true},
		{stream.Targets{TTFTMS: 700}, 299_000, 900_000, false},
		{stream.Targets{TPOTMS: 90}, 0, 200_000, true},
		{stream.Targets{TPOTMS: 90}, 900_000, 199_000, false},
		{stream.Targets{E2EMS: 2500}, 300_000, 200_000, true},
		{stream.Targets{E2EMS: 2500}, 300_000, 199_000, false},
		{stream.Targets{TTFTMS: 700, TPOTMS: 90}, 300_000, 200_000, true},
		{stream.Targets{TTFTMS: 700, TPOTMS: 90}, 300_000, 0, false},
		{stream.Targets{TTFTMS: 1000}, 300_000, 0, false}, // it lost nothing
	} {
		h := header(1)
		h.SLOClasses[0].Targets = c.targets
		a := New(h)
		o := served("r", 0, 0, 999)
		o.OutputTokens, o.CompletedUS = 21, o.FirstTokenUS+2_000_000
		a.Outcome(&o, false)
		a.derive()
		a.findLoss(nil)
		if got := a.metWithout(a.requests.at(0), taken{c.before, c.decode}); got != c.want {
			t.Errorf("%+v: %t without %v and %v us", c.targets, got, c.before, c.decode)
		}
	}
}

// Nine of ten requests wait 100 or 150 ms in the queue after 800 ms in routing, and half of these miss the target of
// 920 ms. The others wait 2 s and all miss it. By the lift routing is no cause, but without that time the half would
// meet.
func TestAConditionThatAllMatchIsACause(t *testing.T) {
	h := header(1)
	h.SLOClasses[0].Targets = stream.Targets{TTFTMS: 920}
	h.Run.Config.(map[string]any)["control_plane"] = map[string]any{"routing_latency_us": 800_000}
	a := New(h)
	for i := range int64(100) {
		wait := 100 + i%2*50
		if i%10 == 0 {
			wait = 2000
		}
		o := served(string(rune('A'+i)), 0, 10_000*i, wait)
		for _, at := range []*stream.Micros{&o.RoutedUS, &o.EnqueuedUS, &o.ScheduledUS, &o.FirstTokenUS,
			&o.CompletedUS} {
			*at += 800_000
		}
		a.Outcome(&o, false)
	}
	f := a.Find()
	if len(f.Patterns) == 0 || f.Patterns[0].Condition != &controlLatency || f.Patterns[0].Lift != 0 ||
		f.Patterns[0].MetWithout != 50 || f.Patterns[0].Lost != 50 {
		t.Errorf("%+v", f.Patterns)
	}
}

// Requests that lose take 20 ms longer in the queue than those that do not, and as long for each of 10 tokens: that is
// a tenth of the time in which they decode, and the loss is there.
func TestSmallExcessIsNoPartOfALoss(t *testing.T) {
	for waitMS, want := range map[int64]Part{20: PartDecode, 200: PartQueue} {
		h := header(1)
		h.SLOClasses[0].Targets = stream.Targets{E2EMS: 800}
		a := New(h)
		for i := range int64(10) {
			lost := i % 2
			o := served(string(rune('A'+i)), 0, 10_000*i, lost*waitMS)
			o.OutputTokens = 5 + 5*lost
			o.CompletedUS = o.FirstTokenUS + stream.Micros(100_000*(o.OutputTokens-1))
			a.Outcome(&o, false)
		}
		a.derive()
		if l := a.findLoss(nil); l.Lost != 5 || l.Dominant[want] != 5 {
			t.Errorf("%d ms: %d lost, %v", waitMS, l.Lost, l.Dominant)
		}
	}
}

// The heavy tenant has more than its share: twice its share of the requests, three times the work of any other, or 1.4
// times its share and more than an even one. A tenant that only sends most requests has none of these.
func TestHeavyTenant(t *testing.T) {
	for _, c := range []struct {
		requests, tokens [3]int64 // of tenants a, b and c
		want             string
	}{
		{[3]int64{70, 30, 0}, [3]int64{100, 120, 0}, ""},
		{[3]int64{80, 20, 0}, [3]int64{100, 100, 0}, "a"},
		{[3]int64{90, 10, 0}, [3]int64{100, 900, 0}, "b"},
		{[3]int64{50, 50, 0}, [3]int64{100, 300, 0}, "b"},
		{[3]int64{60, 20, 20}, [3]int64{100, 200, 100}, ""},
		{[3]int64{45, 45, 10}, [3]int64{100, 100, 500}, "c"},
	} {
		a := New(header(1))
		n := int64(0)
		for tenant, count := range c.requests {
			for range count {
				o := served(string(rune('A'+n)), 0, 10*n, 0)
				n++
				o.Tenant, o.InputTokens = string(rune('a'+tenant)), c.tokens[tenant]
				a.Outcome(&o, false)
			}
		}
		got := ""
		if heavy := a.heavyTenant(); heavy != missing {
			got = a.names.list[heavy]
		}
		if got != c.want {
			t.Errorf("%v requests of %v tokens: %q, want %q", c.requests, c.tokens, got, c.want)
		}
	}
}

// Requests of two tenants that failed before their tokens were known.
func TestNoTenantIsHeavyWithoutTokens(t *testing.T) {
	a := New(header(1))
	for i := range int64(20) {
		o := served(string(rune('A'+i)), 0, 10*i, 0)
		o.Tenant, o.State, o.EndedUS, o.CompletedUS = string(rune('a'+i%2)), stream.StateFailed, o.CompletedUS, never
		o.InputTokens, o.OutputTokens, o.GeneratedTokens = 0, 0, 0
		a.Outcome(&o, false)
	}
	if f := a.Find(); f.Loss.Lost != 20 || a.stats.heavyTenant != missing {
		t.Errorf("%d lost, tenant %d is heavy", f.Loss.Lost, a.stats.heavyTenant)
	}
}

// Prefill replicas send 1 GB/s each; two of them move 40 blocks of 50 MB in the second from the end of the first prompt
// to the last transfer, as fast as they can. In four seconds they have time.
func TestLinksThatAreFull(t *testing.T) {
	for seconds, want := range map[stream.Micros]bool{1: true, 4: false} {
		h := header(4)
		d := h.Run.Config.(map[string]any)["deployments"].([]any)[0].(map[string]any)
		d["prefill"] = map[string]any{"replicas": 2}
		d["transfer"] = map[string]any{"out_gb_per_s": 1, "in_gb_per_s": 1}
		d["computed"] = map[string]any{"kv_block_bytes": 50_000_000}
		a := New(h)
		for i := range stream.Micros(2) {
			o := served(string(rune('A'+i)), 0, 0, 0)
			o.PrefillReplica, o.PrefillEnqueuedUS, o.PrefillScheduledUS, o.PrefilledUS = 0, 0, 0, 50_000
			o.TransferBlocks, o.TransferredUS = 20, 50_000+seconds*1_000_000/(2-i)
			o.EnqueuedUS, o.TransferStartedUS, o.ScheduledUS = 50_000, 50_000, o.TransferredUS
			o.FirstTokenUS, o.CompletedUS = o.TransferredUS+10_000, o.TransferredUS+20_000
			a.Outcome(&o, false)
		}
		a.derive()
		a.findLoss(nil)
		a.measureTransfers()
		r := a.requests.at(1)
		if a.linksFull(r) != want || want && decodePoolFull.holds(a, r) {
			t.Errorf("%d s: links full %t, decode pool full %t", seconds, a.linksFull(r), decodePoolFull.holds(a, r))
		}
	}
}

// Replica 1 served until 10 s and again from 40 s on, removed by the auto-scaler in between: what came at 20 s came too
// early. At 60 s all serve. A replica that failed was not removed.
func TestScaledInEarly(t *testing.T) {
	for gone, want := range map[string]bool{stream.ReplicaGone: true, stream.ReplicaFailed: false} {
		a := New(scalingHeader(2))
		state(a, 10_000, 1, gone)
		state(a, 40_000, 1, stream.ReplicaReady)
		for i, at := range []int64{5_000, 20_000, 60_000} {
			o := served(string(rune('A'+i)), 0, at, 0)
			a.Outcome(&o, false)
		}
		a.derive()
		a.measureFleet()
		var got []bool
		for _, r := range a.requests.all() {
			got = append(got, scaledInEarly.holds(a, r))
		}
		if !slices.Equal(got, []bool{false, want, false}) {
			t.Errorf("%s: %v", gone, got)
		}
	}
}
