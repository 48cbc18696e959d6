package kv

import (
	"slices"
	"testing"
)

// fenced is a cache of ten blocks of one token, with fences.
type fenced struct {
	*Cache
	tree *Tree
}

func newFenced() fenced {
	tree := NewTree()
	f := fenced{NewCache(tree, Config{Blocks: 10, BlockSize: 1, Caching: true}), tree}
	f.KeepFences()
	return f
}

// open opens a sequence and looks up its prompt.
func (f fenced) open(id string, prompt ...Segment) (s Seq, n int) {
	for _, x := range prompt {
		n += x.Tokens
	}
	s = f.Open(f.tree.Resolve(nil, prompt, n, id), n)
	f.Lookup(s, n)
	return s, n
}

func (f fenced) admit(t *testing.T, id string, prompt ...Segment) Seq {
	t.Helper()
	s, n := f.open(id, prompt...)
	if !f.Admit(s, n, n, 0) {
		t.Fatalf("%s is not admitted", id)
	}
	return s
}

// TestMarksBehindHit publishes blocks behind a hit that another sequence has marked: they are not its blocks.
func TestMarksBehindHit(t *testing.T) {
	f := newFenced()
	a := f.admit(t, "a", Segment{"p", 1}, Segment{"q", 1})
	b, n := f.open("b", Segment{"p", 4})
	if !f.Hold(b, n, 0) {
		t.Fatal("b gets no blocks")
	}
	marked := f.Mark(a, 0, 2)
	f.Close(a)
	f.Publish(b, n)
	f.Retake(b)
	if want := marked[:1]; !slices.Equal(f.TakenMarks(), want) || want[0].Hi != 1 {
		t.Errorf("b takes %v of %v, want the first block", f.TakenMarks(), marked)
	}
}

// TestMarksOfSharedBlocks marks blocks that are read already for two sequences. When they are read for one of them, all
// who hit them wait for the last transfer.
func TestMarksOfSharedBlocks(t *testing.T) {
	f := newFenced()
	a, b := f.admit(t, "a", Segment{"p", 3}), f.admit(t, "b", Segment{"p", 2})
	f.Fence(a, 0, 3, 50)
	marks := [][]Marked{f.Mark(a, 0, 3), f.Mark(b, 0, 2)}
	f.Close(a)
	f.Close(b)
	f.admit(t, "c", Segment{"p", 2})
	for i, list := range marks {
		found := slices.ContainsFunc(f.TakenMarks(), func(x Marked) bool {
			return slices.ContainsFunc(list, func(y Marked) bool {
				return x.Mark == y.Mark && max(x.Lo, y.Lo) <= 0 && min(x.Hi, y.Hi) > 0
			})
		})
		if !found {
			t.Errorf("the first block of sequence %d, with %v, is not in %v", i, list, f.TakenMarks())
		}
	}
	if at := f.Fenced(0); at != 50 {
		t.Errorf("c waits until %d, want 50", at)
	}
	for _, m := range marks[1] {
		f.Resolve(m, 1, 2, 70)
	}
	f.DropMarks()
	for n, want := range map[int]int64{1: 50, 2: 70} {
		f.admit(t, "d", Segment{"p", n})
		if at := f.Fenced(0); at != want {
			t.Errorf("a hit of %d blocks waits until %d, want %d", n, at, want)
		}
	}
}
