package tier

import "blis/pkg/kv"

// A store can lie below another one: its blocks come from there, and go there before they are loaded. It has the blocks
// of each transfer in the order of these, and does not know which requests use them.

// Evicted are blocks that a store has evicted, from the first one on if Forward, else from the last one on.
type Evicted struct {
	Extent
	Forward bool
}

// NewLower returns an empty store that lies below others. The blocks used least recently go first.
func NewLower(tree *kv.Tree, blocks int) *Store {
	s := NewStore(tree, blocks, Evictions[0])
	s.forgets = false // one above may still have what no prompt can have any more
	return s
}

// Remember lets the store know blocks that no prompt can have any more, since they may be offered again.
func (s *Store) Remember() { s.forgets = false }

// KeepEvicted lets the store note what it evicts.
func (s *Store) KeepEvicted() { s.keepsEvicted, s.forgets = true, false }

func (s *Store) noteEvicted(x Extent, forward bool) {
	s.notifyEvicted(x)
	if s.keepsEvicted {
		s.tree.Ref(x.Node)
		s.evicted = append(s.evicted, Evicted{x, forward})
	}
}

// Evicted returns what the store has evicted since the last DropEvicted, in that order.
func (s *Store) Evicted() []Evicted { return s.evicted }

// DropEvicted drops what Evicted returns.
func (s *Store) DropEvicted() {
	for _, x := range s.evicted {
		s.tree.Unref(x.Node)
	}
	s.evicted = s.evicted[:0]
}

// Readable returns how many of blocks lo to hi of a path the store has, up to the first that it lacks or that is being
// stored.
func (s *Store) Readable(path kv.Path, blockSize, lo, hi int32) int32 {
	at := lo
	s.scratch = extents(s.scratch[:0], path, blockSize, lo, hi)
	for _, x := range s.scratch {
		for r := s.from(s.know(x.Node), at); r != none && at < x.Hi; r = s.runs[r].following {
			q := &s.runs[r]
			if q.Lo > at || q.state%reader == storing {
				break
			}
			at = min(q.Hi, x.Hi)
		}
		if at < x.Hi {
			break
		}
	}
	return at - lo
}

// Protect prevents the eviction of blocks lo to hi of a path until Unprotect. It returns how many of them could have
// been evicted.
func (s *Store) Protect(path kv.Path, blockSize, lo, hi int32) (n int32) {
	s.scratch = extents(s.scratch[:0], path, blockSize, lo, hi)
	for _, x := range s.scratch {
		s.each(x, func(r int32) {
			if y := &s.runs[r]; y.state == ready {
				y.state = offered
				n += y.Hi - y.Lo
			}
		})
	}
	return n
}

// Unprotect undoes Protect.
func (s *Store) Unprotect(path kv.Path, blockSize, lo, hi int32) {
	s.scratch = extents(s.scratch[:0], path, blockSize, lo, hi)
	s.unkeep(s.scratch)
}

// Promote begins to store x, a block that the store lacks, from a tier below for u. It returns false if there is no
// room for it. Own is how many blocks are protected.
func (s *Store) Promote(u *User, x Extent, own int32) bool {
	missing := []Extent{x}
	s.numberOf(u)
	s.eviction.missed(s, u, missing)
	u.seen.add(x.Lo, x.Hi)
	refused := s.stats.Refused
	if !s.makeRoom(1, own) {
		s.stats.Refused = refused // it is not offered
		return false
	}
	u.specials().promoted.add(x.Lo, x.Hi)
	s.eviction.insert(s, u, missing)
	return true
}

// Promoted returns how many of blocks lo to hi were promoted for u.
func (u *User) Promoted(lo, hi int32) (n int32) {
	if u.special == nil {
		return 0
	}
	n = hi - lo
	u.special.promoted.without(lo, hi, func(a, b int32) { n -= b - a })
	return n
}

// occupy begins a use of run r in a state, or by a reader.
func (s *Store) occupy(r int32, as state) {
	if x := &s.runs[r]; x.state == ready {
		s.idle -= x.Hi - x.Lo
	}
	s.runs[r].state += as
}

// Read begins to copy the blocks of a list to another tier. They cannot be evicted until EndRead.
func (s *Store) Read(list []Extent) {
	for _, x := range list {
		s.each(x, func(r int32) { s.occupy(r, reader) })
		s.merge(x)
	}
}

// EndRead undoes Read.
func (s *Store) EndRead(list []Extent) {
	for _, x := range list {
		s.idle += s.ready(x, func(before state) state { return before - reader })
	}
}

// Renew makes the blocks of a list those that are evicted last.
func (s *Store) Renew(list []Extent) {
	k := s.rankIn(0, s.nextNumber(), false)
	for _, x := range list {
		s.each(x, func(r int32) { s.move(r, k) })
		s.merge(x)
	}
	s.dropRank(k)
}

// Copy begins to store those blocks of a list that the store lacks, all at one place in the order of eviction, and
// returns them. If it has no room for all of them, it stores none.
func (s *Store) Copy(list []Extent) (missing []Extent) {
	missing, ok := s.roomFor(list)
	if ok && len(missing) > 0 {
		k := s.rankIn(0, s.nextNumber(), false)
		for _, x := range missing {
			s.insert(x, storing, k)
		}
	}
	return missing
}

// CopyEvicted is Copy of blocks that were evicted, which are evicted in the same order here.
func (s *Store) CopyEvicted(list []Evicted) (missing []Extent) {
	all := make([]Extent, len(list))
	for i, x := range list {
		all[i] = x.Extent
	}
	missing, ok := s.roomFor(all)
	if !ok {
		return nil
	}
	for _, x := range list {
		k := s.rankIn(0, s.nextNumber(), x.Forward)
		lacking, _, _ := s.compare([]Extent{x.Extent})
		for _, y := range lacking {
			s.insert(y, storing, k)
		}
		s.spareLists = append(s.spareLists, lacking[:0])
		s.dropRank(k)
	}
	return missing
}

// roomFor makes room for those blocks of a list that the store lacks, and returns them. Without room for all of them it
// returns false and none.
func (s *Store) roomFor(list []Extent) (missing []Extent, ok bool) {
	missing, own, _ := s.compare(list)
	n := Blocks(missing)
	if n == 0 {
		return nil, true
	}
	if own > 0 && s.lack(n) > s.unreachableFirst() {
		s.keep(list)
		defer s.unkeep(list)
	}
	if !s.makeRoom(n, own) {
		s.spareLists = append(s.spareLists, missing[:0])
		return nil, false
	}
	return missing, true
}
