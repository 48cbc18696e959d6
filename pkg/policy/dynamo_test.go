package policy

import (
	"testing"

	"blis/pkg/kv"
)

// TestActiveBlocks: full blocks of 16 tokens, each once for all requests that share it.
func TestActiveBlocks(t *testing.T) {
	tree := kv.NewTree()
	document := kv.Segment{ID: "document", Tokens: 40}
	first := tree.Resolve(nil, []kv.Segment{document}, 40, "a")
	second := tree.Resolve(nil, []kv.Segment{document, {ID: "question", Tokens: 24}}, 64, "b")
	a := NewActiveBlocks([]int{16, 16})
	stats := make([]Stats, 2)
	both := []Replica{{Index: 0, Stats: &stats[0]}, {Index: 1, Stats: &stats[1]}}
	check := func(what string, blocks, shared int) {
		t.Helper()
		a.Match(second, 64, both)
		if have, want := stats[0].Active, (ActiveMatch{blocks, shared, 16}); have != want {
			t.Errorf("%s: %+v, want %+v", what, have, want)
		}
		if have, want := stats[1].Active, (ActiveMatch{0, 0, 16}); have != want {
			t.Errorf("%s: replica 1 has %+v, want %+v", what, have, want)
		}
	}
	check("idle", 0, 0)
	a.Add(0, first, 40)
	check("the document", 2, 2)
	a.Add(0, second, 64)
	check("and a question", 4, 4)
	clone := a.Clone()
	a.Remove(0, first, 40)
	check("without the first", 4, 4)
	a.Remove(0, second, 64)
	check("idle again", 0, 0)
	if n := len(clone.holders[0]); n != 4 {
		t.Errorf("the clone has %d blocks, want 4", n)
	}
}
