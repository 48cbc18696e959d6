package kv

// blockPool is the blocks of all groups, one by one (BlockPool in vllm/v1/core/block_pool.py). Unlike runs, it
// can evict and free any block of a sequence alone.
type blockPool struct {
	c      *Cache // whose count of free blocks, tree and watcher it uses
	groups int
	blocks []block
	// The free queue is a list of the free blocks.
	freeHead, freeTail int32
	// hashed has the nodes with hashed blocks, at the index that byNode gives, and lists their blocks for each
	// group (see list). The elements of hashed in spare are not in use.
	byNode nodeTable
	hashed []hashedNode
	lists  []hashedList
	spare  []int32
}

// block is a block. If it is hashed, it has the content of block index of a node for its group.
type block struct {
	node               int32 // the index in hashed of its node, or none if it is not hashed
	index, group       int32
	refs               int32 // the number of sequences that hold it
	prevFree, nextFree int32 // neighbors in the free queue
	// Blocks with the same content form a list, oldest first. The prevCopy of the first one is the last.
	prevCopy, nextCopy int32
}

// hashedNode is a node and how many contents of its blocks are hashed, in all groups.
type hashedNode struct {
	node  Node
	count int32
}

// hashedList is the hashed blocks of a node for a group: oldest[i] is the oldest copy of block first+i, or none.
// Its length can be shorter than the node's.
type hashedList struct {
	first  int32
	oldest []int32
}

// list returns the list of a node, by its index in hashed, for group g.
func (p *blockPool) list(node int32, g int) *hashedList { return &p.lists[int(node)*p.groups+g] }

// newBlockPool returns a pool of free blocks, in ascending order.
func newBlockPool(c *Cache, groups int) blockPool {
	p := blockPool{c: c, groups: groups, blocks: make([]block, c.total), freeHead: none, freeTail: none,
		byNode: newNodeTable()}
	for b := range c.total {
		p.blocks[b] = block{node: none, prevFree: b - 1, nextFree: b + 1}
	}
	if c.total > 0 {
		p.freeHead, p.freeTail = 0, c.total-1
		p.blocks[c.total-1].nextFree = none
	}
	return p
}

// find returns the oldest copy of block j of node n for group g, or none.
func (p *blockPool) find(g int, n Node, j int32) int32 {
	at := p.byNode.get(n)
	if at == none {
		return none
	}
	x := p.list(at, g)
	if i := j - x.first; 0 <= i && i < int32(len(x.oldest)) {
		return x.oldest[i]
	}
	return none
}

// has reports whether block j of node n is hashed for group g.
func (p *blockPool) has(g int, n Node, j int32) bool { return p.find(g, n, j) != none }

// take removes the first n blocks from the free queue, which must have that many, evicts those that are hashed
// and appends them to list.
func (p *blockPool) take(list []int32, n int) []int32 {
	b := p.freeHead
	for range n {
		x := &p.blocks[b]
		if x.node != none {
			p.evict(b)
		}
		x.refs = 1
		list = append(list, b)
		b = x.nextFree
	}
	p.c.free -= int32(n)
	if p.freeHead = b; b != none {
		p.blocks[b].prevFree = none
	} else {
		p.freeTail = none
	}
	return list
}

// pin adds a holder to b.
func (p *blockPool) pin(b int32) {
	x := &p.blocks[b]
	if x.refs == 0 {
		p.unqueue(b)
		p.c.free--
	}
	x.refs++
}

// release removes a holder from each of the blocks. Those without another one join the free queue in this
// order (BlockPool.free_blocks): at the end or, if they are not hashed and the cache says so, at the front.
func (p *blockPool) release(blocks []int32) {
	front := none
	for _, b := range blocks {
		x := &p.blocks[b]
		if x.refs--; x.refs > 0 {
			continue
		}
		p.c.free++
		switch {
		case x.node != none || !p.c.unhashedFirst:
			p.queueAfter(b, p.freeTail)
		default:
			p.queueAfter(b, front)
			front = b
		}
	}
}

// queueAfter inserts b in the free queue after prev, or at the front if prev is none.
func (p *blockPool) queueAfter(b, prev int32) {
	next := p.freeHead
	if prev != none {
		next = p.blocks[prev].nextFree
		p.blocks[prev].nextFree = b
	} else {
		p.freeHead = b
	}
	if next != none {
		p.blocks[next].prevFree = b
	} else {
		p.freeTail = b
	}
	p.blocks[b].prevFree, p.blocks[b].nextFree = prev, next
}

// unqueue removes b from the free queue.
func (p *blockPool) unqueue(b int32) {
	x := &p.blocks[b]
	if x.prevFree != none {
		p.blocks[x.prevFree].nextFree = x.nextFree
	} else {
		p.freeHead = x.nextFree
	}
	if x.nextFree != none {
		p.blocks[x.nextFree].prevFree = x.prevFree
	} else {
		p.freeTail = x.prevFree
	}
}

// publish makes b, which is not hashed, the newest copy of block j of the node at an index in hashed, for group g.
func (p *blockPool) publish(b int32, g int, node, j int32) {
	x := p.list(node, g)
	i := int(j - x.first)
	for len(x.oldest) <= i {
		x.oldest = append(x.oldest, none)
	}
	oldest, q := &x.oldest[i], &p.blocks[b]
	q.node, q.index, q.group, q.nextCopy = node, j, int32(g), none
	if *oldest != none {
		last := p.blocks[*oldest].prevCopy
		q.prevCopy, p.blocks[last].nextCopy, p.blocks[*oldest].prevCopy = last, b, b
		return
	}
	q.prevCopy, *oldest = b, b
	p.hashed[node].count++
	if p.c.watcher != nil {
		p.notify(q, true)
	}
}

// indexOf returns the index in hashed of node n.
func (p *blockPool) indexOf(n Node) int32 {
	if at := p.byNode.get(n); at != none {
		return at
	}
	return p.addNode(n)
}

// addNode adds a node without hashed blocks and returns its index in hashed.
func (p *blockPool) addNode(n Node) int32 {
	var at int32
	if last := len(p.spare) - 1; last >= 0 {
		at, p.spare = p.spare[last], p.spare[:last]
	} else {
		at = int32(len(p.hashed))
		p.hashed, p.lists = append(p.hashed, hashedNode{}), append(p.lists, make([]hashedList, p.groups)...)
	}
	p.byNode.set(n, at)
	p.c.tree.ref(n)
	p.hashed[at].node = n
	start := p.c.tree.nodes[n].key.start
	for g := range p.groups {
		x := p.list(at, g)
		x.first, x.oldest = start/int32(p.c.groups.groups[g].BlockSize), x.oldest[:0]
	}
	return at
}

// evict makes b, which is hashed, a block that is not.
func (p *blockPool) evict(b int32) {
	q := &p.blocks[b]
	at := q.node
	list := p.list(at, int(q.group))
	oldest := &list.oldest[q.index-list.first]
	q.node = none
	switch {
	case *oldest != b:
		p.blocks[q.prevCopy].nextCopy = q.nextCopy
		if q.nextCopy != none {
			p.blocks[q.nextCopy].prevCopy = q.prevCopy
		} else {
			p.blocks[*oldest].prevCopy = q.prevCopy
		}
		return
	case q.nextCopy != none:
		p.blocks[q.nextCopy].prevCopy, *oldest = q.prevCopy, q.nextCopy
		return
	}
	*oldest = none
	if p.c.watcher != nil {
		gone := *q
		gone.node = at
		p.notify(&gone, false)
	}
	x := &p.hashed[at]
	if x.count--; x.count == 0 {
		p.byNode.remove(x.node)
		p.spare = append(p.spare, at)
		p.c.tree.unref(x.node)
	}
}

// notify notifies the watcher, which there is, that a content got its first copy or lost its last one.
func (p *blockPool) notify(q *block, inserted bool) {
	c, n := p.c, p.hashed[q.node].node
	switch {
	case !c.tree.nodes[n].named:
	case inserted:
		c.watcher.Inserted(int(q.group), n, q.index, q.index+1)
	default:
		c.watcher.Evicted(int(q.group), n, q.index, q.index+1)
	}
}
