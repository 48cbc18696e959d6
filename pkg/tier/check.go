package tier

import "fmt"

// Check recounts all blocks and returns the first mismatch.
func (s *Store) Check() error {
	var used, idle int32
	last := int64(0)
	for k := s.lowest; k != none; k = s.ranks[k].next {
		if s.ranks[k].number <= last {
			return fmt.Errorf("tier: rank %d is out of order", s.ranks[k].number)
		}
		last = s.ranks[k].number
		for r := s.ranks[k].first; r != none; r = s.runs[r].next {
			x := &s.runs[r]
			if x.rank != k || x.Hi <= x.Lo || x.next != none && s.runs[x.next].Lo < x.Hi {
				return fmt.Errorf("tier: run %d is empty or not in its rank: %+v", r, *x)
			}
			used += x.Hi - x.Lo
			if x.state == ready {
				idle += x.Hi - x.Lo
			}
		}
	}
	if used != s.used || idle != s.idle || used > s.total {
		return fmt.Errorf("tier: %d of %d blocks are used and %d idle, %d and %d counted", used, s.total, idle, s.used,
			s.idle)
	}
	return nil
}
