package kv

import "fmt"

// Runs returns how many runs are in use or, with groups, how many blocks there are. Check visits each of them
// once for each of its holders.
func (c *Cache) Runs() int {
	if c.groups != nil {
		return int(c.total)
	}
	return len(c.runs) - len(c.spareRuns)
}

// Check recounts all blocks and returns the first mismatch. It does not catch up growing sequences.
func (c *Cache) Check() error {
	if c.groups != nil {
		return c.groups.check()
	}
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

// recountHeld returns how many blocks q holds, even if its count is outdated.
func (c *Cache) recountHeld(q *sequence) int32 {
	if q.growing {
		return c.blocksFor(int(q.base + c.tick))
	}
	return q.blocks
}

// check recounts all blocks: the holders of each, the free ones, and the hashed ones.
func (g *groupStore) check() error {
	holders := make([]int32, len(g.blocks))
	for s := range g.seqs {
		held := int32(0)
		for i := range g.seqs[s].tables {
			for _, b := range g.seqs[s].tables[i].blocks {
				if b != none {
					holders[b]++
					held++
				}
			}
		}
		if held != g.seqs[s].held {
			return fmt.Errorf("kv: sequence %d holds %d blocks, %d counted", s, held, g.seqs[s].held)
		}
	}
	free := int32(0)
	for b, previous := g.freeHead, none; b != none; previous, b = b, g.blocks[b].nextFree {
		if x := &g.blocks[b]; x.refs != 0 || x.prevFree != previous {
			return fmt.Errorf("kv: block %d is held or out of place in the free queue", b)
		}
		holders[b] = -1
		free++
	}
	if free != g.c.free {
		return fmt.Errorf("kv: %d blocks in the free queue, %d counted", free, g.c.free)
	}
	for b := range g.blocks {
		x := &g.blocks[b]
		if x.refs != max(0, holders[b]) || x.refs == 0 && holders[b] == 0 {
			return fmt.Errorf("kv: block %d has %d holders, %d counted, or is neither held nor free", b, holders[b],
				x.refs)
		}
		if x.node != none && !g.has(int(x.group), g.hashed[x.node].node, x.index) {
			return fmt.Errorf("kv: block %d is hashed, but not found", b)
		}
	}
	return nil
}
