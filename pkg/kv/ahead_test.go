package kv

import "testing"

// TestAdmitAhead: a sequence gets the blocks of tokens yet to come, too, and only blocks of known tokens can be hit.
// Without room for all of them it gets none.
func TestAdmitAhead(t *testing.T) {
	f := newFenced()
	a, _ := f.open("a", Segment{"p", 4})
	free := f.Free()
	if f.AdmitAhead(a, 3, 6, 4, free-5) || f.Free() != free {
		t.Errorf("6 of %d blocks where %d must stay free: %d are free then", free, free-5, f.Free())
	}
	f.Lookup(a, 4)
	if !f.AdmitAhead(a, 3, 6, 4, free-6) || f.Free() != free-6 {
		t.Errorf("%d of %d blocks are free, want 6 fewer", f.Free(), free)
	}
	b, n := f.open("b", Segment{"p", 4})
	if hit := f.Lookup(b, n); hit != 3 {
		t.Errorf("%d known tokens are hit, want 3", hit)
	}
}
