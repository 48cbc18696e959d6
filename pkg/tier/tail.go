package tier

import "blis/pkg/kv"

// tail is blocks lo to hi of a node that one request alone can have. They have the rank of that request, and come after
// all other blocks of it. Those before ready are stored, the others are being stored. The store counts them, but has no
// runs of them until a caller needs these. An empty tail is none.
type tail struct {
	node          kv.Node
	lo, ready, hi int32
}

func (t *tail) empty() bool { return t.lo == t.hi }

// has reports whether blocks of x are in the tail.
func (t *tail) has(x Extent) bool { return t.node == x.Node && t.lo <= x.Lo && x.Hi <= t.hi }

// KeepTails lets the store have tails, unless its eviction needs to know all blocks.
func (s *Store) KeepTails() { s.keepsTails = s.lru }

// NoRank is the rank of no user.
const NoRank = none

// Rank returns what Stored and Ready need to find the tail of u.
func (u *User) Rank() int32 { return u.rank }

// tailOf returns the tail of u, which has a rank.
func (s *Store) tailOf(u *User) *tail { return &s.ranks[u.rank].tail }

// endsInTail reports whether x, the next blocks of u, which are in the last node of its path, can be in its tail.
func (s *Store) endsInTail(u *User, x Extent) bool {
	if !s.keepsTails || s.tree.Named(x.Node) {
		return false
	}
	return u.number != 0 && !s.tailOf(u).empty() || !s.tree.Tiered(x.Node)
}

// addTail adds x, which is being stored and counted as used, to the tail of u.
func (s *Store) addTail(u *User, x Extent) {
	t := s.tailOf(u)
	if t.empty() {
		*t = tail{x.Node, x.Lo, x.Lo, x.Lo}
	}
	t.hi = x.Hi
	s.lists[0].blocks += x.Hi - x.Lo
}

// growTail adds blocks lo to hi of a node to the tail of u, which are stored up to the one given.
func (s *Store) growTail(u *User, node kv.Node, lo, stored, hi int32) {
	if lo == hi {
		return
	}
	s.addTail(u, Extent{node, lo, hi})
	if t := s.tailOf(u); t.ready == lo {
		t.ready = stored
	}
}

// storedTail notes that x is stored, if it is in the tail of a rank, and reports that.
func (s *Store) storedTail(x Extent, rank int32) bool {
	if !s.keepsTails || rank == NoRank || !s.ranks[rank].tail.has(x) {
		return false
	}
	t := &s.ranks[rank].tail
	t.ready = max(t.ready, x.Hi) // the end of an earlier store is sometimes noted later, at the same time
	return true
}

// Known gives the blocks of the tail of u runs, since its request may look them up.
func (s *Store) Known(u *User) {
	if u.number == 0 || !s.keepsTails {
		return
	}
	if t := *s.tailOf(u); !t.empty() {
		s.knowTail(u.rank)
		u.seen.add(t.lo, t.hi)
	}
}

// knowTail gives the blocks of the tail of a rank runs.
func (s *table) knowTail(rank int32) {
	t := s.ranks[rank].tail
	s.dropTail(rank)
	if t.lo < t.ready {
		s.insert(Extent{t.node, t.lo, t.ready}, ready, rank)
	}
	if t.ready < t.hi {
		s.insert(Extent{t.node, t.ready, t.hi}, storing, rank)
	}
}

// dropTail makes the tail of a rank empty.
func (s *table) dropTail(rank int32) {
	t := &s.ranks[rank].tail
	s.lists[s.ranks[rank].list].blocks -= t.hi - t.lo
	*t = tail{}
}

// finishTail ends the tail of u, whose rank is renewed. Of what no prompt can have any more only the number is kept.
func (s *Store) finishTail(u *User) {
	k := &s.ranks[u.rank]
	t := k.tail
	if t.empty() {
		return
	}
	if !s.forgets || !s.tree.Unreachable(t.node) {
		s.knowTail(u.rank)
		return
	}
	k.unreachable += t.ready - t.lo
	k.tail.lo = t.ready
	s.knowTail(u.rank)
}
