package attribution

import (
	"testing"

	"blis/pkg/stream"
)

// TestScalingRegrets: the best alternative of a change is the one with most targets met, then with the lowest E2E, and
// none within the sensitivity of the run or worse than the run. Changes with most to gain are first.
func TestScalingRegrets(t *testing.T) {
	a := New(&stream.Header{})
	alternative := func(change string, gained, lost int64, e2e float64, insensitive bool) stream.ScalingAlternative {
		return stream.ScalingAlternative{Change: change, Insensitive: insensitive,
			All: &stream.Difference{SLOGained: gained, SLOLost: lost, E2EMS: e2e}}
	}
	for _, g := range []stream.ScalingRegret{
		{Decision: "worse", Alternatives: []stream.ScalingAlternative{alternative("earlier", 0, 1, 50, false),
			alternative("later", 9, 0, 9, true)}},
		{Decision: "e2e", Alternatives: []stream.ScalingAlternative{alternative("earlier", 2, 2, 5, false),
			alternative("later", 0, 0, 6, false)}},
		{Decision: "targets", Alternatives: []stream.ScalingAlternative{alternative("earlier", 3, 1, -100, false),
			alternative("later", 1, 0, 6, false), alternative("never", 3, 1, -99, false)}},
	} {
		a.ScalingRegret(&g)
	}
	all := a.worstScaling()
	if all[0].Decision != "targets" || all[0].Best.Change != "never" || all[1].Decision != "e2e" ||
		all[1].Best.Change != "later" || all[2].Decision != "worse" || all[2].Best != nil {
		t.Errorf("%+v", all)
	}
}
