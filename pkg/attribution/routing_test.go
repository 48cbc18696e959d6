package attribution

import (
	"math"
	"testing"

	"blis/pkg/stream"

	"pgregory.net/rapid"
)

// TestPackedRouting: what a router saw, with any numbers and any id, is unpacked as it was.
func TestPackedRouting(t *testing.T) {
	a := New(header(2))
	rapid.Check(t, func(t *rapid.T) {
		small := rapid.OneOf(rapid.Int32Range(-1, 200), rapid.Int32())
		number := rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{-1, 0, 0.1, math.Inf(1), 3.5}))
		view := func(name string) ReplicaView {
			if rapid.Bool().Draw(t, name+" is missing") {
				return ReplicaView{Replica: missing}
			}
			return ReplicaView{Replica: rapid.Int32Range(0, math.MaxInt32).Draw(t, "replica"),
				Inflight: small.Draw(t, "inflight"), Queue: small.Draw(t, "queue"), Running: small.Draw(t, "running"),
				Prefix: small.Draw(t, "prefix"), KV: number.Draw(t, "kv"), Score: number.Draw(t, "score"),
				AgeUS: rapid.Int64().Draw(t, "age")}
		}
		want := routing{chosen: view("chosen"), nextBest: view("next"), cacheAgeUS: rapid.Int64().Draw(t, "cache age"),
			flipWeight: rapid.SampledFrom([]float64{0, 0.3, 7}).Draw(t, "weight")}
		id := rapid.StringN(0, 300, 300).Draw(t, "id")
		own := rapid.StringN(0, 300, 300).Draw(t, "own id")
		r := &request{packed: a.pack(own, id, &want)}
		if got := *r.seen(); got != want || r.decision() != id || r.id() != own {
			t.Errorf("%q %q %+v, want %q %q %+v", r.id(), r.decision(), got, own, id, want)
		}
	})
	if r := (&request{packed: a.pack("", "", &noRouting)}); *r.seen() != noRouting || r.decision() != "" {
		t.Errorf("without a decision: %q, %+v", r.decision(), r.seen())
	}
}

// TestRoutedAgain: the last routing decision counts; the age of the cache is the last that is known, and an id that
// only the outcome has replaces that of the decision.
func TestRoutedAgain(t *testing.T) {
	h := header(2)
	h.Run.Config.(map[string]any)["control_plane"] = map[string]any{
		"snapshots": map[string]any{"cache": "periodic 1s"}}
	a := New(h)
	decide := func(id string, to, considered stream.Index) {
		a.Decision(&stream.Decision{ID: id, Stage: stream.StageRouting, AtUS: 5, Request: "r", Deployment: "main",
			Replica: to, Considered: []stream.Candidate{{Deployment: "main", Replica: considered, QueueDepth: 3,
				Running: stream.NoIndex, Matched: stream.NoIndex, Cached: 7, AgeUS: 40}}})
	}
	decide("dec-1", 0, 0)
	r := a.requests.at(0)
	if g := r.seen(); r.decision() != "dec-1" || g.chosen.Queue != 3 || g.cacheAgeUS != 40 {
		t.Errorf("%s: %+v", r.decision(), g)
	}
	decide("dec-2", 1, 0)
	if g := r.seen(); r.decision() != "dec-2" || g.chosen.Replica != missing || g.nextBest.Queue != 3 ||
		g.cacheAgeUS != 40 {
		t.Errorf("%s: %+v", r.decision(), g)
	}
	o := served("r", 1, 0, 0)
	o.Decision = "dec-3"
	a.Outcome(&o, false)
	if g := r.seen(); r.decision() != "dec-3" || g.nextBest.Queue != 3 {
		t.Errorf("%s: %+v", r.decision(), g)
	}
}
