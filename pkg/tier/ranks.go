package tier

// rankOf gives u a rank, above all others, unless it has one.
func (s *Store) rankOf(u *User) {
	if u.rank == 0 {
		u.rank = s.newRank() + 1
	}
}

// newRank returns a new rank above all others, with one user.
func (s *Store) newRank() int32 {
	s.numbers++
	x := rank{number: s.numbers, prev: s.highest, next: none, first: none, last: none, users: 1}
	k := int32(len(s.ranks))
	if last := len(s.spareRanks) - 1; last >= 0 {
		k, s.spareRanks = s.spareRanks[last], s.spareRanks[:last]
		s.ranks[k] = x
	} else {
		s.ranks = append(s.ranks, x)
	}
	if s.highest == none {
		s.lowest = k
	} else {
		s.ranks[s.highest].next = k
	}
	s.highest = k
	return k
}

// dropRank removes a rank that has neither users nor runs.
func (s *Store) dropRank(k int32) {
	x := &s.ranks[k]
	if x.users > 0 || x.first != none {
		return
	}
	if x.prev == none {
		s.lowest = x.next
	} else {
		s.ranks[x.prev].next = x.next
	}
	if x.next == none {
		s.highest = x.prev
	} else {
		s.ranks[x.next].prev = x.prev
	}
	s.spareRanks = append(s.spareRanks, k)
}

// move gives a run another rank.
func (s *Store) move(r, to int32) {
	from := s.runs[r].rank
	if from == to {
		return
	}
	s.unlist(r)
	s.list(r, to)
	s.dropRank(from)
}

// list adds a run to those of a rank.
func (s *Store) list(r, k int32) {
	x, in := &s.runs[r], &s.ranks[k]
	after := in.last
	for after != none && s.runs[after].Lo > x.Lo {
		after = s.runs[after].prev
	}
	x.rank, x.prev = k, after
	if after == none {
		x.next, in.first = in.first, r
	} else {
		x.next, s.runs[after].next = s.runs[after].next, r
	}
	if x.next == none {
		in.last = r
	} else {
		s.runs[x.next].prev = r
	}
}

// unlist removes a run from those of its rank.
func (s *Store) unlist(r int32) {
	x := &s.runs[r]
	in := &s.ranks[x.rank]
	if x.prev == none {
		in.first = x.next
	} else {
		s.runs[x.prev].next = x.next
	}
	if x.next == none {
		in.last = x.prev
	} else {
		s.runs[x.next].prev = x.prev
	}
}
