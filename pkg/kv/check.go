package kv

import "fmt"

// Runs returns how many runs are in use. Check visits each of them once for each of its holders.
func (c *Cache) Runs() int { return len(c.runs) - len(c.spareRuns) }

// Check recounts all blocks and returns the first mismatch. It does not catch up growing sequences.
func (c *Cache) Check() error {
	var free, held int32
	for r := c.freeHead; r != none; r = c.runs[r].nextFree {
		x := &c.runs[r]
		if x.refs != 0 || x.hi < x.lo || x.unhashed < 0 {
			return fmt.Errorf("kv: free run %d is held or negative: %+v", r, *x)
		}
		free += x.hi - x.lo + x.unhashed
	}
	if free != c.free {
		return fmt.Errorf("kv: %d blocks in the free queue, %d counted", free, c.free)
	}
	counted := make([]bool, len(c.runs))
	for s := range c.seqs {
		q := &c.seqs[s]
		if q.path == nil {
			continue
		}
		held += c.recountHeld(q) - q.hashed // unhashed blocks have one holder
		for _, h := range q.held {
			for r := h.firstRun; ; r = c.runs[r].splitOff {
				if !counted[r] {
					held += c.runs[r].hi - c.runs[r].lo
				}
				counted[r] = true
				if c.runs[r].hi >= h.hi {
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

// recountHeld returns how many blocks q holds, including its window's, even if its counts are outdated.
func (c *Cache) recountHeld(q *sequence) int32 {
	if q.growing {
		blocks := c.blocksFor(int(q.base + c.tick))
		return blocks + c.window.size(blocks)
	}
	return q.blocks + q.windowBlocks
}
