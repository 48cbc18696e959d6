package metrics

import (
	"testing"

	"blis/pkg/stream"
)

// TestServerRejected: rejections by servers are counted apart from those by admission.
func TestServerRejected(t *testing.T) {
	var some, all totals
	for _, reason := range []string{stream.ReasonQueuedReqs, stream.ReasonAdmission, stream.ReasonQueuedTokens} {
		some.count(&stream.Outcome{State: stream.StateRejected, Reason: reason, AdmittedUS: stream.Never})
	}
	all.add(&some)
	all.add(&some)
	if r := all.requests; r.Rejected != 6 || r.ServerRejected != 4 {
		t.Errorf("%d rejected, %d of them by servers, want 6 and 4", r.Rejected, r.ServerRejected)
	}
}
