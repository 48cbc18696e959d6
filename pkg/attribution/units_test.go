package attribution

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"blis/pkg/llmtext"
	"blis/pkg/stream"
)

// TestMainGroupsHoldNineTenths: the groups that hold exactly 90 % of the loss suffice.
func TestMainGroupsHoldNineTenths(t *testing.T) {
	for _, c := range []struct {
		losses []float64
		want   int
	}{{[]float64{90, 10}, 1}, {[]float64{89, 11}, 2}, {[]float64{50, 40, 10}, 2}, {[]float64{100}, 1}} {
		l := &Loss{Total: 100}
		groups := map[Group]*Group{}
		for i, loss := range c.losses {
			g := Group{Class: string(rune('a' + i)), Loss: loss}
			groups[g] = &g
		}
		l.keepMain(groups)
		if len(l.Main) != c.want || l.Main[0].Loss != c.losses[0] {
			t.Errorf("%v: main groups %+v, want %d", c.losses, l.Main, c.want)
		}
	}
}

// TestSlowedDownFrom500TokensPerToken: decoding is slowed down from 500 prompt tokens for each output token after the
// first, and an output of one token is not.
func TestSlowedDownFrom500TokensPerToken(t *testing.T) {
	for _, c := range []struct {
		output      int32
		interfering int64
		want        bool
	}{{1, 1 << 40, false}, {2, 500, true}, {2, 499, false}, {11, 5000, true}, {11, 4999, false}} {
		r := &request{tokens: tokenCounts{output: c.output},
			derived: &derived{contention: contention{interfering: c.interfering}}}
		if got := r.isSlowedDown(); got != c.want {
			t.Errorf("%d output tokens, %d interfering: %v, want %v", c.output, c.interfering, got, c.want)
		}
	}
}

// TestWindowOfReplicas: a window counts the requests that were sent from its first instant to before its last, at their
// prefill replicas, too.
func TestWindowOfReplicas(t *testing.T) {
	a := &Analyzer{topology: topology{replicas: []replicaID{{"main", 0}, {"main", 1}},
		names: []string{"main/0", "main/1"}}}
	for i, routed := range []stream.Micros{9, 10, 15, 19, 20, never} {
		r := timed(0, 0, routed, never, never, never, never)
		r.replica, r.derived = int32(i%2), &derived{contention: contention{queue: int32(i)}}
		r.incidents = &noIncidents
		if i == 3 {
			r.verdict.loss = 1
			r.setIncidents(incidents{prefill: &prefillTimes{replica: 4, queue: 7}})
		}
		a.requests.add(*r)
	}
	elsewhere := timed(0, 0, 12, never, never, never, never)
	elsewhere.replica = missing
	a.requests.add(*elsewhere)
	all := a.windowReplicas(10, 20)
	want := []WindowReplica{{"main.prefill/4", 1, 1, 7}, {"main/1", 2, 1, 3}, {"main/0", 1, 0, 2}}
	if !slices.Equal(all, want) {
		t.Errorf("%+v, want %+v", all, want)
	}
}

// TestPrefillBusy: prefills of 30 and 20 µs of 2 replicas in 100 µs are a quarter of the time.
func TestPrefillBusy(t *testing.T) {
	d := &deployment{}
	if err := json.Unmarshal([]byte(`{"prefill": {"replicas": 2}}`), d); err != nil {
		t.Fatal(err)
	}
	a := &Analyzer{topology: topology{deployed: []*deployment{d}}}
	for i, p := range []*prefillTimes{{scheduled: 5, computed: 35}, {scheduled: 50, computed: 70},
		{scheduled: 90, computed: never}, nil} {
		r := &request{from: stream.Micros(1000 + 10*i), incidents: &noIncidents}
		r.setIncidents(incidents{prefill: p})
		a.requests.add(*r)
	}
	a.requests.at(3).from = 1100
	if got := a.prefillBusy(a.requests.at(0)); got != 0.25 {
		t.Errorf("%v, want 0.25", got)
	}
}

// TestShortenedIDs: the beginning of an id means the request that has it, and is ambiguous if several have it.
func TestShortenedIDs(t *testing.T) {
	for _, c := range []struct {
		asked     string
		ambiguous bool
		kept      int
	}{{"req-1" + llmtext.CutMark, true, 1}, {"req-2" + llmtext.CutMark, false, 2}, {"req-10", false, 1}} {
		q := new(Query)
		if err := q.UnmarshalText([]byte(c.asked)); err != nil {
			t.Fatal(err)
		}
		for _, id := range []string{"req-10", "req-20", "req-11", "req-20"} {
			q.collect(&stream.Decision{Request: id})
		}
		if q.ambiguous != c.ambiguous || len(q.decisions) != c.kept {
			t.Errorf("%s: ambiguous %v with %d decisions, want %v and %d", c.asked, q.ambiguous, len(q.decisions),
				c.ambiguous, c.kept)
		}
	}
}

// TestQueryOfAPercentile: p90 of ten requests is the second slowest, with its records only. An id of that name wins.
func TestQueryOfAPercentile(t *testing.T) {
	// TTFT falls from a to j, E2E and the times between 11 tokens rise.
	for asked, want := range map[string]string{"p90": "b", "p100": "a", "p50": "f", "p0.1": "j", "p99": "p99",
		"ttft.p90": "b", "e2e.p100": "j", "slowest": "j", "e2e.p50": "e", "tpot.p90": "i"} {
		a, q := New(header(1)), new(Query)
		if err := q.UnmarshalText([]byte(asked)); err != nil {
			t.Fatal(err)
		}
		a.SetQuery(q)
		for i, id := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "p99"} {
			if id == "p99" && asked != id {
				break
			}
			a.Decision(&stream.Decision{ID: "dec-" + id, Stage: stream.StageRouting, Request: id,
				Replica: stream.NoIndex})
			a.Regret(&stream.Regret{Decision: "dec-" + id, Request: id})
			a.Preemption(&stream.Preemption{Request: id})
			o := served(id, 0, 0, 0)
			o.FirstTokenUS = o.ArrivalUS + stream.Micros(1000-i)
			o.CompletedUS, o.OutputTokens = o.ArrivalUS+stream.Micros(9000+i), 11
			a.Outcome(&o, false)
		}
		a.Find()
		d, err := a.Detail()
		if err != nil || d.Request != want || len(d.Decisions) != 1 || d.Decisions[0].Request != want ||
			len(d.Regrets) != 1 || d.Regrets[0].Request != want || len(d.Preempted) != 1 {
			t.Errorf("%s: %+v, %v, want %s", asked, d, err, want)
		}
	}
	for text, want := range map[string]string{"p99.9": "ttft 99.9", "tpot.p9": "tpot 9", "slowest": "e2e 100",
		"p101": " 0", "p-1": " 0", "p1e1": " 0", "p": " 0", "99": " 0", "e2e.99": " 0", "itl.p99": " 0",
		"e2e.p": " 0"} {
		latency, percentile := percentileOf(text)
		if got := fmt.Sprint(latency, " ", percentile); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// TestMovedRequest: a request that is routed again after it was queued has moved. Of others nothing is known then.
func TestMovedRequest(t *testing.T) {
	for _, c := range []struct {
		redirects int64
		again     stream.Micros // after it was queued
		moved     bool
	}{{1, 500, true}, {1, 0, false}, {0, 500, false}} {
		a, q := New(header(1)), new(Query)
		if err := q.UnmarshalText([]byte("x")); err != nil {
			t.Fatal(err)
		}
		a.SetQuery(q)
		o, other := served("x", 0, 0, 1000), served("y", 0, 0, 1000)
		o.Redirects = c.redirects
		for _, at := range []stream.Micros{o.EnqueuedUS, o.EnqueuedUS + c.again} {
			a.Decision(&stream.Decision{ID: "dec", Stage: stream.StageRouting, Request: "x", AtUS: at})
		}
		a.Outcome(&o, false)
		a.Outcome(&other, false)
		a.Find()
		d, err := a.Detail()
		if err != nil || d.Redirects != c.redirects || d.Moved != c.moved || (d.Running > 0) == c.moved {
			t.Errorf("%+v: %+v, %v", c, d, err)
		}
	}
}

// TestHalfCachedCounts: prompts of which half was found in the cache count as cached, and help if the others lose more.
func TestHalfCachedCounts(t *testing.T) {
	a := New(header(1))
	for i := range int64(20) {
		o := served(string(rune('a'+i)), 0, i, 0)
		o.CachedTokens = 50 - i%2
		a.Outcome(&o, false)
		a.derive()
		v := &a.requests.at(int(i)).verdict
		v.judged, v.loss = true, float64(i%2)
	}
	want := Strength{Kind: StrengthCached, Met: 10, All: 10, OtherAll: 10}
	a.derive()
	if got := a.findStrengths(); len(got) != 1 || got[0] != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestRecomputedBehindStaleCaches: where the router saw a cache of 100 ms ago, a prompt of 100 tokens recomputes the 80
// that others of the tenant find cached. What a later report said it would find, it does not recompute.
func TestRecomputedBehindStaleCaches(t *testing.T) {
	for age, want := range map[int64]int64{staleUS: 80, staleUS - 1: 0} {
		a := New(header(1))
		for i := range int64(11) {
			o := served(string(rune('a'+i)), 0, i, 0)
			if i > 0 {
				o.CachedTokens = 80
			}
			a.Outcome(&o, false)
		}
		a.derive()
		a.requests.at(0).unpacked = &routing{cacheAgeUS: age}
		a.measureRecomputed()
		if got := a.requests.at(0).contention.recomputed; got != want {
			t.Errorf("%d µs old: %d tokens, want %d", age, got, want)
		}
	}
}

// TestShareOfTheHeavyTenant: 90 and 30 of 150 computed prompt tokens are of the heavy tenant; cached ones do not count.
func TestShareOfTheHeavyTenant(t *testing.T) {
	a := New(header(1))
	for i, c := range []struct {
		tenant string
		cached int64
	}{{"heavy", 10}, {"calm", 70}, {"heavy", 70}} {
		o := served(string(rune('a'+i)), 0, int64(i), 0)
		o.Tenant, o.CachedTokens = c.tenant, c.cached
		a.Outcome(&o, false)
	}
	a.stats.heavyTenant = a.names.number("heavy")
	a.derive()
	if a.computeStats(); a.stats.heavyPrompts != 0.8 {
		t.Errorf("%v, want 0.8", a.stats.heavyPrompts)
	}
}

// TestStatesOfMisses: only the states in which requests ended are listed.
func TestStatesOfMisses(t *testing.T) {
	got := waits(5, -1, 5, -1).Find().Loss.Missed
	want := []Count{{stream.StateRejected, 2}}
	if got.Incomplete != 2 || !slices.Equal(got.States, want) {
		t.Errorf("%+v, want the states %v", got, want)
	}
}
