package kv

// Seq is a sequence's number in a cache.
type Seq int32

// claim is a sequence's hold on the blocks of run, and of the runs split off to its right, up to
// block end.
type claim struct{ run, end int32 }

type sequence struct {
	path   Path
	claims []claim
	// blocks is the number of blocks that the sequence owns, hashed the number of leading ones among
	// them that can be found, and extra the number of further blocks for its window.
	blocks, hashed, extra int32
	// span is the index in path of the span that contains the first unhashed block, or of an earlier
	// one.
	span int
	// A growing sequence gets one token a tick: it has base + tick tokens, of which the last lag tokens
	// are not visible yet. Its fields blocks, hashed and extra are updated only on demand.
	growing bool
	lag     int32
	base    int64
}

// Cache is the block cache of one replica: a fixed number of blocks of a fixed number of tokens.
// Blocks without a holder can be found until they are evicted: the least recently freed block goes
// first. A sequence frees its last block first.
type Cache struct {
	tree      *Tree
	blockSize int32
	total     int32
	caching   bool
	window    window

	free       int32 // blocks without a holder
	runs       []run
	spareRuns  []int32 // indices in runs that are not in use
	head, tail int32   // of the free list
	index      index

	seqs      []sequence
	spareSeqs []Seq // numbers of closed sequences

	// tick is the clock, phase is tick modulo the block size.
	tick  int64
	phase int32
	// blockDemand[t % blockSize] is the number of growing sequences that need a block at tick t.
	blockDemand []int32
	// writers maps the node of each named output to the growing sequence that produces it.
	writers map[Node]Seq

	// matched holds what the last Lookup found, in order: hits blocks in total, unheldHits of them
	// without a holder.
	matched          []extent
	hits, unheldHits int32
	chain            []int32 // a buffer of Release

	watcher Watcher // nil if there is none
}

// extent is the blocks of node from lo on and before hi.
type extent struct {
	node   Node
	lo, hi int32
}

// NewCache returns a cache with the given number of blocks, all free, of blockSize tokens each. If
// caching is false, lookups find nothing.
func NewCache(tree *Tree, blocks, blockSize int, caching bool, w Window) *Cache {
	c := &Cache{tree: tree, blockSize: int32(blockSize), total: int32(blocks), caching: caching,
		window: newWindow(w, blockSize),
		free:   int32(blocks), head: none, tail: none, index: newIndex(),
		blockDemand: make([]int32, blockSize), writers: map[Node]Seq{}}
	c.pushBack(c.newRun(run{node: noNode, unhashed: c.total}))
	return c
}

// OwnedBlocks returns how many blocks s owns, including its window's. For a growing sequence it is the
// number at the last update.
func (c *Cache) OwnedBlocks(s Seq) int { return int(c.seqs[s].blocks + c.seqs[s].extra) }

// Free returns how many blocks have no holder.
func (c *Cache) Free() int { return int(c.free) }

// Total returns how many blocks there are.
func (c *Cache) Total() int { return int(c.total) }

// Open starts a sequence that owns no blocks. The cache keeps path until Close.
func (c *Cache) Open(path Path) Seq {
	var s Seq
	if last := len(c.spareSeqs) - 1; last >= 0 {
		s = c.spareSeqs[last]
		c.spareSeqs = c.spareSeqs[:last]
	} else {
		c.seqs = append(c.seqs, sequence{})
		s = Seq(len(c.seqs) - 1)
	}
	c.seqs[s] = sequence{path: path, claims: c.seqs[s].claims[:0]}
	return s
}

// Close frees the blocks of s and ends it.
func (c *Cache) Close(s Seq) {
	c.Release(s)
	c.seqs[s].path = nil
	c.spareSeqs = append(c.spareSeqs, s)
}

// BlockSize returns the number of tokens in a block.
func (c *Cache) BlockSize() int { return int(c.blockSize) }

// Lookup returns how many of the first upto tokens of s are cached as a prefix of full blocks. It
// claims nothing.
func (c *Cache) Lookup(s Seq, upto int) int { return c.Match(c.seqs[s].path, upto) }

// Match is Lookup for a path that is not open.
func (c *Cache) Match(path Path, upto int) int {
	return c.match(path, int32(upto)/c.blockSize) * int(c.blockSize)
}

// match finds the longest prefix of path whose blocks are all cached.
func (c *Cache) match(path Path, limit int32) int {
	c.matched, c.unheldHits, c.hits = c.matched[:0], 0, 0
	if !c.caching {
		return 0
	}
	for _, span := range path {
		end := min(span.End/c.blockSize, limit)
		if end <= c.hits {
			continue
		}
		c.sync(span.Node)
		for c.hits < end {
			r, stop := c.firstCopy(span.Node, c.hits)
			if r == none {
				return int(c.hits)
			}
			stop = min(stop, end)
			c.matched = append(c.matched, extent{span.Node, c.hits, stop})
			if c.runs[r].refs == 0 {
				c.unheldHits += stop - c.hits
			}
			c.hits = stop
		}
	}
	return int(c.hits)
}

// Admit gives s, which owns nothing, the blocks that the preceding Lookup found and new ones for
// all its tokens up to upto. It changes nothing and returns false unless there are enough free
// blocks for its tokens up to reserve, which is at least upto, and spare blocks besides.
func (c *Cache) Admit(s Seq, upto, reserve, spare int) bool {
	if c.needs(0, c.blocksFor(reserve))-c.hits+c.unheldHits > c.free-int32(spare) {
		return false
	}
	q := &c.seqs[s]
	for _, f := range c.matched {
		c.pin(q, f)
	}
	q.blocks, q.hashed, q.span = c.hits, c.hits, 0
	c.allocate(q, c.blocksFor(upto))
	c.Publish(s, upto)
	return true
}

// BlocksNeeded returns how many more blocks s needs for its tokens up to upto.
func (c *Cache) BlocksNeeded(s Seq, upto int) int {
	return int(c.needs(c.seqs[s].blocks, c.blocksFor(upto)))
}

// Extend gives s new blocks for its tokens up to upto and publishes those that its tokens up to
// visible fill. It changes nothing and returns false if there are too few free blocks.
func (c *Cache) Extend(s Seq, upto, visible int) bool {
	q, blocks := &c.seqs[s], c.blocksFor(upto)
	if c.needs(q.blocks, blocks) > c.free {
		return false
	}
	c.allocate(q, blocks)
	c.Publish(s, visible)
	return true
}

// Publish makes the blocks of s findable that the given number of leading tokens fill.
func (c *Cache) Publish(s Seq, tokens int) {
	if c.caching {
		c.register(s, int32(tokens)/c.blockSize)
	}
}

func (c *Cache) blocksFor(tokens int) int32 {
	return (int32(tokens) + c.blockSize - 1) / c.blockSize
}

// needs returns how many more blocks, including its window's, a sequence that has have blocks needs
// for want blocks.
func (c *Cache) needs(have, want int32) int32 {
	return want - have + c.window.extra(want) - c.window.extra(have)
}

// allocate takes free blocks until q has the given number of them, and those of its window.
func (c *Cache) allocate(q *sequence, blocks int32) {
	extra := c.window.extra(blocks)
	if need := blocks - q.blocks + extra - q.extra; need > 0 {
		c.evict(need)
		q.blocks, q.extra = blocks, extra
	}
}

// pin makes q a holder of the found extent f.
func (c *Cache) pin(q *sequence, f extent) {
	r, _ := c.firstCopy(f.node, f.lo)
	if f.lo > c.runs[r].lo {
		r = c.split(r, f.lo)
	}
	if f.hi < c.runs[r].hi {
		c.split(r, f.hi)
	}
	x := &c.runs[r]
	if x.refs == 0 {
		if x.unhashed > 0 {
			c.splitUnhashed(r)
			x = &c.runs[r]
		}
		c.unlink(r)
		c.free -= x.hi - x.lo
		x.right = none
	}
	x.refs++
	q.claims = append(q.claims, claim{r, f.hi})
}

// register makes the first count blocks of s, which must be full, findable.
func (c *Cache) register(s Seq, count int32) {
	q := &c.seqs[s]
	for q.hashed < count {
		span := q.path[q.span]
		hi := min(span.End/c.blockSize, count)
		if hi > q.hashed {
			c.append(s, span.Node, q.hashed, hi)
			q = &c.seqs[s]
			q.hashed = hi
		}
		if hi < count {
			q.span++
		}
	}
}

// append registers blocks lo to hi of s under node n. They extend the sequence's last run if it
// alone holds that run and no other copy of the blocks was registered before.
func (c *Cache) append(s Seq, n Node, lo, hi int32) {
	if w, ok := c.writer(n); ok && w != s {
		c.update(w)
	}
	if c.watcher != nil {
		c.notify(c.watcher.Inserted, n, lo, hi)
	}
	q := &c.seqs[s]
	if last := len(q.claims) - 1; last >= 0 {
		h := &q.claims[last]
		r := h.run
		for c.runs[r].hi < h.end {
			r = c.runs[r].right
		}
		x := &c.runs[r]
		if x.node == n && x.refs == 1 && x.right == none && !c.hasCopy(n, lo, hi) {
			x.hi, h.end = hi, hi
			return
		}
	}
	q.claims = append(q.claims, claim{c.newRun(run{node: n, lo: lo, hi: hi, refs: 1}), hi})
}

// Release frees the blocks of s and leaves it open: its window's blocks first, then the others from
// the last to the first.
func (c *Cache) Release(s Seq) {
	q := &c.seqs[s]
	c.freeUnhashed(q.extra)
	unhashed := q.blocks - q.hashed
	if len(q.claims) == 0 {
		c.freeUnhashed(unhashed)
	}
	for i := len(q.claims) - 1; i >= 0; i-- {
		h := q.claims[i]
		c.chain = append(c.chain[:0], h.run)
		for c.runs[c.chain[len(c.chain)-1]].hi < h.end {
			c.chain = append(c.chain, c.runs[c.chain[len(c.chain)-1]].right)
		}
		for k := len(c.chain) - 1; k >= 0; k-- {
			x := &c.runs[c.chain[k]]
			if x.refs--; x.refs > 0 {
				c.freeUnhashed(unhashed)
			} else {
				x.unhashed = unhashed
				c.moveToFreeList(c.chain[k])
			}
			unhashed = 0
		}
	}
	q.claims, q.blocks, q.hashed, q.extra, q.span = q.claims[:0], 0, 0, 0, 0
}

func (c *Cache) freeUnhashed(n int32) {
	if n > 0 {
		c.moveToFreeList(c.newRun(run{node: noNode, unhashed: n}))
	}
}

// Touch makes the full blocks among the first upto tokens of path the most recently used ones, as
// if a sequence had used and released them. If the path exceeds the cache, its beginning is kept.
func (c *Cache) Touch(path Path, upto int) {
	upto = min(upto/int(c.blockSize), int(c.total)) * int(c.blockSize)
	s := c.Open(path)
	c.Lookup(s, upto)
	c.Admit(s, upto, upto, 0)
	c.Close(s)
}
