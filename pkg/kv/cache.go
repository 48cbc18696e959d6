package kv

// Seq is a sequence's number in a cache.
type Seq int32

// hold is a sequence's claim on the blocks of run, and of what was split off
// to its right, up to block end.
type hold struct{ run, end int32 }

type sequence struct {
	path  Path
	holds []hold
	// blocks is how many it owns; the first hashed of them can be found. It also
	// owns the window's blocks, extra of them.
	blocks, hashed, extra int32
	// span is the path's span that block hashed lies in, or an earlier one.
	span int
	// A growing sequence gets one token a tick: it has base + tick tokens, the
	// behind newest of them not known yet, and blocks and hashed are brought up to
	// date only when somebody looks.
	growing bool
	behind  int32
	base    int64
}

// Cache is the block cache of one replica: a fixed number of blocks of a fixed
// number of tokens. Blocks without holder stay findable until evicted, the
// least recently freed first and each sequence's last block first.
type Cache struct {
	tree      *Tree
	blockSize int32
	total     int32
	caching   bool
	window    window

	free       int32 // blocks without holder
	runs       []run
	spare      []int32
	head, tail int32 // of the free list
	index      index

	seqs      []sequence
	spareSeqs []Seq

	// tick is the clock, phase its remainder by the block size.
	tick  int64
	phase int32
	// due[t % blockSize] is how many growing sequences need a block at tick t.
	due []int32
	// writers are the growing sequences whose output others can name.
	writers map[Node]Seq

	// found is what the last Lookup found: hits blocks in all, in order, of which
	// idle have no holder.
	found      []stretch
	hits, idle int32
	chain      []int32 // scratch of Release

	watcher Watcher // nil if nobody watches
}

type stretch struct {
	node   Node
	lo, hi int32
}

// NewCache returns a cache of blocks blocks of blockSize tokens, all free. If
// caching is false nothing is ever found.
func NewCache(tree *Tree, blocks, blockSize int, caching bool, w Window) *Cache {
	c := &Cache{tree: tree, blockSize: int32(blockSize), total: int32(blocks), caching: caching,
		window: newWindow(w, blockSize),
		free:   int32(blocks), head: none, tail: none, index: newIndex(),
		due: make([]int32, blockSize), writers: map[Node]Seq{}}
	c.pushBack(c.newRun(run{node: None, loose: c.total}))
	return c
}

// Holds returns how many blocks s holds, those of its window among them. Of a
// growing sequence it is what it held when it was last looked at.
func (c *Cache) Holds(s Seq) int { return int(c.seqs[s].blocks + c.seqs[s].extra) }

// Free returns how many blocks have no holder.
func (c *Cache) Free() int { return int(c.free) }

// Total returns how many blocks there are.
func (c *Cache) Total() int { return int(c.total) }

// Open begins a sequence that holds no blocks. The cache keeps path until Close.
func (c *Cache) Open(path Path) Seq {
	var s Seq
	if last := len(c.spareSeqs) - 1; last >= 0 {
		s = c.spareSeqs[last]
		c.spareSeqs = c.spareSeqs[:last]
	} else {
		c.seqs = append(c.seqs, sequence{})
		s = Seq(len(c.seqs) - 1)
	}
	c.seqs[s] = sequence{path: path, holds: c.seqs[s].holds[:0]}
	return s
}

// Close frees what s holds and ends it.
func (c *Cache) Close(s Seq) {
	c.Release(s)
	c.seqs[s].path = nil
	c.spareSeqs = append(c.spareSeqs, s)
}

// BlockSize returns the number of tokens in a block.
func (c *Cache) BlockSize() int { return int(c.blockSize) }

// Lookup returns how many leading tokens of s, of the first upto, are in the
// cache in whole blocks. It holds nothing.
func (c *Cache) Lookup(s Seq, upto int) int { return c.Match(c.seqs[s].path, upto) }

// Match is Lookup for a path that is not open.
func (c *Cache) Match(path Path, upto int) int {
	return c.match(path, int32(upto)/c.blockSize) * int(c.blockSize)
}

// match finds the longest unbroken run of leading blocks of path.
func (c *Cache) match(path Path, limit int32) int {
	c.found, c.idle, c.hits = c.found[:0], 0, 0
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
			r, stop := c.covering(span.Node, c.hits)
			if r == none {
				return int(c.hits)
			}
			stop = min(stop, end)
			c.found = append(c.found, stretch{span.Node, c.hits, stop})
			if c.runs[r].refs == 0 {
				c.idle += stop - c.hits
			}
			c.hits = stop
		}
	}
	return int(c.hits)
}

// Admit gives s, which holds nothing, the blocks that the Lookup just before
// found and new ones for all its tokens up to upto. It changes nothing and
// returns false if there are not enough free blocks for its tokens up to room,
// at least upto, and for spare ones beside them.
func (c *Cache) Admit(s Seq, upto, room, spare int) bool {
	if c.needs(0, c.blocksFor(room))-c.hits+c.idle > c.free-int32(spare) {
		return false
	}
	q := &c.seqs[s]
	for _, f := range c.found {
		c.take(q, f)
	}
	q.blocks, q.hashed, q.span = c.hits, c.hits, 0
	c.grant(q, c.blocksFor(upto))
	c.Know(s, upto)
	return true
}

// Missing returns how many more blocks s needs to hold its tokens up to upto.
func (c *Cache) Missing(s Seq, upto int) int {
	return int(c.needs(c.seqs[s].blocks, c.blocksFor(upto)))
}

// Extend gives s new blocks for its tokens up to upto, of which the first known
// are known. It changes nothing and returns false if there are not enough free
// blocks.
func (c *Cache) Extend(s Seq, upto, known int) bool {
	q, blocks := &c.seqs[s], c.blocksFor(upto)
	if c.needs(q.blocks, blocks) > c.free {
		return false
	}
	c.grant(q, blocks)
	c.Know(s, known)
	return true
}

// Know makes the blocks of s findable that its first tokens tokens fill.
func (c *Cache) Know(s Seq, tokens int) {
	if c.caching {
		c.register(s, int32(tokens)/c.blockSize)
	}
}

func (c *Cache) blocksFor(tokens int) int32 {
	return (int32(tokens) + c.blockSize - 1) / c.blockSize
}

// needs returns how many blocks a sequence takes to own to blocks instead of
// from, with those of its window.
func (c *Cache) needs(from, to int32) int32 {
	return to - from + c.window.extra(to) - c.window.extra(from)
}

// grant gives q, of whose blocks it may not have paid the window's yet, blocks
// in all.
func (c *Cache) grant(q *sequence, blocks int32) {
	extra := c.window.extra(blocks)
	if need := blocks - q.blocks + extra - q.extra; need > 0 {
		c.evict(need)
		q.blocks, q.extra = blocks, extra
	}
}

// take makes q a holder of what was found.
func (c *Cache) take(q *sequence, f stretch) {
	r, _ := c.covering(f.node, f.lo)
	if f.lo > c.runs[r].lo {
		r = c.split(r, f.lo)
	}
	if f.hi < c.runs[r].hi {
		c.split(r, f.hi)
	}
	x := &c.runs[r]
	if x.refs == 0 {
		if x.loose > 0 {
			c.shed(r)
			x = &c.runs[r]
		}
		c.unlink(r)
		c.free -= x.hi - x.lo
		x.right = none
	}
	x.refs++
	q.holds = append(q.holds, hold{r, f.hi})
}

// register makes the blocks of s below full findable.
func (c *Cache) register(s Seq, full int32) {
	q := &c.seqs[s]
	for q.hashed < full {
		span := q.path[q.span]
		hi := min(span.End/c.blockSize, full)
		if hi > q.hashed {
			c.append(s, span.Node, q.hashed, hi)
			q = &c.seqs[s]
			q.hashed = hi
		}
		if hi < full {
			q.span++
		}
	}
}

// append registers blocks lo to hi of s under node n: as part of its last run
// where that is its own and no other copy of them was registered before.
func (c *Cache) append(s Seq, n Node, lo, hi int32) {
	if w, ok := c.writer(n); ok && w != s {
		c.update(w)
	}
	if c.watcher != nil {
		c.tell(c.watcher.Found, n, lo, hi)
	}
	q := &c.seqs[s]
	if last := len(q.holds) - 1; last >= 0 {
		h := &q.holds[last]
		r := h.run
		for c.runs[r].hi < h.end {
			r = c.runs[r].right
		}
		x := &c.runs[r]
		if x.node == n && x.refs == 1 && x.right == none && !c.overlaps(n, lo, hi) {
			x.hi, h.end = hi, hi
			return
		}
	}
	q.holds = append(q.holds, hold{c.newRun(run{node: n, lo: lo, hi: hi, refs: 1}), hi})
}

// Release frees the blocks of s, its window's and then the last first, and leaves
// it open.
func (c *Cache) Release(s Seq) {
	q := &c.seqs[s]
	c.freeLoose(q.extra)
	loose := q.blocks - q.hashed
	if len(q.holds) == 0 {
		c.freeLoose(loose)
	}
	for i := len(q.holds) - 1; i >= 0; i-- {
		h := q.holds[i]
		c.chain = append(c.chain[:0], h.run)
		for c.runs[c.chain[len(c.chain)-1]].hi < h.end {
			c.chain = append(c.chain, c.runs[c.chain[len(c.chain)-1]].right)
		}
		for k := len(c.chain) - 1; k >= 0; k-- {
			x := &c.runs[c.chain[k]]
			if x.refs--; x.refs > 0 {
				c.freeLoose(loose)
			} else {
				x.loose = loose
				c.retire(c.chain[k])
			}
			loose = 0
		}
	}
	q.holds, q.blocks, q.hashed, q.extra, q.span = q.holds[:0], 0, 0, 0, 0
}

func (c *Cache) freeLoose(n int32) {
	if n > 0 {
		c.retire(c.newRun(run{node: None, loose: n}))
	}
}

// Touch makes the full blocks among the first upto tokens of path the most
// recently used ones, as if a sequence of them had come and gone. Of a path
// that exceeds the cache it keeps the beginning.
func (c *Cache) Touch(path Path, upto int) {
	upto = min(upto/int(c.blockSize), int(c.total)) * int(c.blockSize)
	s := c.Open(path)
	c.Lookup(s, upto)
	c.Admit(s, upto, upto, 0)
	c.Close(s)
}
