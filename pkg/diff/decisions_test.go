package diff

import (
	"slices"
	"testing"

	"blis/pkg/stream"
)

// TestAgeOfWhatWasAsked: what is read at the instant is 0 ms old, and not unknown; what a
// policy did not ask of the replica has no age, and differs by none from one that it did.
func TestAgeOfWhatWasAsked(t *testing.T) {
	live, stale, blind := candidate(0, 3), candidate(0, 3), stream.NewCandidate("main", 0)
	stale.AgeUS, blind.Inflight = 50_000, 2
	for _, c := range []struct {
		of   stream.Candidate
		want string
	}{{live, "0"}, {stale, "50"}, {blind, "-"}} {
		if got := age(&c.of); got != c.want {
			t.Errorf("%+v is %s ms old, want %s", c.of, got, c.want)
		}
	}
	decision := func(c stream.Candidate) *stream.Decision { return &stream.Decision{Considered: []stream.Candidate{c}} }
	if got := unlike(decision(live), decision(stale)); !slices.Equal(got, []string{"main/0 age_us"}) {
		t.Errorf("0 and 50 ms: %v", got)
	}
	blind.Inflight = live.Inflight
	if got := unlike(decision(blind), decision(stale)); len(got) != 0 {
		t.Errorf("not asked and 50 ms: %v", got)
	}
}
