package attribution

import "testing"

// TestActiveSlots: max_num_active_seqs is the limit of the batch slots if it is set.
func TestActiveSlots(t *testing.T) {
	var d deployment
	d.Engine.MaxNumSeqs = 9
	if d.slots() != 9 || d.slotLimit() != "max_num_seqs" {
		t.Errorf("%d slots by %s", d.slots(), d.slotLimit())
	}
	d.Engine.MaxNumActiveSeqs = 4
	if d.slots() != 4 || d.slotLimit() != "max_num_active_seqs" {
		t.Errorf("%d slots by %s", d.slots(), d.slotLimit())
	}
}
