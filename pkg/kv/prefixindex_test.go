package kv

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestPrefixIndexMatchesCaches sends random prompts through several caches, some of whose blocks are
// invalidated, and expects of the index what each cache finds, also after a change to clones.
func TestPrefixIndexMatchesCaches(t *testing.T) {
	var hits, holes int
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 3))
		tree, size := NewTree(), 1+r.IntN(4)
		h, caches := NewPrefixIndex(size), make([]*Cache, 1+r.IntN(7))
		for i := range caches {
			caches[i] = NewCache(tree, Config{Blocks: 4 + r.IntN(30), BlockSize: size, Caching: true})
			h.Watch(int32(i), caches[i])
		}
		for step := range 300 {
			if step == 150 { // go on with clones
				tree, h = tree.Clone(), h.Clone()
				for i := range caches {
					caches[i] = caches[i].Clone(tree)
					h.Watch(int32(i), caches[i])
				}
			}
			var segments []Segment
			total := 0
			for range 1 + r.IntN(3) {
				n := 1 + r.IntN(12)
				segments = append(segments, Segment{fmt.Sprint(r.IntN(3)), n})
				total += n
			}
			path := tree.Resolve(nil, segments, total+r.IntN(5), fmt.Sprint("r", step))
			upto := 1 + r.IntN(total+4)
			got := h.Match(path, upto)
			for i, c := range caches {
				want := c.Match(path, upto) / size
				if int(got[i]) != want {
					t.Fatalf("seed %d, step %d: cache %d holds %d blocks, want %d", seed, step, i, got[i], want)
				}
				hits += want
			}
			c := caches[r.IntN(len(caches))]
			if r.IntN(4) > 0 {
				c.Touch(path, upto)
			} else {
				lo := int32(r.IntN(3))
				c.Invalidate(path[r.IntN(len(path))].Node, lo, lo+1+int32(r.IntN(3)))
				holes++
			}
			tree.Drop(path)
		}
		used := 0
		for _, k := range h.heads {
			for ; k != none; k = h.chunks[k].next {
				used++
			}
		}
		for k := h.spare; k != none; k = h.chunks[k].next {
			used++
		}
		if used != len(h.chunks) {
			t.Fatalf("seed %d: %d of %d chunks are in a list", seed, used, len(h.chunks))
		}
	}
	if hits < 10000 || holes < 1000 {
		t.Errorf("%d hits and %d invalidations are too few", hits, holes)
	}
}
