package sim

import (
	"blis/pkg/policy"
	"reflect"
	"testing"
)

// TestExactRegretOfStatefulPolicies: a fork with one decision replaced, as exact regret runs it, gives the
// same results as the whole run with that decision replaced by force. So a fork continues with the
// variables and random numbers that the policies had at that moment.
func TestExactRegretOfStatefulPolicies(t *testing.T) {
	stateful := uint64(len(forkPlanes) - 1)
	compared, changed := 0, 0
	for i := range uint64(50) {
		seed := stateful + i*uint64(len(forkPlanes))
		c, k, classes := forkCase(t, seed)
		actual, want := k.start(t, c, classes)
		if actual.finishForTest() != nil {
			continue // a livelock
		}
		for part := range int64(4) {
			s, _ := k.start(t, c, classes)
			s.events.limit = actual.events.count * part / 4
			must(s.run(func() error { return nil }))
			replace := override{decision: s.decisions.count + part, verdict: policy.Verdict{Action: policy.Reject}}
			got := &results{}
			f := s.fork(got)
			f.decisions.override = replace
			must(s.finishForTest()) // what it changes must not be the fork's
			forced, all := k.start(t, c, classes)
			forced.decisions.override = replace
			if forced.finishForTest() != nil || f.finishForTest() != nil {
				continue
			}
			for position, r := range got.byPosition {
				if r != (result{}) && r != all.byPosition[position] {
					t.Fatalf("seed %d, decision %d: request %d has %+v in the fork and %+v by force", seed,
						replace.decision, position, r, all.byPosition[position])
				}
			}
			compared++
			if !reflect.DeepEqual(all.byPosition, want.byPosition) {
				changed++
			}
		}
	}
	if compared < 100 || changed < 50 {
		t.Errorf("%d comparisons, of which %d differ from the actual run", compared, changed)
	}
}
