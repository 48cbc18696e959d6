package tier

import "blis/pkg/kv"

// A user grows while it only adds blocks behind all others of the last node of its path. The store then counts its
// blocks, but does not know them: they are looked up when another user needs the node or an eviction comes to the
// rank of the user (Growers), and all at once when it stops.

// Growers sets the function that must call StopGrowing for the user with an id.
func (s *Store) Growers(stop func(id int32)) { s.stop = stop }

// Grow begins the growth of u, whose next block is from, and returns the node. It returns false if others may have
// blocks there, u has used none, or the store does not evict by lru.
func (s *Store) Grow(id int32, u *User, path kv.Path, blockSize, from int32) (kv.Node, bool) {
	last := len(path) - 1
	node := path[last].Node
	if !s.lru || u.number == 0 || last > 0 && path[last-1].End/blockSize > from {
		return 0, false
	}
	if s.endsInTail(u, Extent{node, from, from}) {
		s.ranks[u.rank].grower, s.ranks[u.rank].growsTail = id+1, true
		return node, true
	}
	r := s.tail(node)
	if r != none && s.runs[r].Hi > from || s.nodes.find(node).grower != none {
		return 0, false
	}
	s.tree.NoteTiered(node)
	s.nodes.add(node).grower, s.ranks[u.rank].grower = id, id+1
	return node, true
}

// Named reports whether later prompts can have the blocks of a node.
func (s *Store) Named(n kv.Node) bool { return s.tree.Named(n) }

// HasRoom reports whether n blocks of growing users fit, if others are evicted.
func (s *Store) HasRoom(n int32) bool { return s.lack(n) <= s.idle }

// Add counts n new blocks of growing users, which are being stored and fit.
func (s *Store) Add(n int32) { s.makeRoom(n, 0) }

// Added ends the stores of n blocks of growing users, whether they still grow or not.
func (s *Store) Added(n int32) { s.idle += n }

// StopGrowing ends the growth of u. Blocks lo to hi, which it has added to the node, are stored up to the one given.
func (s *Store) StopGrowing(u *User, node kv.Node, lo, stored, hi int32) {
	k := u.rank
	s.ranks[k].grower = 0
	if s.ranks[k].growsTail {
		s.ranks[k].growsTail = false
		s.growTail(u, node, lo, stored, hi)
		return
	}
	at := s.nodes.find(node)
	last := at.last
	at.grower = none
	switch {
	case lo < hi:
		u.seen.add(lo, hi)
	case last == none:
		s.nodes.drop(at)
	}
	if lo < stored && !s.extend(last, lo, stored, k) {
		s.insert(Extent{node, lo, stored}, ready, k)
	}
	for at := max(lo, stored); at < hi; at++ {
		s.insert(Extent{node, at, at + 1}, storing, k)
	}
}

// extend adds ready blocks with a rank to a node, if they can be of r, its last run or none.
func (s *Store) extend(r, lo, hi, rank int32) bool {
	if r == none {
		return false
	}
	x := &s.runs[r]
	if x.Hi != lo || x.state != ready || x.rank != rank {
		return false
	}
	x.Hi = hi
	s.ranks[rank].blocks += hi - lo
	s.lists[0].blocks += hi - lo
	return true
}

// Ready notes that a block is stored that Added has counted, of a user with this Rank.
func (s *Store) Ready(x Extent, rank int32) {
	if !s.storedTail(x, rank) {
		s.ready(x, func(state) state { return ready })
	}
}

// know stops the growth in a node and returns its ends.
func (s *Store) know(n kv.Node) *ends {
	at := s.nodes.find(n)
	if at.grower == none {
		return at
	}
	s.stop(at.grower)
	return s.nodes.find(n)
}
