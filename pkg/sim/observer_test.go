package sim

import (
	"bytes"
	"testing"

	"blis/pkg/internal/reference"
	"blis/pkg/stream"

	gocmp "github.com/google/go-cmp/cmp"
)

// TestObserversDoNotChangeTheRun: the outcomes of a run are the same with all observers, with none
// but those of outcomes, and in a run that does not write any.
func TestObserversDoNotChangeTheRun(t *testing.T) {
	for seed := range uint64(10 * len(forkPlanes)) {
		c, _, _ := forkCase(t, seed)
		_, requests := reference.RandomSessions(seed)
		run := func(o Options) ([]stream.Outcome, stream.Counts) {
			o.Plain, o.Seed, o.Clairvoyant = true, 7, seed%3 == 0
			var out bytes.Buffer
			if runLoaded(t.Context(), c, bytes.NewReader(workloadOf(requests)), &out, o) != nil {
				return nil, stream.Counts{} // a livelock
			}
			r := stream.NewReader(bytes.NewReader(out.Bytes()))
			for r.Next() {
			}
			must(r.Err())
			return readOutcomes(t, out.Bytes()), *r.End().Requests
		}
		outcomes, counts := run(Options{Trace: "decisions"})
		if counts.Offered == 0 {
			continue
		}
		all := Options{Trace: "full", Check: true}
		must(all.Counterfactual.UnmarshalText([]byte("exact:3")))
		watched, watchedCounts := run(all)
		_, minimalCounts := run(Options{Trace: "minimal"})
		if diff := gocmp.Diff(outcomes, watched); diff != "" {
			t.Errorf("seed %d: without (-) and with all observers (+):\n%s", seed, diff)
		}
		if counts != watchedCounts || counts != minimalCounts {
			t.Errorf("seed %d: %+v, with all observers %+v, with none %+v", seed, counts, watchedCounts, minimalCounts)
		}
	}
}
