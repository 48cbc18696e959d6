package tier

import (
	"slices"

	"blis/pkg/kv"
)

// run is consecutive blocks of a node with the same state and rank.
type run struct {
	Extent
	state state
	rank  int32 // an index in ranks
	// prev and next are neighbors among the runs of a rank, in ascending order of their blocks; preceding and following
	// are those among the runs of the node, in the same order.
	prev, next, preceding, following int32
}

// table is a set of blocks, in runs. Each has a rank, and each rank is in a list.
type table struct {
	tree       *kv.Tree
	runs       []run
	spareRuns  []int32
	nodes      nodes
	lists      []list
	ranks      []rank
	spareRanks []int32
	// stop ends the growth of a user (see Growers).
	stop func(id int32)
}

const none int32 = -1

func newTable(tree *kv.Tree) table { return table{tree: tree, nodes: newNodes(16)} }

// clone returns an independent copy on a clone of the tree.
func (s *table) clone(tree *kv.Tree) table {
	return table{tree, slices.Clone(s.runs), slices.Clone(s.spareRuns), s.nodes.clone(), slices.Clone(s.lists),
		slices.Clone(s.ranks), slices.Clone(s.spareRanks), nil}
}

// clear removes all blocks and lists.
func (s *table) clear() {
	for i := range s.nodes.slots {
		for r := s.nodes.slots[i].first; r != none; r = s.runs[r].following {
			s.tree.Unref(s.runs[r].Node)
		}
	}
	*s = newTable(s.tree)
}

// tail returns the last run of a node, or none.
func (s *table) tail(n kv.Node) int32 { return s.nodes.find(n).last }

// follow makes run r, or none, the one after run before, or the first one of its node if that is none.
func (s *table) follow(n kv.Node, before, r int32) {
	x := s.nodes.add(n)
	if before == none {
		x.first = r
	} else {
		s.runs[before].following = r
	}
	if r == none {
		x.last = before
	} else {
		s.runs[r].preceding = before
		if after := s.runs[r].following; after == none {
			x.last = r
		} else {
			s.runs[after].preceding = r
		}
	}
	if x.first == none {
		s.nodes.drop(x)
	}
}

// from returns the first run of a node, which has these ends, that ends behind block lo, or none. It is mostly one of
// the first or one of the last.
func (s *table) from(x *ends, lo int32) int32 {
	if x.first == none || s.runs[x.first].Hi > lo {
		return x.first
	}
	r := none
	for k := x.last; s.runs[k].Hi > lo; k = s.runs[k].preceding {
		r = k
	}
	return r
}

// each calls f for all runs with blocks of x, which it first cuts off other blocks.
func (s *table) each(x Extent, f func(r int32)) {
	for r := s.from(s.nodes.find(x.Node), x.Lo); r != none && s.runs[r].Lo < x.Hi; r = s.runs[r].following {
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
func (s *table) change(x Extent, from, to state) {
	s.each(x, func(r int32) {
		if s.runs[r].state == from {
			s.runs[r].state = to
		}
	})
}

// insert adds blocks that the table lacks.
func (s *table) insert(x Extent, in state, rank int32) {
	s.tree.Ref(x.Node)
	s.tree.NoteTiered(x.Node)
	at := s.nodes.add(x.Node)
	if at.first == none {
		r := s.newRun(run{Extent: x, state: in, preceding: none, following: none})
		at.first, at.last = r, r
		s.list(r, rank)
		return
	}
	before, after := at.last, s.from(at, x.Lo)
	if after != none {
		before = s.runs[after].preceding
	}
	r := s.newRun(run{Extent: x, state: in, following: after})
	s.follow(x.Node, before, r)
	s.list(r, rank)
	s.merge(x)
}

// take removes at most n ready blocks of a list, the first ones in its order, calls f for them, and returns how many
// there were.
func (s *table) take(list, n int32, f func(x Extent, forward bool)) (taken int32) {
	l := &s.lists[list]
	for k := l.lowest; k != none && taken < n; {
		taken += l.takeUnreachable(&s.ranks[k].unreachable, n-taken)
		following, forward := s.ranks[k].next, s.ranks[k].forward
		if id := s.ranks[k].grower; id != 0 {
			s.stop(id - 1)
		}
		if !s.ranks[k].tail.empty() {
			s.knowTail(k)
		}
		for r := s.end(k); r != none && taken < n; {
			after := s.runs[r].prev
			if forward {
				after = s.runs[r].next
			}
			if s.runs[r].state == ready {
				node := s.runs[r].Node
				s.tree.Ref(node) // f may keep it
				x := s.shorten(r, n-taken)
				taken += x.Hi - x.Lo
				f(x, forward)
				s.tree.Unref(node)
			}
			r = after
		}
		s.dropRank(k)
		k = following
	}
	return taken + l.takeUnreachable(&l.unreachable, n-taken)
}

// first returns the count of the unreachable blocks that come first in a list.
func (s *table) first(list int32) *int32 {
	if l := &s.lists[list]; l.lowest == none {
		return &l.unreachable
	}
	return &s.ranks[s.lists[list].lowest].unreachable
}

// takeUnreachable removes at most n of the blocks that are counted there.
func (l *list) takeUnreachable(count *int32, n int32) int32 {
	n = max(0, min(n, *count))
	*count -= n
	l.blocks -= n
	return n
}

// release counts the blocks of run r, which are ready and unreachable, at a place in the order, and removes the run.
func (s *table) release(r int32, at *int32) {
	x, k := &s.runs[r], s.runs[r].rank
	n := x.Hi - x.Lo
	l := &s.lists[s.ranks[k].list]
	*at += n
	s.remove(r)
	l.blocks += n
}

// end returns the run of a rank with which take begins.
func (s *table) end(rank int32) int32 {
	if s.ranks[rank].forward {
		return s.ranks[rank].first
	}
	return s.ranks[rank].last
}

// shorten removes at most n blocks from a run, those that take takes first, and returns them.
func (s *table) shorten(r, n int32) Extent {
	x := &s.runs[r]
	taken := x.Extent
	n = min(n, x.Hi-x.Lo)
	k := &s.ranks[x.rank]
	k.blocks -= n
	s.lists[k.list].blocks -= n
	if k.forward {
		taken.Hi = x.Lo + n
		x.Lo += n
	} else {
		taken.Lo = x.Hi - n
		x.Hi -= n
	}
	if x.Hi == x.Lo {
		s.remove(r)
	}
	return taken
}

// split moves the blocks of r from m on into a new run and returns it.
func (s *table) split(r, m int32) int32 {
	x := s.runs[r]
	x.Lo = m
	s.tree.Ref(x.Node)
	second := s.newRun(x)
	s.runs[r].Hi, s.runs[r].next = m, second
	s.follow(x.Node, r, second)
	s.runs[second].prev = r
	if x.next == none {
		s.ranks[x.rank].last = second
	} else {
		s.runs[x.next].prev = second
	}
	return second
}

// merge makes one run of adjacent ones with the same state and rank, from the one that may end where x begins to that
// which may begin where x ends.
func (s *table) merge(x Extent) {
	for r := s.from(s.nodes.find(x.Node), x.Lo-1); r != none && s.runs[r].Lo <= x.Hi; {
		a, k := &s.runs[r], s.runs[r].following
		if k == none {
			return
		}
		b := &s.runs[k]
		if a.Hi != b.Lo || a.state != b.state || a.rank != b.rank {
			r = k
			continue
		}
		a.Hi = b.Hi
		b.Lo = b.Hi
		s.remove(k)
	}
}

// remove deletes a run.
func (s *table) remove(r int32) {
	s.unlist(r)
	x := &s.runs[r]
	if at := s.nodes.find(x.Node); at.first == r && at.last == r {
		at.first, at.last = none, none
		s.nodes.drop(at)
	} else {
		s.follow(x.Node, x.preceding, x.following)
	}
	s.tree.Unref(x.Node)
	s.spareRuns = append(s.spareRuns, r)
}

func (s *table) newRun(x run) int32 {
	if last := len(s.spareRuns) - 1; last >= 0 {
		r := s.spareRuns[last]
		s.spareRuns = s.spareRuns[:last]
		s.runs[r] = x
		return r
	}
	s.runs = append(s.runs, x)
	return int32(len(s.runs) - 1)
}
