package tier

import (
	"slices"

	"blis/pkg/kv"
)

// adaptive is vLLM's arc (vllm/v1/kv_offload/cpu/policies/arc.py in 0.33): blocks that one request has used, and
// those that several have, are in lists of their own. Misses of blocks that were evicted lately from one of them
// make that one larger.
type adaptive struct {
	// target is the size of the list of blocks that one request has used.
	target float64
	// ghosts are the blocks evicted lately, in lists as the store's.
	ghosts table
}

// The lists of the store and the ghosts.
const (
	once int32 = iota
	several
)

func newAdaptive(s *Store) *adaptive {
	a := &adaptive{ghosts: newTable(s.tree)}
	for _, t := range []*table{&s.table, &a.ghosts} {
		t.addList()
		t.addList()
	}
	return a
}

// missed adapts the target to ghosts among the blocks that u misses for the first time, the last one first
// (_adapt_to_ghost_hit).
func (a *adaptive) missed(s *Store, u *User, missing []Extent) {
	var hits []int32
	use := u.specials()
	for _, x := range missing {
		use.missing.without(x.Lo, x.Hi, func(lo, hi int32) {
			a.ghosts.each(Extent{x.Node, lo, hi}, func(r int32) { hits = append(hits, r) })
		})
		use.missing.add(x.Lo, x.Hi)
	}
	number := s.nextNumber()
	for _, r := range slices.Backward(hits) {
		x := &a.ghosts.runs[r]
		list := a.ghosts.ranks[x.rank].list
		delta := max(1, float64(a.ghosts.lists[1-list].blocks)/float64(a.ghosts.lists[list].blocks))
		for range x.Hi - x.Lo {
			if list == once {
				a.target = min(a.target+delta, float64(s.total))
			} else {
				a.target = max(a.target-delta, 0)
			}
		}
		a.ghosts.move(r, a.ghosts.rankIn(list, number, false))
	}
}

// use notes which blocks u uses that it has not stored.
func (*adaptive) use(_ *Store, u *User, x Extent) {
	use := u.specials()
	use.inserted.without(x.Lo, x.Hi, use.reused.add)
}

// evict takes blocks of the first list while it is not smaller than its target, then of the second one.
func (a *adaptive) evict(s *Store, n int32) {
	take := func(list, most int32) {
		n -= s.take(list, min(n, most), func(x Extent, forward bool) {
			a.ghosts.insert(x, ready, a.ghosts.rankIn(list, s.nextNumber(), forward))
			s.noteEvicted(x, forward)
		})
	}
	take(once, s.lists[once].blocks-int32(a.target)+1)
	take(several, n)
	take(once, n)
	for list := range a.ghosts.lists {
		a.ghosts.take(int32(list), a.ghosts.lists[list].blocks-s.total, func(Extent, bool) {})
	}
}

// insert adds blocks, the first one first, to those that one request has used.
func (a *adaptive) insert(s *Store, u *User, list []Extent) {
	number := s.nextNumber()
	for _, x := range list {
		a.ghosts.each(x, func(r int32) {
			rank := a.ghosts.runs[r].rank
			a.ghosts.remove(r)
			a.ghosts.dropRank(rank)
		})
		s.table.insert(x, storing, s.rankIn(once, number, true))
		u.specials().inserted.add(x.Lo, x.Hi)
	}
}

// finish moves the blocks that u has used to the ends of the lists, the last one first: those that others had stored
// to that of blocks that several requests have used.
func (a *adaptive) finish(s *Store, u *User, path kv.Path, blockSize int32) {
	number := s.nextNumber()
	renew := func(lo, hi int32, to func(list int32) int32) {
		for _, x := range extents(nil, path, blockSize, lo, hi) {
			s.each(x, func(r int32) { s.move(r, s.rankIn(to(s.ranks[s.runs[r].rank].list), number, false)) })
			s.merge(x)
		}
	}
	use := u.specials()
	use.reused.each(func(lo, hi int32) { renew(lo, hi, func(int32) int32 { return several }) })
	use.inserted.each(func(lo, hi int32) {
		use.reused.without(lo, hi, func(lo, hi int32) { renew(lo, hi, func(list int32) int32 { return list }) })
	})
}

func (a *adaptive) clear() { a.ghosts.clear() }

func (a *adaptive) clone(tree *kv.Tree) eviction {
	return &adaptive{a.target, a.ghosts.clone(tree)}
}
