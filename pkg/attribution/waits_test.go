package attribution

import (
	"fmt"
	"testing"

	"blis/pkg/stream"
)

// A request waits 100 ms behind 1000 tokens; the queue was last empty 50 ms before it joined. Without 40 % of the work
// 60 of the 150 ms since then are saved, and 40 ms of waiting are left, 41 ms to the first token; without 30 % 45 ms
// are saved and 55 left, more than half of the wait.
func TestWorkThatMattersToAWait(t *testing.T) {
	for _, c := range []struct {
		tokens   int64
		targetMS float64
		missed   targetSet
		want     bool
	}{
		{400, 41, missedTTFT, true}, {400, 40, missedTTFT, false}, {300, 41, missedTTFT, false},
		{300, 56, missedTTFT, true}, {400, 41, missedE2E, true}, {300, 56, missedE2E, false},
		{400, 0, missedTTFT, true},
	} {
		a := New(header(1))
		o := served("r", 0, 50, 100)
		a.Outcome(&o, false)
		class := a.classes["fast"]
		class.Targets.TTFTMS = c.targetMS
		a.classes["fast"] = class
		r := a.requests.at(0)
		a.derive()
		r.contention.ahead.total, r.verdict.missed = 1000, c.missed
		if got := a.mattersToWait(r, c.tokens); got != c.want {
			t.Errorf("%d tokens, target %g ms, missed %d: %t, want %t", c.tokens, c.targetMS, c.missed, got, c.want)
		}
	}
}

// Of 40 prompts of 1000 tokens every other one finds 900 in the cache. The router reads the caches as they were up to
// 20 s ago: what the others recompute it could have known.
func TestStalePrefixes(t *testing.T) {
	for _, c := range []struct {
		cache string
		want  int
	}{{"periodic 20s", 20}, {"immediate", 0}} {
		h := header(2)
		h.Run.Config.(map[string]any)["control_plane"] = map[string]any{"snapshots": map[string]any{"cache": c.cache}}
		a, match := New(h), 0
		for i := range int64(40) {
			o := served(string(rune('A'+i)), 0, 30_000+100*i, 5)
			o.InputTokens, o.CachedTokens = 1000, 900*(i%2)
			a.Decision(&stream.Decision{ID: o.Decision, Stage: stream.StageRouting, AtUS: o.RoutedUS, Request: o.ID,
				Deployment: "main", Replica: 0, Candidates: 2,
				Considered: []stream.Candidate{{Deployment: "main", Replica: 0, QueueDepth: 0, Running: stream.NoIndex,
					Matched: stream.NoIndex, Cached: 0, AgeUS: 9_000_000}}})
			a.Outcome(&o, false)
		}
		a.stats.heavyTenant = a.heavyTenant()
		a.derive()
		a.computeStats()
		a.measureRecomputed()
		for _, r := range a.requests.all() {
			if stalePrefixes.holds(a, r) {
				match++
			}
		}
		if match != c.want {
			t.Errorf("caches %s: %d requests match, want %d", c.cache, match, c.want)
		}
	}
}

// A replica that was less busy than its peer and took longer for a token is slower by at least that. In batches of 8
// times the size a peer would take at most 8 times as long. More prompts could explain any time.
func TestSlowerThanPeersInOtherCompany(t *testing.T) {
	for _, c := range []struct {
		own     company
		running float64
		want    string
	}{{company{2, 1}, 3, "[12]"}, {company{6, 1}, 40, "[1.5]"}, {company{6, 2}, 40, "[]"}} {
		own := speedSample{120, c.running}
		peers := map[company]*fastestPeers{{3, 1}: {first: speedSample{10, 5}, at: 1}, c.own: {first: own}}
		ratios := (&speedUnit{medians: map[company]speedSample{c.own: own}}).ratios(peers, speedSample.most)
		if fmt.Sprint(ratios) != c.want {
			t.Errorf("%v: slower by %v, want %s", c.own, ratios, c.want)
		}
	}
}
