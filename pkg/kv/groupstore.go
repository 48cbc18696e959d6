package kv

// groupStore holds the blocks of a cache with groups: for each sequence and group a table with its blocks, as
// in vLLM (single_type_kv_cache_manager.py).
type groupStore struct {
	blockPool
	groups []Group
	rules  GroupRules
	layout hitLayout
	seqs   []groupSequence // by Seq
	events groupEvents
	// hit is the number of tokens that the last lookup found.
	hit      int32
	admitted int64 // how many sequences have been admitted
	// advancing: growing sequences get the tokens of the last tick.
	advancing bool
	freed     []int32 // scratch
	// fresh is the states that were hashed since BeginStep, and began the tick of it.
	fresh []content
	began int64
}

// groupSequence is what a sequence holds.
type groupSequence struct {
	tables []blockTable // by group
	held   int32        // the number of blocks in tables
	prompt int32        // tokens
	// junction is the number of tokens that the first groups had at the last lookup, if that is more than all
	// groups had, and otherwise 0. A prefix ends there that several prompts share.
	junction int32
	// order numbers the admissions of sequences. Of those that get a token at the same time, the one admitted
	// first is first.
	order int64
	// due is the tick of the next event of a growing sequence. It grows from tick start on, and then this many
	// of its tokens are being computed.
	due, start int64
	inFlight   int32
	// sharedEnd is the number of tokens with which it publishes the last block that others can have, too.
	sharedEnd int32
	// scheduled is how many tokens it has at least: as many as it had at the last call that gave it blocks.
	// prefillEnd is how many it has when it gets its next token of output.
	scheduled, prefillEnd int32
}

// blockTable is the blocks of a sequence in a group. Blocks that are no longer needed, or never were, are none.
type blockTable struct {
	blocks []int32
	// skipped: the blocks before it are none, except with LastStateOnly. published: those before it are hashed,
	// unless they need not be.
	skipped, published int32
	// last is the state before the newest one, which is the last block.
	last int32
	span int // the index in the path of the span with block published, or of an earlier one
}

// newGroupStore returns the store of c.
func newGroupStore(c *Cache, cfg Config) *groupStore {
	largest := 0
	for _, g := range cfg.Groups {
		largest = min(max(largest, g.BlockSize), maxEventTicks)
	}
	return &groupStore{blockPool: newBlockPool(c, len(cfg.Groups)), groups: cfg.Groups, rules: cfg.Rules,
		layout: newHitLayout(cfg.Groups), events: newGroupEvents(largest)}
}

// open starts sequence s.
func (g *groupStore) open(s Seq, prompt int) {
	for int(s) >= len(g.seqs) {
		g.seqs = append(g.seqs, groupSequence{tables: make([]blockTable, len(g.groups))})
	}
	q := &g.seqs[s]
	q.prompt, q.junction, q.order = int32(prompt), 0, 0
}

// lookup finds the hits among the first n tokens of s and returns how many tokens they have.
func (g *groupStore) lookup(s Seq, n int) int {
	hit, longest := g.match(g.c.seqs[s].path, n)
	q := &g.seqs[s]
	g.hit, q.junction = hit, 0
	if longest > hit {
		q.junction = longest
	}
	q.scheduled, q.prefillEnd = hit, max(q.prompt, int32(n))
	return int(hit)
}

// match finds the hits among the first n tokens of path and returns how many tokens they have, and how many
// those of the group with most have.
func (g *groupStore) match(path Path, n int) (hit, longest int32) {
	if !g.c.caching {
		return 0, 0
	}
	for _, span := range path {
		g.c.catchUpNode(span.Node)
	}
	return g.layout.longestHit(&g.blockPool, path, int32(n))
}

// admit gives s the hits of the last lookup and new blocks for the rest of its first n tokens.
func (g *groupStore) admit(s Seq, n, reserve, spare int32) bool {
	available := g.c.free - spare
	if g.needed(s, n, false) > available || reserve > n && g.needed(s, reserve, true) > available || g.isFresh(s) {
		return false
	}
	q := &g.seqs[s]
	q.order = g.admitted
	g.admitted++
	for i := range g.groups {
		table, size := &q.tables[i], int32(g.groups[i].BlockSize)
		table.skipped = g.groups[i].skipped(g.hit)
		for range table.skipped {
			table.blocks = append(table.blocks, none)
		}
		g.hits(s, i, func(b int32) {
			g.pin(b)
			table.blocks = append(table.blocks, b)
			q.held++
		})
		table.published = g.hit / size
	}
	g.allocate(q, n)
	return true
}

// hits calls f for the blocks of group i that s needs of the hits of the last lookup.
func (g *groupStore) hits(s Seq, i int, f func(b int32)) {
	size, path, span := int32(g.groups[i].BlockSize), g.c.seqs[s].path, 0
	for j := g.groups[i].skipped(g.hit); j < g.hit/size; j++ {
		for path[span].End < (j+1)*size {
			span++
		}
		f(g.find(i, path[span].Node, j))
	}
}

// needed returns how many free blocks s takes to be admitted with n tokens. If it must fit as a whole, windows
// need no more than they can ever hold.
func (g *groupStore) needed(s Seq, n int32, whole bool) int32 {
	sum := int32(0)
	for i := range g.groups {
		group := &g.groups[i]
		want := group.blocksFor(n)
		if whole && group.Kind != RecurrentState {
			want = group.reserve(&g.rules, n)
		}
		sum += g.most(&g.seqs[s], i, n, max(0, want-g.hit/int32(group.BlockSize)))
		g.hits(s, i, func(b int32) {
			if g.blocks[b].refs == 0 {
				sum++
			}
		})
	}
	return sum
}

// extend frees the blocks of s that its windows have left, given how many of its tokens are scheduled and how
// many of these are still being computed. It then gives s the blocks that it lacks for its first n tokens, and
// returns false if there are too few.
func (g *groupStore) extend(s Seq, n, scheduled, inFlight int32) bool {
	g.settleBefore(g.seqs[s].order)
	q := &g.seqs[s]
	if g.rules.KeepUntilComputed {
		scheduled -= inFlight
	}
	g.skip(q, scheduled)
	if g.lacks(q, n) > g.c.free {
		return false
	}
	g.allocate(q, n)
	return true
}

// lacks returns how many blocks q needs for its first n tokens in addition to those that it has.
func (g *groupStore) lacks(q *groupSequence, n int32) int32 {
	sum := int32(0)
	for i := range g.groups {
		sum += g.most(q, i, n, max(0, g.groups[i].blocksFor(n)-int32(len(q.tables[i].blocks))))
	}
	return sum
}

// allocate takes the blocks that q lacks for its first n tokens, group by group.
func (g *groupStore) allocate(q *groupSequence, n int32) {
	for i := range g.groups {
		table := &q.tables[i]
		if more := g.groups[i].blocksFor(n) - int32(len(table.blocks)); more > 0 {
			if g.groups[i].Kind == RecurrentState {
				more = g.leaveOut(q, i, n, more)
			}
			table.blocks = g.take(table.blocks, int(more))
			q.held += more
		}
	}
	q.scheduled = n
}

// skip frees the blocks of q that no token after its first past tokens needs
// (SingleTypeKVCacheManager.remove_skipped_blocks).
func (g *groupStore) skip(q *groupSequence, past int32) {
	for i := range g.groups {
		table, skipped := &q.tables[i], g.groups[i].skipped(past)
		if hi := min(skipped, int32(len(table.blocks))); hi > table.skipped {
			lo := table.skipped
			if g.rules.LastStateOnly && g.groups[i].Kind == RecurrentState {
				lo = table.runBefore(hi)
			}
			g.free(q, table, lo, hi)
			table.skipped = hi
		}
		if g.rules.LastStateOnly && g.groups[i].Kind == RecurrentState && table.last < skipped {
			g.free(q, table, table.last, table.last+1)
		}
	}
}

// free frees blocks lo to hi of a table of q, the last one first.
func (g *groupStore) free(q *groupSequence, table *blockTable, lo, hi int32) {
	g.freed = g.freed[:0]
	for j := hi - 1; j >= lo; j-- {
		if b := table.blocks[j]; b != none {
			g.freed = append(g.freed, b)
			table.blocks[j] = none
			q.held--
		}
	}
	g.release(g.freed)
}

// releaseAll frees all blocks of s, group by group.
func (g *groupStore) releaseAll(s Seq) {
	q := &g.seqs[s]
	for i := range q.tables {
		table := &q.tables[i]
		if g.rules.LastStateOnly {
			table.skipped = 0
		}
		g.free(q, table, table.skipped, int32(len(table.blocks)))
		q.tables[i] = blockTable{blocks: table.blocks[:0]}
	}
}

// publishTokens publishes the blocks that the first n tokens of s fill, in all groups
// (HybridKVCacheCoordinator.cache_blocks).
func (g *groupStore) publishTokens(s Seq, n int32) {
	q, path := &g.seqs[s], g.c.seqs[s].path
	if !g.rules.HashAll {
		n -= n % g.layout.alignment
	}
	for i := range g.groups {
		table, size := &q.tables[i], int32(g.groups[i].BlockSize)
		full := min(n/size, int32(len(table.blocks)))
		for table.published < full {
			for path[table.span].End < (table.published+1)*size {
				table.span++
			}
			span := path[table.span]
			g.publishSpan(s, i, span.Node, min(full, span.End/size))
		}
	}
}

// publishSpan publishes the blocks before hi of s in group i that are not published yet. They are blocks of node
// n. Those that a growing sequence has filled before come first.
func (g *groupStore) publishSpan(s Seq, i int, n Node, hi int32) {
	q := &g.seqs[s]
	table, node := &q.tables[i], none
	for ; table.published < hi; table.published++ {
		b := table.blocks[table.published]
		if b == none || !g.isKept(q, i, table.published) {
			continue
		}
		if node == none {
			if w, ok := g.c.writer(n); ok && w != s {
				g.catchUpBefore(w, s)
			}
			node = g.indexOf(n)
		}
		g.publish(b, i, node, table.published)
		g.noteFresh(s, i, n, table.published)
	}
}

// isKept reports whether block j of q in group i is hashed when it is full
// (SlidingWindowManager.reachable_block_mask).
func (g *groupStore) isKept(q *groupSequence, i int, j int32) bool {
	group := &g.groups[i]
	if group.Kind != SlidingWindow && group.Kind != RecurrentState || g.rules.HashAll {
		return true
	}
	size, tail := int32(group.BlockSize), group.tail()
	interval := g.layout.alignment
	if g.rules.Sparse {
		for _, end := range [...]int32{q.prompt - 1, q.junction} {
			if last := (end - end%g.layout.alignment) / size; last-tail <= j && j < last {
				return true
			}
		}
		interval = int32(g.rules.Interval)
	}
	per := interval / size
	return per > 0 && j%per >= per-tail
}
