package kv

import "fmt"

// Runs returns how many runs of blocks there are; Check looks at each.
func (c *Cache) Runs() int { return len(c.runs) - len(c.spareRuns) }

// Check recounts all blocks and returns the first mismatch. It does not update growing sequences.
func (c *Cache) Check() error {
	var free, held int32
	for r := c.head; r != none; r = c.runs[r].next {
		x := &c.runs[r]
		if x.refs != 0 || x.hi < x.lo || x.unhashed < 0 {
			return fmt.Errorf("kv: free run %d is held or negative: %+v", r, *x)
		}
		free += x.hi - x.lo + x.unhashed
	}
	if free != c.free {
		return fmt.Errorf("kv: %d blocks in the free list, %d counted", free, c.free)
	}
	seen := make([]bool, len(c.runs))
	for s := range c.seqs {
		q := &c.seqs[s]
		if q.path == nil {
			continue
		}
		held += c.recountOwned(q) - q.hashed
		for _, h := range q.claims {
			for r := h.run; ; r = c.runs[r].right {
				if !seen[r] {
					held += c.runs[r].hi - c.runs[r].lo
				}
				seen[r] = true
				if c.runs[r].hi >= h.end {
					break
				}
			}
		}
	}
	if held+free != c.total {
		return fmt.Errorf("kv: %d blocks held and %d free of %d", held, free, c.total)
	}
	return nil
}

// recountOwned returns how many blocks q owns, including its window's, even if its counts are out of
// date.
func (c *Cache) recountOwned(q *sequence) int32 {
	if q.growing {
		blocks := c.blocksFor(int(q.base + c.tick))
		return blocks + c.window.extra(blocks)
	}
	return q.blocks + q.extra
}
