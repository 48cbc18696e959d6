package attribution

import (
	"testing"

	"blis/pkg/metrics"
	"blis/pkg/stream"
)

// prefixRun is a request of 1000 prompt tokens, of which the router expects some to be cached and none are. It reads
// them, or not.
func prefixRun(caching, reads bool, routing map[string]any, expected int64) (*Analyzer, *request) {
	h := header(2)
	config := h.Run.Config.(map[string]any)
	config["deployments"].([]any)[0].(map[string]any)["engine"] = map[string]any{"block_size": 16,
		"enable_prefix_caching": caching}
	config["policies"] = map[string]any{"routing": routing}
	a := New(h)
	o := served("r", 0, 0, 400)
	o.InputTokens, o.ExpectedCachedTokens, o.OutputTokens = 1000, expected, 11
	o.CompletedUS = o.FirstTokenUS + 100_000
	matched := stream.NoIndex
	if reads {
		matched = stream.Index(expected / 16)
	}
	a.Decision(&stream.Decision{ID: o.Decision, Stage: stream.StageRouting, AtUS: o.RoutedUS, Request: o.ID,
		Deployment: "main", Replica: 0, Candidates: 2, Considered: []stream.Candidate{{Deployment: "main", Replica: 0,
			QueueDepth: 0, Running: stream.NoIndex, Matched: matched, Cached: stream.NoIndex}}})
	a.Outcome(&o, false)
	a.derive()
	a.measureRecomputed()
	return a, a.requests.at(0)
}

// What was computed before delays a request without prefix caching if it is 30 % of its prompt and the work that it
// waited behind, and its first token took half of its TTFT target; or 30 % of the prompts that slowed down its
// decoding.
func TestWhatPrefixCachingWouldHaveSaved(t *testing.T) {
	for _, c := range []struct {
		name               string
		caching, reads     bool
		expected           int64 // of 1000 prompt tokens
		ahead, recomputed  int64
		interfering, again int64
		targetMS           float64
		promptsAhead       float64
		want               bool
	}{
		{"ahead", false, true, 0, 9000, 3100, 0, 0, 500, 9000, true},
		{"too few", false, true, 0, 9000, 2900, 0, 0, 500, 9000, false},
		{"own", false, true, 800, 1000, 0, 0, 0, 500, 1000, true},
		{"with caching", true, true, 0, 9000, 3100, 0, 0, 500, 9000, false},
		{"soon", false, true, 0, 9000, 3100, 0, 0, 1000, 9000, false},
		{"soon, then slowed down", false, true, 0, 9000, 0, 5000, 1600, 1000, 9000, true},
		{"soon, then slowed down by new prompts", false, true, 0, 9000, 3100, 5000, 1400, 1000, 9000, false},
		{"soon, then hardly slowed down", false, true, 0, 9000, 3100, 4000, 4000, 1000, 9000, false},
		{"unknown", false, false, 0, 9000, 0, 0, 0, 500, 9000, true},
		{"unknown, behind outputs", false, false, 0, 9000, 0, 0, 0, 500, 4000, false},
	} {
		a, r := prefixRun(c.caching, c.reads, map[string]any{"type": "weighted"}, c.expected)
		a.classes["fast"] = stream.SLOClass{Name: "fast", Targets: stream.Targets{TTFTMS: c.targetMS}}
		n := &r.contention
		n.ahead.total, n.ahead.recomputed = c.ahead, c.recomputed
		n.interfering, n.interferingRecomputed = c.interfering, c.again
		r.evidence.promptsAhead = c.promptsAhead
		if got := prefixCachingOff.holds(a, r); got != c.want {
			t.Errorf("%s: %t, want %t", c.name, got, c.want)
		}
	}
}

// A router that gives cached blocks no credit does not read them.
func TestOverlapWithoutCreditIsIgnored(t *testing.T) {
	for _, c := range []struct {
		credit float64
		want   bool
	}{{0, true}, {1, false}} {
		_, r := prefixRun(true, true, map[string]any{"type": "dynamo-kv",
			"params": map[string]any{"overlap_score_credit": c.credit}}, 800)
		if got := r.prefixIgnored(); got != c.want {
			t.Errorf("credit %g: ignored %t, want %t", c.credit, got, c.want)
		}
	}
}

// TestLostPrefixesWithTiers: loaded tokens are not computed again, and what neither the cache nor a tier had is the
// fault of the tier where there is one.
func TestLostPrefixesWithTiers(t *testing.T) {
	for _, c := range []struct {
		tiers             bool
		cached, loaded    int64
		recomputed        int64
		evicted, tierFull bool
	}{
		{false, 100, 0, 700, true, false},
		{true, 100, 0, 700, false, true},
		{true, 100, 200, 500, false, true},
		{true, 100, 700, 0, false, false},
	} {
		h := header(2)
		config := h.Run.Config.(map[string]any)
		d := config["deployments"].([]any)[0].(map[string]any)
		d["engine"] = map[string]any{"block_size": 16, "enable_prefix_caching": true}
		if c.tiers {
			d["kv_tiers"] = []any{map[string]any{"load": map[string]any{"latency_us": 0, "gb_per_s": 1}}}
		}
		config["policies"] = map[string]any{"routing": map[string]any{"type": "prefix-affinity"}}
		a := New(h)
		o := served("r", 0, 0, 400)
		o.InputTokens, o.ExpectedCachedTokens, o.CachedTokens = 1000, 800, c.cached
		if c.loaded > 0 {
			o.LoadedTokens = &stream.LoadedTokens{CPU: c.loaded}
		}
		a.Decision(&stream.Decision{ID: o.Decision, Stage: stream.StageRouting, AtUS: o.RoutedUS, Request: o.ID,
			Deployment: "main", Candidates: 2, Considered: []stream.Candidate{{Deployment: "main",
				Running: stream.NoIndex, Matched: 50, Cached: stream.NoIndex}}})
		a.Outcome(&o, false)
		a.derive()
		a.measureRecomputed()
		r := a.requests.at(0)
		got := [2]bool{evicted.holds(a, r), tierTooSmall.holds(a, r)}
		if want := [2]bool{c.evicted, c.tierFull}; got != want || r.contention.recomputed != c.recomputed {
			t.Errorf("%+v: %v, %d tokens recomputed", c, got, r.contention.recomputed)
		}
	}
}

// TestThrashingIsNamed: a run in which many loaded blocks had just left the cache says so where loads take long.
func TestThrashingIsNamed(t *testing.T) {
	for rate, want := range map[float64]string{0.1: "",
		0.45: "; 45.0 % of the loaded blocks had left the cache within 10 s"} {
		a := New(header(1))
		if a.thrashing() != "" {
			t.Error("there is thrashing without metrics")
		}
		raw := &metrics.Raw{}
		raw.KV.ThrashingRate = &rate
		a.Metrics(raw)
		if got := a.thrashing(); got != want {
			t.Errorf("%v: %q, want %q", rate, got, want)
		}
	}
}
