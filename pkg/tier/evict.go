package tier

import (
	"cmp"
	"slices"

	"blis/pkg/kv"
)

// Evictions are the eviction policies.
var Evictions = []string{"lru", "arc", "lfu", "priority"}

// eviction says which blocks a full store loses. All methods may change the ranks of blocks.
type eviction interface {
	// missed: u offers blocks that the store lacks. use: u uses blocks of the store, and some of them maybe not for the
	// first time.
	missed(s *Store, u *User, missing []Extent)
	use(s *Store, u *User, x Extent)
	// evict removes n idle blocks, of which there must be that many.
	evict(s *Store, n int32)
	insert(s *Store, u *User, list []Extent)
	finish(s *Store, u *User, path kv.Path, blockSize int32)
	// clear removes all blocks that the eviction itself has.
	clear()
	clone(tree *kv.Tree) eviction
}

func newEviction(s *Store, policy string) eviction {
	switch policy {
	case "arc":
		return newAdaptive(s)
	case "lfu":
		return &byKey{count: true}
	case "priority":
		return &byKey{priority: true}
	}
	e := &byKey{}
	e.list(s, 0)
	return e
}

// byKey evicts the blocks with the lowest key, and of equal ones those of the request that used them least recently
// (LRUCachePolicy): its blocks share a rank, which is set when it first uses one and renewed when it ends. The key of
// lru is always 0, that of lfu the number of requests that have used the block since it was stored, that of priority
// the priority of the last one.
type byKey struct {
	count, priority bool
	// keys are those of the store's lists, ascending the indexes of these in that order.
	keys      []float64
	ascending []int32
}

func (*byKey) missed(*Store, *User, []Extent) {}

func (*byKey) clear() {}

// list returns the list with a key.
func (e *byKey) list(s *Store, key float64) int32 {
	if s.lru && len(e.keys) > 0 {
		return 0
	}
	at, found := slices.BinarySearchFunc(e.ascending, key, func(list int32, key float64) int {
		return cmp.Compare(e.keys[list], key)
	})
	if !found {
		e.keys, e.ascending = append(e.keys, key), slices.Insert(e.ascending, at, s.addList())
	}
	return e.ascending[at]
}

// keyed returns the list of a block that u uses, which is in another one so far, for the first time if it is new to u.
func (e *byKey) keyed(s *Store, u *User, list int32, isNew bool) int32 {
	switch {
	case e.priority:
		return e.list(s, u.Priority)
	case e.count && isNew:
		return e.list(s, e.keys[list]+1)
	}
	return list
}

// use gives blocks that are new to u its rank if that is higher (LRUCachePolicy.on_request_access).
func (e *byKey) use(s *Store, u *User, x Extent) {
	if s.lru && u.seen.none() {
		s.each(x, func(r int32) {
			if s.ranks[s.runs[r].rank].number <= u.number {
				s.move(r, u.rank)
			}
		})
		return
	}
	u.seen.without(x.Lo, x.Hi, func(lo, hi int32) {
		s.each(Extent{x.Node, lo, hi}, func(r int32) {
			before := s.ranks[s.runs[r].rank]
			switch list := e.keyed(s, u, before.list, true); {
			case before.number <= u.number:
				s.move(r, s.rankOf(u, list))
			case list != before.list:
				s.move(r, s.rankIn(list, before.number, false))
			}
		})
	})
}

// rankOf returns the rank of u in a list.
func (s *Store) rankOf(u *User, list int32) int32 {
	if s.lru {
		return u.rank // it owns that
	}
	if k := u.rank; int(k) >= len(s.ranks) || s.ranks[k].number != u.number || s.ranks[k].list != list {
		u.rank = s.rankIn(list, u.number, false)
	}
	return u.rank
}

func (e *byKey) evict(s *Store, n int32) {
	for _, list := range e.ascending {
		if n -= s.take(list, n, s.noteEvicted); n == 0 {
			return
		}
	}
}

func (e *byKey) insert(s *Store, u *User, list []Extent) {
	key := 0.0
	switch {
	case e.count:
		key = 1
	case e.priority:
		key = u.Priority
	}
	in := e.list(s, key)
	for _, x := range list {
		s.table.insert(x, storing, s.rankOf(u, in))
	}
}

// finish renews the rank of all blocks that u has stored, loaded or offered. Of those that no prompt can have any more
// only the number is kept.
func (e *byKey) finish(s *Store, u *User, path kv.Path, blockSize int32) {
	if !u.Used() {
		return
	}
	next := s.nextNumber()
	if s.lru {
		all := s.hasAll(u)
		s.raise(u.rank, next)
		s.finishTail(u)
		if all {
			s.forgetUnreachable(u.rank)
			s.disown(u)
			return
		}
	}
	u.seen.each(func(lo, hi int32) {
		list := extents(s.scratch[:0], path, blockSize, lo, hi)
		s.scratch = list
		for _, x := range list {
			s.know(x.Node)
			forgets := s.forgets && s.tree.Unreachable(x.Node)
			s.each(x, func(r int32) {
				if from := s.runs[r].rank; forgets && s.runs[r].state == ready {
					s.release(r, &s.ranks[u.rank].unreachable)
					s.dropRank(from)
					return
				}
				list := e.keyed(s, u, s.ranks[s.runs[r].rank].list, false)
				to := u.rank
				if !s.lru {
					to = s.rankIn(list, next, false)
				}
				s.move(r, to)
			})
			s.merge(x)
		}
	})
	s.disown(u)
}

// hasAll reports whether the rank of u, for lru, is that of all blocks that u has used outside its tail. Raising the
// rank then renews them all: mostly no other request has used them since, and none must be looked up.
func (s *Store) hasAll(u *User) bool {
	n := int32(0)
	u.seen.each(func(lo, hi int32) { n += hi - lo })
	return n == s.ranks[u.rank].blocks
}

// forgetUnreachable keeps only the number of those blocks of a rank that no prompt can have any more.
func (s *Store) forgetUnreachable(rank int32) {
	if !s.forgets || !s.ranks[rank].unnamed {
		return
	}
	for r := s.ranks[rank].first; r != none; {
		x := &s.runs[r]
		following := x.next
		if x.state == ready && s.tree.Unreachable(x.Node) {
			s.release(r, &s.ranks[rank].unreachable)
		}
		r = following
	}
}

// disown drops the rank of u, whose request has left.
func (s *Store) disown(u *User) {
	if u.number != 0 && s.lru {
		s.ranks[u.rank].owned = false
		s.dropRank(u.rank)
	}
}

func (e *byKey) clone(*kv.Tree) eviction {
	c := *e
	c.keys, c.ascending = slices.Clone(e.keys), slices.Clone(e.ascending)
	return &c
}
