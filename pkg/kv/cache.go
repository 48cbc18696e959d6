// Package kv models the KV cache of one replica as vLLM 0.19.1 manages it: which blocks sequences hold,
// which of them later prompts hit, and which are evicted. Its sources are block_pool.py,
// kv_cache_manager.py and single_type_kv_cache_manager.py in vllm/v1/core. Unlike there, no block is
// reserved as the null block, and sliding windows are simplified (see Window). Since 0.28 vLLM frees
// blocks without a hash to the front of the free queue; here, as before, they go to its end.
//
// The terms:
//   - A sequence is the tokens of one request: its prompt, then its output. Its block j has the tokens
//     from j·B on and before (j+1)·B, where B is the block size. Blocks lo to hi are those with lo ≤ j < hi.
//   - A node replaces the hash of tokens: a Tree gives each named segment of a prompt a Node. The node of
//     a block's last token and the block's number j identify its content, as a block hash does in vLLM.
//   - A block is hashed from its publication to its eviction. Only a full block can be published.
//   - The hits of a prompt are its leading hashed blocks, up to the first block that is not hashed.
//   - Copies are hashed blocks with the same content. As in vLLM, the hit is the oldest copy: the one
//     published first.
//   - A block is held by the sequences that use it, and free if there are none.
//   - The free queue has the free blocks in the order in which they are taken again: the least recently
//     freed one first. A sequence frees its last block first. To take a hashed block evicts it.
//   - A run is a range of consecutive blocks with the same holders, which is stored as one.
//   - A growing sequence gets one token at each Tick, although nothing visits it.
package kv

// Seq is the number of an open sequence in a cache. It is reused after Close.
type Seq int32

// heldRange is a range of hashed blocks that a sequence holds: the first block of run firstRun to the
// one before hi. If the run was split while it was held, the range continues in the run's splitOff.
type heldRange struct{ firstRun, hi int32 }

type sequence struct {
	path Path
	held []heldRange // the hashed blocks, in order
	// blocks is the number of held blocks, hashed how many of them, from the first on, are hashed.
	// windowBlocks is the number of further held blocks, those of the sliding window.
	blocks, hashed, windowBlocks int32
	// publishSpan is the index in path of the span at which publishing goes on. All blocks of earlier
	// spans are hashed.
	publishSpan int
	// A growing sequence has base + tick tokens. The values of the last lag ones are not known yet. Its
	// held, blocks, hashed, windowBlocks and publishSpan are as of the last catchUp.
	growing bool
	lag     int32
	base    int64
}

// Cache is the block cache of one replica: a fixed number of blocks of a fixed number of tokens.
type Cache struct {
	tree      *Tree
	blockSize int32
	total     int32 // blocks
	caching   bool
	window    window

	free               int32 // blocks
	freeHead, freeTail int32 // the first and the last run of the free queue, or none
	runs               []run
	spareRuns          []int32  // indices in runs that are not in use
	firstRun           runTable // of each node

	seqs      []sequence
	spareSeqs []Seq // numbers of closed sequences

	// tick is the number of calls of Tick, phase is tick % blockSize.
	tick  int64
	phase int32
	// growingByPhase[p] is the number of growing sequences that need a block at the ticks of phase p.
	growingByPhase []int32
	// writers maps the node of each named output to the growing sequence that produces it.
	writers map[Node]Seq

	// hitExtents has the hits of the last Lookup or Match in order. There are hits blocks, of which
	// freeHits are free.
	hitExtents     []extent
	hits, freeHits int32
	chain          []int32 // scratch of Release: the runs of one heldRange

	watcher Watcher // nil if there is none
}

// extent is blocks lo to hi of node.
type extent struct {
	node   Node
	lo, hi int32
}

// NewCache returns a cache with the given number of blocks, all free, of blockSize tokens each. If
// caching is false, nothing is published, so that lookups find nothing.
func NewCache(tree *Tree, blocks, blockSize int, caching bool, w Window) *Cache {
	c := &Cache{tree: tree, blockSize: int32(blockSize), total: int32(blocks), caching: caching,
		window: newWindow(w, blockSize),
		free:   int32(blocks), freeHead: none, freeTail: none, firstRun: newRunTable(),
		growingByPhase: make([]int32, blockSize), writers: map[Node]Seq{}}
	c.queueBack(c.newRun(run{node: noNode, unhashed: c.total}))
	return c
}

// Free returns how many blocks are free, hashed ones included.
func (c *Cache) Free() int { return int(c.free) }

// Total returns how many blocks there are.
func (c *Cache) Total() int { return int(c.total) }

// BlockSize returns the number of tokens in a block.
func (c *Cache) BlockSize() int { return int(c.blockSize) }

// Open starts a sequence that holds no blocks. The cache keeps path until Close.
func (c *Cache) Open(path Path) Seq {
	var s Seq
	if last := len(c.spareSeqs) - 1; last >= 0 {
		s = c.spareSeqs[last]
		c.spareSeqs = c.spareSeqs[:last]
	} else {
		c.seqs = append(c.seqs, sequence{})
		s = Seq(len(c.seqs) - 1)
	}
	c.seqs[s] = sequence{path: path, held: c.seqs[s].held[:0]}
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

// HeldBlocks returns how many blocks s holds, including its window's. For a growing sequence the number
// may be out of date and too low.
func (c *Cache) HeldBlocks(s Seq) int { return int(c.seqs[s].blocks + c.seqs[s].windowBlocks) }

// Lookup returns how many tokens are in the hits among the first n tokens of s
// (KVCacheManager.get_computed_blocks). s does not hold the hits until Admit.
func (c *Cache) Lookup(s Seq, n int) int { return c.Match(c.seqs[s].path, n) }

// Match is Lookup for a path that no sequence was opened with.
func (c *Cache) Match(path Path, n int) int {
	return c.match(path, int32(n)/c.blockSize) * int(c.blockSize)
}

// match finds the hits among the first maxBlocks blocks of path and returns their number.
func (c *Cache) match(path Path, maxBlocks int32) int {
	c.hitExtents, c.freeHits, c.hits = c.hitExtents[:0], 0, 0
	if !c.caching {
		return 0
	}
	for _, span := range path {
		end := min(span.End/c.blockSize, maxBlocks)
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

// Admit gives s, which holds nothing, the hits of the preceding Lookup of s and new blocks for the rest
// of its first n tokens. It publishes those that are full: as in vLLM, blocks can be hit before they are
// computed (KVCacheManager.allocate_slots). Admit changes nothing and returns false unless the blocks for
// the first reserve tokens are available with at least spare blocks left over. reserve is at least n.
func (c *Cache) Admit(s Seq, n, reserve, spare int) bool {
	if c.blocksToAdd(0, c.blocksFor(reserve))-c.hits+c.freeHits > c.free-int32(spare) {
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

// BlocksNeeded returns how many more blocks s must get to have those of its first n tokens.
func (c *Cache) BlocksNeeded(s Seq, n int) int {
	return int(c.blocksToAdd(c.seqs[s].blocks, c.blocksFor(n)))
}

// Extend gives s the blocks of its first n tokens that it lacks, and publishes those that its first
// known tokens fill. The values of the tokens after these are not known yet, so that vLLM cannot hash
// them. Extend changes nothing and returns false if there are too few free blocks.
func (c *Cache) Extend(s Seq, n, known int) bool {
	q, blocks := &c.seqs[s], c.blocksFor(n)
	if c.blocksToAdd(q.blocks, blocks) > c.free {
		return false
	}
	c.allocate(q, blocks)
	c.Publish(s, known)
	return true
}

// Publish makes the blocks that the first n tokens of s fill hashed (BlockPool.cache_full_blocks). It
// does nothing if caching is off.
func (c *Cache) Publish(s Seq, n int) {
	if c.caching {
		c.publishBlocks(s, int32(n)/c.blockSize)
	}
}

// blocksFor returns how many blocks n tokens occupy, without a window's.
func (c *Cache) blocksFor(n int) int32 {
	return (int32(n) + c.blockSize - 1) / c.blockSize
}

// blocksToAdd returns how many blocks a sequence must get to go from have blocks to want blocks. The
// result includes the window's blocks; have and want do not.
func (c *Cache) blocksToAdd(have, want int32) int32 {
	return want - have + c.window.size(want) - c.window.size(have)
}

// allocate takes free blocks for q until it has the given number, and those of its window.
func (c *Cache) allocate(q *sequence, blocks int32) {
	windowBlocks := c.window.size(blocks)
	if need := blocks - q.blocks + windowBlocks - q.windowBlocks; need > 0 {
		c.takeFree(need)
		q.blocks, q.windowBlocks = blocks, windowBlocks
	}
}

// pin makes q hold the hits of e (BlockPool.touch). It splits the run that has them, so that a run of
// its own begins and ends where e does.
func (c *Cache) pin(q *sequence, e extent) {
	r, _ := c.oldestCopy(e.node, e.lo)
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

// publishBlocks makes the first count blocks of s hashed, which must be full.
func (c *Cache) publishBlocks(s Seq, count int32) {
	q := &c.seqs[s]
	for q.hashed < count {
		span := q.path[q.publishSpan]
		hi := min(span.End/c.blockSize, count)
		if hi > q.hashed {
			c.publishExtent(s, span.Node, q.hashed, hi)
			q = &c.seqs[s]
			q.hashed = hi
		}
		if hi < count {
			q.publishSpan++
		}
	}
}

// publishExtent makes blocks lo to hi of s hashed, as blocks of node n. They extend the last run of s if
// s alone holds it, it was not split while held, and no copy of the blocks exists. Otherwise they become
// a new run: its place in the list of n makes them newer than all copies.
func (c *Cache) publishExtent(s Seq, n Node, lo, hi int32) {
	if w, ok := c.writer(n); ok && w != s {
		c.catchUp(w) // its copies are older
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
		if x.node == n && x.refs == 1 && x.splitOff == none && !c.hasCopy(n, lo, hi) {
			x.hi, h.hi = hi, hi
			return
		}
	}
	q.held = append(q.held, heldRange{c.newRun(run{node: n, lo: lo, hi: hi, refs: 1}), hi})
}

// Release frees the blocks of s and leaves it open (KVCacheManager.free). The window's blocks go to the
// free queue first, then the others from the last to the first.
func (c *Cache) Release(s Seq) {
	q := &c.seqs[s]
	c.freeUnhashed(q.windowBlocks)
	unhashed := q.blocks - q.hashed
	if len(q.held) == 0 {
		c.freeUnhashed(unhashed)
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
			unhashed = 0 // they are freed with the last run
		}
	}
	q.held, q.blocks, q.hashed, q.windowBlocks, q.publishSpan = q.held[:0], 0, 0, 0, 0
}

// freeUnhashed appends n blocks without a hash to the free queue.
func (c *Cache) freeUnhashed(n int32) {
	if n > 0 {
		c.freeRun(c.newRun(run{node: noNode, unhashed: n}))
	}
}

// Touch publishes the full blocks among the first n tokens of path and makes them the last to be
// evicted, as if a sequence had held and released them. If the cache has fewer blocks, the first of
// them count.
func (c *Cache) Touch(path Path, n int) {
	n = min(n/int(c.blockSize), int(c.total)) * int(c.blockSize)
	s := c.Open(path)
	c.Lookup(s, n)
	c.Admit(s, n, n, 0)
	c.Close(s)
}
