package tier

import "blis/pkg/kv"

// head returns the first run of a node, or none.
func (s *Store) head(n kv.Node) int32 {
	if r, ok := s.first[n]; ok {
		return r
	}
	return none
}

// each calls f for all runs with blocks of x, which it first cuts off other blocks.
func (s *Store) each(x Extent, f func(r int32)) {
	for r := s.head(x.Node); r != none && s.runs[r].Lo < x.Hi; r = s.runs[r].following {
		if s.runs[r].Hi <= x.Lo {
			continue
		}
		if s.runs[r].Lo < x.Lo {
			r = s.split(r, x.Lo)
		}
		if s.runs[r].Hi > x.Hi {
			s.split(r, x.Hi)
		}
		f(r)
	}
}

// change makes the blocks of x in one state ones in another.
func (s *Store) change(x Extent, from, to state) {
	s.each(x, func(r int32) {
		if s.runs[r].state == from {
			s.runs[r].state = to
		}
	})
}

// use notes that u uses the blocks of x that are in this state. Those that it has not used before get its rank if that
// is higher (LRUCachePolicy.on_request_access).
func (s *Store) use(u *User, x Extent, in state) {
	for r := s.head(x.Node); r != none && s.runs[r].Lo < x.Hi; r = s.runs[r].following {
		if s.runs[r].Hi <= x.Lo || s.runs[r].state != in {
			continue
		}
		k := s.runs[r]
		u.note(max(k.Lo, x.Lo), min(k.Hi, x.Hi), func(lo, hi int32) {
			s.each(Extent{x.Node, lo, hi}, func(r int32) {
				if s.ranks[s.runs[r].rank].number < s.ranks[u.rank-1].number {
					s.move(r, u.rank-1)
				}
			})
		})
	}
	s.merge(x)
}

// insert adds blocks that the store lacks, which are being stored.
func (s *Store) insert(x Extent, rank int32) {
	s.tree.Ref(x.Node)
	r := s.newRun(run{Extent: x, state: storing})
	before := none
	for k := s.head(x.Node); k != none && s.runs[k].Lo < x.Lo; k = s.runs[k].following {
		before = k
	}
	if before == none {
		s.runs[r].following = s.head(x.Node)
		s.first[x.Node] = r
	} else {
		s.runs[r].following = s.runs[before].following
		s.runs[before].following = r
	}
	s.list(r, rank)
	s.merge(x)
}

// evict removes n blocks, of which there must be that many idle ones.
func (s *Store) evict(n int32) {
	for k := s.lowest; n > 0; {
		following := s.ranks[k].next
		for r := s.ranks[k].last; r != none && n > 0; {
			x := &s.runs[r]
			before := x.prev
			if x.state == ready {
				d := min(n, x.Hi-x.Lo)
				n -= d
				s.idle -= d
				s.used -= d
				if x.Hi -= d; x.Hi == x.Lo {
					s.remove(r)
				}
			}
			r = before
		}
		s.dropRank(k)
		k = following
	}
}

// split moves the blocks of r from m on into a new run and returns it.
func (s *Store) split(r, m int32) int32 {
	x := s.runs[r]
	x.Lo = m
	s.tree.Ref(x.Node)
	second := s.newRun(x)
	s.runs[r].Hi, s.runs[r].following, s.runs[r].next = m, second, second
	s.runs[second].prev = r
	if x.next == none {
		s.ranks[x.rank].last = second
	} else {
		s.runs[x.next].prev = second
	}
	return second
}

// merge makes one run of adjacent ones with the same state and rank, where one of them has blocks of x.
func (s *Store) merge(x Extent) {
	for r := s.head(x.Node); r != none && s.runs[r].Lo <= x.Hi; {
		a, k := &s.runs[r], s.runs[r].following
		if k == none {
			return
		}
		b := &s.runs[k]
		if a.Hi < x.Lo || a.Hi != b.Lo || a.state != b.state || a.rank != b.rank {
			r = k
			continue
		}
		a.Hi = b.Hi
		b.Lo = b.Hi
		s.remove(k)
	}
}

// remove deletes a run.
func (s *Store) remove(r int32) {
	s.unlist(r)
	x := &s.runs[r]
	if first := s.first[x.Node]; first == r {
		if x.following == none {
			delete(s.first, x.Node)
		} else {
			s.first[x.Node] = x.following
		}
	} else {
		k := first
		for s.runs[k].following != r {
			k = s.runs[k].following
		}
		s.runs[k].following = x.following
	}
	s.tree.Unref(x.Node)
	s.spareRuns = append(s.spareRuns, r)
}

func (s *Store) newRun(x run) int32 {
	if last := len(s.spareRuns) - 1; last >= 0 {
		r := s.spareRuns[last]
		s.spareRuns = s.spareRuns[:last]
		s.runs[r] = x
		return r
	}
	s.runs = append(s.runs, x)
	return int32(len(s.runs) - 1)
}
