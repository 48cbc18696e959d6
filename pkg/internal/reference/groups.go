package reference

import "slices"

// Group is a KV cache group: layers with blocks of their own. Without a Window or a Chunk its tokens
// attend to all tokens before them, with a Window to the newest ones, and with a Chunk to those of the
// same chunk of Chunk tokens. With State they need the state after the token before, and no others.
type Group struct {
	BlockSize, Window, Chunk int
	State                    bool
}

// null is the place of a block that a request no longer needs, or never needed.
const null = -1

// groups returns the groups of a configuration: one of full attention if it states none.
func (c *Config) groups() []Group {
	if len(c.Groups) == 0 {
		return []Group{{BlockSize: c.BlockSize}}
	}
	return c.Groups
}

// alignment is the smallest number of tokens that fills its last block in every group.
func (c *Config) alignment() int {
	n := 1
	for slices.ContainsFunc(c.groups(), func(g Group) bool {
		return n%g.BlockSize != 0 && (c.PrefixCaching || !g.State)
	}) {
		n++
	}
	return n
}

// blocks is the number of blocks that n tokens fill or begin.
func (g Group) blocks(n int) int { return (n + g.BlockSize - 1) / g.BlockSize }

// oldest is the position of the oldest token that a token at position n attends to.
func (g Group) oldest(n int) int {
	switch {
	case g.State:
		return max(0, n-1)
	case g.Window > 0:
		return max(0, n-g.Window+1)
	case g.Chunk > 0:
		return n - n%g.Chunk
	}
	return 0
}

// most is the number of blocks that n tokens take in a group if all of them must find room. For a window
// or a chunk, it is at most the number that its tokens and those of the batches in flight can take.
func (c *Config) most(g Group, n int) int {
	all := g.blocks(n)
	if !c.ReserveWindow || g.Window+g.Chunk == 0 {
		return all
	}
	return min(all, c.held(g))
}

// held is the most blocks that a request can hold of a window or a chunk.
func (c *Config) held(g Group) int {
	flying := c.MaxNumBatchedTokens
	if c.KeepUntilComputed && c.Pipeline != nil {
		flying *= c.Pipeline.Batches
	} else if c.Async && c.KeepUntilComputed {
		flying *= 2
	}
	cut := func(n int) int {
		if c.MaxModelLen > 0 {
			return min(n, c.MaxModelLen)
		}
		return n
	}
	if g.Window > 0 {
		return g.blocks(cut(g.Window-1+flying)) + 1
	}
	return g.blocks(cut(g.Chunk + flying))
}

// lone is the number of free blocks that a request with this many tokens needs to run alone.
func (c *Config) lone(slots int) int {
	sum := 0
	for _, g := range c.groups() {
		switch {
		case g.State:
			sum += c.states(g.blocks(slots))
		case g.Window+g.Chunk == 0:
			sum += g.blocks(slots)
		case c.ReserveFull:
			sum += c.most(g, slots)
		default:
			sum += min(g.blocks(slots), c.held(g))
		}
	}
	return sum
}

// hit is what a lookup finds: the length of the cached prefix and, for each group, the blocks of it that
// the next token attends to, at their places.
type hit struct {
	tokens int
	blocks [][]int
}

// lookup finds the longest prefix that leaves at least one token to compute and whose last tokens are
// cached in all groups, as far back as the next token attends. It also notes how much longer a prefix the
// group with full attention has, or the first one if there is none.
func (r *replica) lookup(q *request) hit {
	c := r.config
	q.junction = 0
	h := hit{blocks: make([][]int, len(c.groups()))}
	if !c.PrefixCaching {
		return h
	}
	first := max(0, slices.IndexFunc(c.groups(), func(g Group) bool { return g.Window+g.Chunk == 0 && !g.State }))
	longest := 0
	for n := (q.length() - 1) / c.alignment() * c.alignment(); n >= 0; n -= c.alignment() {
		if longest == 0 && r.has(q, first, n) {
			longest = n
		}
		if all := r.hasAll(q, n); !all {
			continue
		}
		for g := range c.groups() {
			h.blocks[g] = r.needed(q, g, n)
		}
		if s := c.Speculation; s != nil && s.DropLastHit && n > 0 {
			r.drafts.Dropped++
			n -= c.BlockSize
			h.blocks[0] = h.blocks[0][:len(h.blocks[0])-1]
			h.tokens = n
			return h
		}
		if h.tokens = n; longest > n {
			q.junction = longest
			r.junctions++
		}
		return h
	}
	panic("reference: nothing is not cached")
}

// hasAll reports whether the first n tokens of a request are cached as far as a token after them needs.
func (r *replica) hasAll(q *request, n int) bool {
	for g := range r.config.groups() {
		if !r.has(q, g, n) {
			return false
		}
	}
	return true
}

// has is hasAll for one group. Groups that are equal have a prefix only together.
func (r *replica) has(q *request, g, n int) bool {
	groups := r.config.groups()
	for k := range groups {
		if groups[k] == groups[g] && r.needed(q, k, n) == nil {
			return false
		}
	}
	return true
}

// needed returns the blocks of a group that hold the first n tokens of a request, null where a token after
// them needs none; nil if one is not cached.
func (r *replica) needed(q *request, group, n int) []int {
	g := r.config.groups()[group]
	blocks := []int{}
	for i := range n / g.BlockSize {
		b := null
		if i >= g.oldest(n)/g.BlockSize {
			var ok bool
			if b, ok = r.cache.lookup(q.blockHash(group, (i+1)*g.BlockSize+r.config.hashLookahead())); !ok {
				return nil
			}
		}
		blocks = append(blocks, b)
	}
	return blocks
}

// slide releases the blocks that a running request needs no longer: those before the oldest token that the
// next one attends to. With KeepUntilComputed that is the next token after those of finished steps.
func (r *replica) slide(q *request) {
	next := q.computed
	if r.config.KeepUntilComputed {
		for _, b := range r.batchesInFlight() {
			for _, e := range b.entries {
				if e.request == q {
					next -= e.tokens
				}
			}
		}
	}
	for k, g := range r.config.groups() {
		left := min(g.oldest(next)/g.BlockSize, len(q.tables[k]))
		if g.State && r.config.States.LastOnly {
			r.retire(q, k, left, g.oldest(next)/g.BlockSize)
			continue
		}
		r.cache.release(q.tables[k][:left])
		for i := range left {
			q.tables[k][i] = null
		}
	}
}

// keeps reports whether the block of a group that ends at token n is hashed: always, or with Sparse only if
// a window needs it where a later prompt can continue.
func (c *Config) keeps(q *request, g Group, n int) bool {
	if g.Window == 0 && !g.State || c.HashAll {
		return true
	}
	ends := []int{q.Input - 1, q.junction}
	step := c.alignment()
	if c.Sparse {
		step = c.Interval
	} else {
		ends = nil
	}
	if step > 0 {
		ends = append(ends, (n+step-1)/step*step) // the next multiple
	}
	return slices.ContainsFunc(ends, func(end int) bool {
		end -= end % c.alignment()
		tail := g.blocks(g.Window - 1)
		if g.State {
			tail = 1
		}
		return n <= end && n > end-tail*g.BlockSize
	})
}
