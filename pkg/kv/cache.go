// Package kv models the KV cache of one replica as vLLM 0.19.1 manages it: which blocks sequences hold, which
// of them later prompts hit, and which are evicted. The sources are block_pool.py, kv_cache_manager.py and
// single_type_kv_cache_manager.py in vllm/v1/core. One thing differs: sliding windows are simplified (see
// Window). The null block of vLLM, which no sequence holds, is not one of the cache's blocks.
//
// The terms, where a range "lo to hi" never includes hi:
//   - A sequence is the tokens of one request: its prompt, then its output. Its block j has its tokens j·B to
//     (j+1)·B, where B is the block size.
//   - A node replaces token values. Prompts consist of named segments, and a Tree gives each segment a node,
//     by its name and the segments before it. A block is a block of the node that has its last token. This
//     node and j identify the block's content, as the block hash does in vLLM.
//   - To publish a full block makes it hashed: lookups find it by its content until it is evicted.
//   - Copies are hashed blocks with the same content. The oldest copy is the one published first.
//   - The hits of a prompt are the oldest copies of its leading blocks, up to the first one without a copy.
//   - A block is held by the sequences that use it. It is free if there are none.
//   - The free queue has the free blocks, the least recently freed one at the front. A sequence frees its
//     last block first. It takes new blocks from the front, which evicts them if they are hashed. With
//     Config.UnhashedFirst, freed blocks that are not hashed go to the front.
//   - A run is a range of consecutive blocks with the same holders. The cache stores runs, not blocks.
//   - A growing sequence gets one token at each Tick, without being visited.
package kv

// Seq is the number of an open sequence in a cache. It is reused after Close.
type Seq int32

// heldRange is hashed blocks that a sequence holds: from the first one of run firstRun to block hi. If the
// run was split while it was held, the range continues in the run's splitOff.
type heldRange struct{ firstRun, hi int32 }

type sequence struct {
	path Path
	held []heldRange // in order

	blocks      int32 // the number of held blocks
	hashed      int32 // how many of these are hashed: the first ones
	publishSpan int   // the index in path of the span with the first unhashed block, or of an earlier one
	fence       fence // of the first unhashed block

	// A growing sequence has base + tick tokens. The newest lag of them are not known yet (see Extend). The
	// fields above are as of the last catchUp.
	growing bool
	// hasOutput: the prompt has output of an earlier request. Few have, and only these need a look at all their nodes
	// in each step.
	hasOutput bool
	lag       int32
	base      int64
}

// Cache is the block cache of one replica: a fixed number of blocks of a fixed number of tokens.
type Cache struct {
	tree      *Tree
	blockSize int32
	total     int32 // blocks
	caching   bool  // prefix caching is on
	// unhashedFirst: see Config. If it is set, the only unhashed blocks in the queue are in its first runs.
	unhashedFirst bool
	// lookahead and dropLastHit: see Config.
	lookahead   int32
	dropLastHit bool
	// groups has the blocks of a cache with groups, and the runs are not used then. Otherwise it is nil.
	groups *groupStore

	free               int32 // blocks
	freeHead, freeTail int32 // the first and the last run of the free queue, or none
	runs               []run
	spareRuns          []int32   // indices in runs that are not in use
	firstRun           nodeTable // of each node

	seqs      []sequence
	spareSeqs []Seq // numbers of closed sequences

	// tick is the number of calls of Tick, and phase is tick % blockSize.
	tick  int64
	phase int32
	// growingByPhase[p] is the number of growing sequences that need a block at the ticks of phase p.
	growingByPhase []int32
	// writers maps the node of each named output to the growing sequence that produces it.
	writers map[Node]Seq

	// hitExtents has the hits of the last Lookup or Match in order. hits is their number in blocks, and
	// freeHits is the number of those that are free.
	hitExtents     []extent
	hits, freeHits int32
	chain          []int32 // scratch of Release: the runs of one heldRange

	watcher Watcher // nil if there is none
	// observed: there is a watcher, or there may be fences that are not over, or marks, or given blocks are kept.
	observed, fencing bool

	// keepsGiven, given: see Given.
	keepsGiven bool
	given      []Given

	// fences has the fence of each run; nil unless they are kept. fenced and now: see Fenced. lastFence is the latest
	// time of all.
	fences                 []fence
	fenced, now, lastFence int64
	marks                  int64
	marked                 []Marked
	// marking are the runs with marks, and maybe others. markedSeqs are the sequences that have one in fence.
	marking    []int32
	markedSeqs []Seq
}

// extent is blocks lo to hi of node.
type extent struct {
	node   Node
	lo, hi int32
}

// Config is the size of a cache and its rules.
type Config struct {
	// Blocks is the number of blocks that sequences can hold, and BlockSize the tokens of each.
	Blocks, BlockSize int
	// Caching turns prefix caching on. Without it nothing is published, so that lookups find nothing.
	Caching bool
	// UnhashedFirst puts freed blocks that are not hashed at the front of the free queue, as vLLM does since
	// 0.24 (BlockPool.free_blocks). Earlier versions append all freed blocks.
	UnhashedFirst bool
	// HashLookahead is the number of tokens behind a block that its hash covers, too: 0, or 1 for drafters that read
	// the next token (num_hash_lookahead_tokens in vllm/config/vllm.py). DropLastHit does not use the last block of a
	// hit (FullAttentionManager.find_longest_cache_hit, drop_eagle_block). Both are for caches without groups.
	HashLookahead int
	DropLastHit   bool
	// Groups are the KV cache groups of a model that has others than one of full attention, and Rules the
	// rules for them. BlockSize is then the least common multiple of their block sizes.
	Groups []Group
	Rules  GroupRules
}

// NewCache returns a cache whose blocks are all free.
func NewCache(tree *Tree, cfg Config) *Cache {
	blocks := int32(cfg.Blocks)
	c := &Cache{tree: tree, blockSize: int32(cfg.BlockSize), total: blocks, caching: cfg.Caching,
		unhashedFirst: cfg.UnhashedFirst, lookahead: int32(cfg.HashLookahead), dropLastHit: cfg.DropLastHit,
		free: blocks, freeHead: none, freeTail: none, firstRun: newNodeTable(),
		growingByPhase: make([]int32, cfg.BlockSize), writers: map[Node]Seq{}}
	if len(cfg.Groups) > 0 {
		c.groups = newGroupStore(c, cfg)
		return c
	}
	c.queueBack(c.newRun(run{node: noNode, unhashed: c.total}))
	return c
}

// Free returns how many blocks are free, hashed ones included.
func (c *Cache) Free() int { return int(c.free) }

// Total returns how many blocks there are.
func (c *Cache) Total() int { return int(c.total) }

// Tree returns the tree of the cache's nodes.
func (c *Cache) Tree() *Tree { return c.tree }

// BlockSize returns the number of tokens in a block. With groups, hits are multiples of it.
func (c *Cache) BlockSize() int { return int(c.blockSize) }

// Open starts a sequence that holds no blocks, with a prompt of this many tokens. The cache keeps path until
// Close.
func (c *Cache) Open(path Path, prompt int) Seq {
	var s Seq
	if last := len(c.spareSeqs) - 1; last >= 0 {
		s = c.spareSeqs[last]
		c.spareSeqs = c.spareSeqs[:last]
	} else {
		c.seqs = append(c.seqs, sequence{})
		s = Seq(len(c.seqs) - 1)
	}
	c.seqs[s] = sequence{path: path, held: c.seqs[s].held[:0], hasOutput: c.tree.haveOutput(path[:len(path)-1])}
	if c.groups != nil {
		c.groups.open(s, prompt)
	}
	return s
}

// Close frees the blocks of s and ends it.
func (c *Cache) Close(s Seq) {
	c.Release(s)
	c.seqs[s].path = nil
	c.spareSeqs = append(c.spareSeqs, s)
}

// Path returns the path of s.
func (c *Cache) Path(s Seq) Path { return c.seqs[s].path }

// HeldBlocks returns how many blocks s holds, in all groups. For a growing sequence it may leave out blocks
// added since its counts were last updated.
func (c *Cache) HeldBlocks(s Seq) int {
	if c.groups != nil {
		return int(c.groups.seqs[s].held)
	}
	return int(c.seqs[s].blocks)
}

// Lookup finds the hits of s among the blocks that its first n tokens fill, and returns how many tokens they
// have (KVCacheManager.get_computed_blocks). s does not hold them until Admit.
func (c *Cache) Lookup(s Seq, n int) int {
	if c.groups != nil {
		return c.groups.lookup(s, n)
	}
	return c.Match(c.seqs[s].path, n)
}

// Match is Lookup for a path without a sequence.
func (c *Cache) Match(path Path, n int) int {
	if c.groups != nil {
		hit, _ := c.groups.match(path, n)
		return int(hit)
	}
	hits := c.match(path, int32(n)/c.blockSize)
	if c.dropLastHit && hits > 0 {
		hits = c.dropHit()
	}
	return hits * int(c.blockSize)
}

// dropHit removes the last block of the hits, of which there is one, and returns how many are left.
func (c *Cache) dropHit() int {
	e := &c.hitExtents[len(c.hitExtents)-1]
	if r, _ := c.oldestCopy(e.node, e.hi-1); c.runs[r].refs == 0 {
		c.freeHits--
	}
	if e.hi--; e.hi == e.lo {
		c.hitExtents = c.hitExtents[:len(c.hitExtents)-1]
	}
	c.hits--
	return int(c.hits)
}

// match finds the hits among the first maxBlocks blocks of path and returns their number.
func (c *Cache) match(path Path, maxBlocks int32) int {
	c.hitExtents, c.freeHits, c.hits = c.hitExtents[:0], 0, 0
	if !c.caching {
		return 0
	}
	for _, span := range path {
		end := min((span.End-c.lookahead)/c.blockSize, maxBlocks)
		if end <= c.hits {
			continue
		}
		c.catchUpNode(span.Node)
		for c.hits < end {
			r, stop := c.oldestCopy(span.Node, c.hits)
			if r == none {
				return int(c.hits)
			}
			stop = min(stop, end)
			c.hitExtents = append(c.hitExtents, extent{span.Node, c.hits, stop})
			if c.runs[r].refs == 0 {
				c.freeHits += stop - c.hits
			}
			c.hits = stop
		}
	}
	return int(c.hits)
}

// Admit gives s, which holds nothing, the hits of the preceding Lookup of s and new blocks for the rest of
// its first n tokens (KVCacheManager.allocate_slots). It publishes the full ones: as in vLLM, blocks can be
// hit before they are computed. Admit changes nothing and returns false if blocks for the first reserve
// tokens, which are at least n, would leave fewer than spare blocks free.
func (c *Cache) Admit(s Seq, n, reserve, spare int) bool {
	if c.groups != nil {
		admitted := c.groups.admit(s, int32(n), int32(reserve), int32(spare))
		if admitted {
			c.Publish(s, n)
		}
		return admitted
	}
	if c.blocksFor(reserve)-c.hits+c.freeHits > c.free-int32(spare) {
		return false
	}
	q := &c.seqs[s]
	for _, e := range c.hitExtents {
		c.pin(q, e)
	}
	q.blocks, q.hashed, q.publishSpan = c.hits, c.hits, 0
	c.allocate(q, c.blocksFor(n))
	c.Publish(s, n)
	return true
}

// AdmitAhead is Admit for a cache without groups and a sequence that also gets the blocks for tokens yet to come: those
// of its first slots tokens. The cache publishes only those that the first known tokens fill.
func (c *Cache) AdmitAhead(s Seq, known, slots, reserve, spare int) bool {
	if !c.Admit(s, int(c.hits*c.blockSize), max(slots, reserve), spare) {
		return false
	}
	c.allocate(&c.seqs[s], c.blocksFor(slots))
	c.Publish(s, known)
	return true
}

// Hold is Admit for a cache without groups and blocks that are not published, since their content is yet to come.
func (c *Cache) Hold(s Seq, n, spare int) bool {
	if !c.Admit(s, int(c.hits*c.blockSize), n, spare) {
		return false
	}
	c.allocate(&c.seqs[s], c.blocksFor(n))
	return true
}

// AdmitNeed returns how many free blocks Admit would take for the first n tokens after the last lookup.
func (c *Cache) AdmitNeed(n int) int { return int(c.blocksFor(n) - c.hits + c.freeHits) }

// BlocksNeeded returns how many more blocks s needs for its first n tokens. Extend may free some before.
func (c *Cache) BlocksNeeded(s Seq, n int) int {
	if c.groups != nil {
		return int(c.groups.lacks(&c.groups.seqs[s], int32(n)))
	}
	return int(c.blocksFor(n) - c.seqs[s].blocks)
}

// Extend gives s, whose first computed tokens have been scheduled, the blocks that it lacks for its first n
// tokens. It then publishes the blocks that the first known tokens fill. With asynchronous scheduling the
// newest token is not known yet, and vLLM hashes only known tokens. It may also be that the last inFlight of
// the scheduled tokens are still being computed. Extend returns false if there are too few free blocks. It
// then has only freed the blocks that a window has left.
func (c *Cache) Extend(s Seq, n, known, computed, inFlight int) bool {
	if c.groups != nil {
		extended := c.groups.extend(s, int32(n), int32(computed), int32(inFlight))
		if extended {
			c.Publish(s, known)
		}
		return extended
	}
	q, blocks := &c.seqs[s], c.blocksFor(n)
	if blocks-q.blocks > c.free {
		return false
	}
	c.allocate(q, blocks)
	c.Publish(s, known)
	return true
}

// Publish publishes the blocks that the first n tokens of s fill (BlockPool.cache_full_blocks). It does
// nothing if caching is off.
func (c *Cache) Publish(s Seq, n int) {
	switch {
	case !c.caching:
	case c.groups != nil:
		c.groups.publishTokens(s, int32(n))
	default:
		c.publishBlocks(s, int32(n)/c.blockSize)
	}
}

// blocksFor returns how many blocks n tokens occupy.
func (c *Cache) blocksFor(n int) int32 {
	return (int32(n) + c.blockSize - 1) / c.blockSize
}

// allocate takes free blocks until q holds the given number.
func (c *Cache) allocate(q *sequence, blocks int32) {
	if need := blocks - q.blocks; need > 0 {
		c.takeFree(need)
		q.blocks = blocks
	}
}

// pin makes q hold the hits of e (BlockPool.touch). It splits other blocks off their run.
func (c *Cache) pin(q *sequence, e extent) {
	r, _ := c.oldestCopy(e.node, e.lo)
	if c.fencing {
		c.noteTaken(r, e.lo, e.hi)
	}
	if e.lo > c.runs[r].lo {
		r = c.split(r, e.lo)
	}
	if e.hi < c.runs[r].hi {
		c.split(r, e.hi)
	}
	x := &c.runs[r]
	if x.refs == 0 {
		if x.unhashed > 0 {
			c.splitUnhashed(r)
			x = &c.runs[r]
		}
		c.unqueue(r)
		c.free -= x.hi - x.lo
		x.splitOff = none
	}
	x.refs++
	q.held = append(q.held, heldRange{r, e.hi})
}

// publishBlocks publishes the first count blocks of s, which must be full.
func (c *Cache) publishBlocks(s Seq, count int32) {
	q := &c.seqs[s]
	for q.hashed < count {
		span := q.path[q.publishSpan]
		hi := min((span.End-c.lookahead)/c.blockSize, count)
		if hi > q.hashed {
			c.publishExtent(s, span.Node, q.hashed, hi)
			q.hashed = hi
		}
		if hi < count {
			q.publishSpan++
		}
	}
}

// publishExtent publishes blocks lo to hi of s, which are blocks of node n. They extend the last run of s if
// s alone holds it, it was not split while held, it has no fence, and the blocks have no copy. Otherwise they
// become a new run, which comes after the runs with older copies in the list of n.
func (c *Cache) publishExtent(s Seq, n Node, lo, hi int32) {
	if w, ok := c.writer(n); ok && w != s {
		c.catchUp(w) // whose copies are older
	}
	if c.watcher != nil {
		c.notify(c.watcher.Inserted, n, lo, hi)
	}
	q := &c.seqs[s]
	if last := len(q.held) - 1; last >= 0 {
		h := &q.held[last]
		r := h.firstRun
		for c.runs[r].hi < h.hi {
			r = c.runs[r].splitOff
		}
		x := &c.runs[r]
		fenced := c.fencing && c.fences[r] != fence{} // for a sequence that had them, too
		if x.node == n && x.refs == 1 && x.splitOff == none && !fenced && !c.hasCopy(n, lo, hi) {
			x.hi, h.hi = hi, hi
			return
		}
	}
	q.held = append(q.held, heldRange{c.newRun(run{node: n, lo: lo, hi: hi, refs: 1}), hi})
}

// Release frees the blocks of s and leaves it open (KVCacheManager.free), in each group from the last to the
// first.
func (c *Cache) Release(s Seq) {
	if c.groups != nil {
		c.groups.releaseAll(s)
		return
	}
	q := &c.seqs[s]
	unhashed := q.blocks - q.hashed
	if q.fence != (fence{}) && unhashed > 0 {
		c.freeFenced(q, unhashed)
		unhashed = 0
	}
	if len(q.held) == 0 || c.unhashedFirst {
		c.freeUnhashed(unhashed)
		unhashed = 0
	}
	for i := len(q.held) - 1; i >= 0; i-- {
		h := q.held[i]
		c.chain = append(c.chain[:0], h.firstRun)
		for c.runs[c.chain[len(c.chain)-1]].hi < h.hi {
			c.chain = append(c.chain, c.runs[c.chain[len(c.chain)-1]].splitOff)
		}
		for k := len(c.chain) - 1; k >= 0; k-- {
			x := &c.runs[c.chain[k]]
			if x.refs--; x.refs > 0 {
				c.freeUnhashed(unhashed)
			} else {
				x.unhashed = unhashed
				c.freeRun(c.chain[k])
			}
			unhashed = 0 // they were freed with the last run
		}
	}
	q.held, q.blocks, q.hashed, q.publishSpan, q.fence = q.held[:0], 0, 0, 0, fence{}
}

// freeUnhashed adds n unhashed blocks to the free queue.
func (c *Cache) freeUnhashed(n int32) {
	switch {
	case n == 0:
	case c.unhashedFirst:
		c.free += n
		c.queueUnhashedFront(n)
	default:
		c.freeRun(c.newRun(run{node: noNode, unhashed: n}))
	}
}

// Touch publishes the blocks that the first n tokens of path fill and makes them the last to be evicted, as
// if a sequence had held and freed them. If there are more of them than in the cache, it takes the first.
func (c *Cache) Touch(path Path, n int) {
	n = min(n/int(c.blockSize), int(c.total)) * int(c.blockSize)
	s := c.Open(path, n)
	c.Lookup(s, n)
	c.Admit(s, n, n, 0)
	c.Close(s)
}
