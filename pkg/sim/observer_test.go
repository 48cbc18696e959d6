package sim

import (
	"bytes"
	"strings"
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
			o.Plain, o.Seed = true, 7
			if seed%3 == 0 {
				o.Clairvoyant = stream.ClairvoyantGoals[seed%2]
			}
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

// TestCoastingKeepsBytes: where requests are far apart, so that replicas run many steps without an event, the
// records and metrics equal those of a run whose steps are all checked, which are events.
func TestCoastingKeepsBytes(t *testing.T) {
	steps := 0
	for seed := range uint64(12 * len(forkPlanes)) {
		c, _, _ := forkCase(t, seed)
		_, requests := reference.Random(seed)
		for i := range requests {
			later := requests[i].ArrivalUS * int64(seed%20)
			requests[i].ArrivalUS += later
			if requests[i].DeadlineUS > 0 {
				requests[i].DeadlineUS += later
			}
			requests[i].Output *= 1 + int(seed%4)
		}
		run := func(o Options) string {
			o.Plain, o.Seed, o.Trace, o.ITL = true, 7, "decisions", true
			var out bytes.Buffer
			if err := runLoaded(t.Context(), c, bytes.NewReader(workloadOf(requests)), &out, o); err != nil {
				return err.Error()
			}
			return out.String()
		}
		coasted, checked := run(Options{}), run(Options{Check: true})
		if diff := gocmp.Diff(strings.Split(checked, "\n"), strings.Split(coasted, "\n")); diff != "" {
			t.Errorf("seed %d: with events (-) and coasting (+):\n%s", seed, diff)
		}
		steps += strings.Count(coasted, `"itl_us"`)
	}
	if steps < 700 {
		t.Errorf("%d requests decoded, which is too few", steps)
	}
}
