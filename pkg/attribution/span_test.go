package attribution

import (
	"fmt"
	"testing"
)

// TestReplicasForTheArrivalsMeanwhile: nine requests are served at once. A minute later twelve come in 11 ms, all of
// which have ended after 18 ms: 1.25 · (12/11) / (12/18) = 2.05 replicas. The nine do not count.
func TestReplicasForTheArrivalsMeanwhile(t *testing.T) {
	a := New(header(1))
	for i := range int64(9) {
		o := served(fmt.Sprint("early", i), 0, i, 0)
		a.Outcome(&o, false)
	}
	for i := range int64(12) {
		o := served(fmt.Sprint("late", i), 0, 60_000+i, 7)
		a.Outcome(&o, false)
	}
	x := &proposal{a, &Pattern{losing: a.requests.list()[9:]}, &Findings{}}
	changes := x.moreReplicas()
	if len(changes) != 1 || changes[0].To != 3.0 {
		t.Errorf("%+v", changes)
	}
}
