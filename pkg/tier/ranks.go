package tier

// list is a list of ranks in ascending order of their numbers.
type list struct {
	lowest, highest int32
	blocks          int32 // all of them, unreachable ones included
	unreachable     int32 // behind the highest rank
}

// rank is a place in a list. Of its blocks the last ones are taken first, or the first ones if forward.
type rank struct {
	number      int64
	list        int32
	prev, next  int32
	first, last int32 // its runs
	blocks      int32 // of these
	grower      int32 // the id of the user that has it and grows, plus 1, or 0
	tail        tail  // of its user
	// unreachable is how many blocks, of ranks with lower numbers or of this one, come directly before its runs in the
	// order of eviction. No prompt can have them any more. They are ready, and no run has them.
	unreachable int32
	growsTail   bool // the grower adds to the tail
	forward     bool
	owned       bool // a user that has not finished has it, and it stays
	unnamed     bool // it has or had runs of nodes that one request alone can have
}

// addList adds an empty list and returns its index.
func (s *table) addList() int32 {
	s.lists = append(s.lists, list{lowest: none, highest: none})
	return int32(len(s.lists) - 1)
}

// rankIn returns the rank of a list with this number, which is a new one unless there is one.
func (s *table) rankIn(list int32, number int64, forward bool) int32 {
	l := &s.lists[list]
	before := l.highest
	for before != none && s.ranks[before].number > number {
		before = s.ranks[before].prev
	}
	if before != none && s.ranks[before].number == number {
		return before
	}
	x := rank{number: number, list: list, forward: forward, prev: before, next: l.lowest, first: none, last: none}
	if before != none {
		x.next = s.ranks[before].next
	}
	if x.next == none {
		x.unreachable, l.unreachable = l.unreachable, 0
	}
	k := int32(len(s.ranks))
	if last := len(s.spareRanks) - 1; last >= 0 {
		k, s.spareRanks = s.spareRanks[last], s.spareRanks[:last]
		s.ranks[k] = x
	} else {
		s.ranks = append(s.ranks, x)
	}
	if before == none {
		l.lowest = k
	} else {
		s.ranks[before].next = k
	}
	if x.next == none {
		l.highest = k
	} else {
		s.ranks[x.next].prev = k
	}
	return k
}

// dropRank removes a rank that has no runs, unless a user has it.
func (s *table) dropRank(k int32) {
	x := &s.ranks[k]
	if x.first != none || x.owned {
		return
	}
	s.unlink(k)
	x.number = 0
	s.spareRanks = append(s.spareRanks, k)
}

// raise gives a rank a number above all others.
func (s *table) raise(k int32, number int64) {
	s.unlink(k)
	x := &s.ranks[k]
	l := &s.lists[x.list]
	x.number, x.prev, x.next = number, l.highest, none
	x.unreachable, l.unreachable = l.unreachable, 0
	if l.highest == none {
		l.lowest = k
	} else {
		s.ranks[l.highest].next = k
	}
	l.highest = k
}

// unlink takes a rank out of its list. The unreachable blocks before it come before the next one then.
func (s *table) unlink(k int32) {
	x := &s.ranks[k]
	l := &s.lists[x.list]
	if x.prev == none {
		l.lowest = x.next
	} else {
		s.ranks[x.prev].next = x.next
	}
	if x.next == none {
		l.highest = x.prev
		l.unreachable += x.unreachable
	} else {
		s.ranks[x.next].prev = x.prev
		s.ranks[x.next].unreachable += x.unreachable
	}
}

// move gives a run another rank.
func (s *table) move(r, to int32) {
	from := s.runs[r].rank
	if from == to {
		return
	}
	s.unlist(r)
	s.list(r, to)
	s.dropRank(from)
}

// list adds a run to those of a rank.
func (s *table) list(r, k int32) {
	x, in := &s.runs[r], &s.ranks[k]
	in.blocks += x.Hi - x.Lo
	s.lists[in.list].blocks += x.Hi - x.Lo
	in.unnamed = in.unnamed || !s.tree.Named(x.Node)
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
func (s *table) unlist(r int32) {
	x := &s.runs[r]
	in := &s.ranks[x.rank]
	in.blocks -= x.Hi - x.Lo
	s.lists[in.list].blocks -= x.Hi - x.Lo
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
