package metrics

import (
	"testing"

	"blis/pkg/stream"
)

// TestTransfersOfRunsAndOfSelectedRequests: two transfers ended, the second after its request had left. A run counts
// both. Selected requests have only outcomes, so that the bytes and the times of transfers are unknown.
func TestTransfersOfRunsAndOfSelectedRequests(t *testing.T) {
	transferred := stream.Outcome{State: stream.StateTimedOut, EndedUS: 30, CompletedUS: stream.Never}
	transferred.ClearPrefill()
	aborted := transferred
	transferred.PrefillReplica, transferred.PrefilledUS = 0, 10
	transferred.TransferStartedUS, transferred.TransferredUS, transferred.TransferBlocks = 10, 15, 4
	aborted.PrefillReplica, aborted.PrefilledUS, aborted.TransferStartedUS, aborted.TransferBlocks = 0, 20, 20, 7
	run, selected := New(testClasses), New(testClasses)
	for _, a := range []*Accumulator{run, selected} {
		a.Add(&transferred)
		a.Add(&aborted)
	}
	run.AddTransfer(5, 4, 400)
	run.AddTransfer(9, 7, 700)
	run.AddReplica(ReplicaTotals{Pool: PrefillPool})
	x, y := run.Raw().PD, selected.Raw().PD
	if x.Transfers != 2 || x.TransferredBlocks != 11 || *x.TransferredBytes != 1100 || x.Transfer.Count != 2 {
		t.Errorf("of the run: %+v", x)
	}
	if y.Transfers != 1 || y.TransferredBlocks != 4 || y.TransferredBytes != nil || y.Transfer != nil {
		t.Errorf("of selected requests: %+v", y)
	}
}
