package diff

import (
	"slices"
	"testing"

	"blis/pkg/stream"
)

// TestSignalAge: a signal that is read live has age 0, which is not unknown. If a policy
// read no signal of the replica, the age is unknown and does not differ from any age.
func TestSignalAge(t *testing.T) {
	live, stale, blind := candidate(0, 3), candidate(0, 3), stream.NewCandidate("main", 0)
	stale.AgeUS, blind.Inflight = 50_000, 2
	for _, c := range []struct {
		of   stream.Candidate
		want string
	}{{live, "0"}, {stale, "50"}, {blind, "-"}} {
		if got := ageText(&c.of); got != c.want {
			t.Errorf("%+v has age %s ms, want %s", c.of, got, c.want)
		}
	}
	decision := func(c stream.Candidate) *stream.Decision { return &stream.Decision{Considered: []stream.Candidate{c}} }
	if got := differingSignals(decision(live), decision(stale)); !slices.Equal(got, []string{"main/0 age_us"}) {
		t.Errorf("0 and 50 ms: %v", got)
	}
	blind.Inflight = live.Inflight
	if got := differingSignals(decision(blind), decision(stale)); len(got) != 0 {
		t.Errorf("unread and 50 ms: %v", got)
	}
}
