package tier

import "fmt"

// Check recounts all blocks and returns the first mismatch.
func (s *Store) Check() error {
	used, idle, err := s.recount()
	switch {
	case err != nil:
		return err
	case used != s.used || idle != s.idle || used > s.total:
		return fmt.Errorf("tier: %d of %d blocks are used and %d idle, %d and %d counted", used, s.total, idle, s.used,
			s.idle)
	}
	a, ok := s.eviction.(*adaptive)
	if !ok {
		return nil
	}
	ghosts, _, err := a.ghosts.recount()
	if err == nil && ghosts > 2*s.total {
		err = fmt.Errorf("tier: %d ghosts for %d blocks", ghosts, s.total)
	}
	return err
}

// Reads counts the copies of blocks to other tiers.
func (s *Store) Reads() (n int64) {
	for i := range s.nodes.slots {
		for r := s.nodes.slots[i].first; r != none; r = s.runs[r].following {
			n += int64(s.runs[r].Hi-s.runs[r].Lo) * int64(s.runs[r].state/reader)
		}
	}
	return n
}

// recount counts the blocks and those of them that are ready.
func (s *table) recount() (blocks, idle int32, err error) {
	for i := range s.lists {
		last, before, unreachable := int64(0), blocks, s.lists[i].unreachable
		for k := s.lists[i].lowest; k != none; k = s.ranks[k].next {
			if s.ranks[k].number <= last || s.ranks[k].list != int32(i) {
				return 0, 0, fmt.Errorf("tier: rank %d is out of order", s.ranks[k].number)
			}
			last = s.ranks[k].number
			unreachable += s.ranks[k].unreachable
			t := &s.ranks[k].tail
			if t.ready < t.lo || t.hi < t.ready {
				return 0, 0, fmt.Errorf("tier: the tail of rank %d is %+v", s.ranks[k].number, *t)
			}
			blocks, idle = blocks+t.hi-t.lo, idle+t.ready-t.lo
			inRuns := -s.ranks[k].blocks
			for r := s.ranks[k].first; r != none; r = s.runs[r].next {
				x := &s.runs[r]
				if x.rank != k || x.Hi <= x.Lo || x.next != none && s.runs[x.next].Lo < x.Hi {
					return 0, 0, fmt.Errorf("tier: run %d is empty or not in its rank: %+v", r, *x)
				}
				blocks += x.Hi - x.Lo
				inRuns += x.Hi - x.Lo
				if x.state == ready {
					idle += x.Hi - x.Lo
				}
			}
			if inRuns != 0 {
				return 0, 0, fmt.Errorf("tier: the runs of rank %d have %d more blocks than counted",
					s.ranks[k].number, inRuns)
			}
		}
		blocks, idle = blocks+unreachable, idle+unreachable
		if blocks-before != s.lists[i].blocks {
			return 0, 0, fmt.Errorf("tier: list %d has %d blocks, %d counted", i, blocks-before, s.lists[i].blocks)
		}
	}
	return blocks, idle, s.checkNodes()
}

// checkNodes reports a node whose runs are not linked in order.
func (s *table) checkNodes() error {
	for i := range s.nodes.slots {
		x, before := &s.nodes.slots[i], none
		for r := x.first; r != none; before, r = r, s.runs[r].following {
			if s.runs[r].preceding != before || before != none && s.runs[before].Hi > s.runs[r].Lo {
				return fmt.Errorf("tier: run %d of node %d is not linked with run %d", r, x.node, before)
			}
		}
		if x.node != noNode && x.last != before {
			return fmt.Errorf("tier: node %d ends with run %d, not %d", x.node, before, x.last)
		}
	}
	return nil
}
