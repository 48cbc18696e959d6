package kv

import "slices"

// Image is a snapshot of which blocks of named nodes are hashed in a cache, as of the last Refresh. It logs
// the changes since then, 16 bytes each, and Refresh applies them. A Refresh takes time in proportion to
// the number of changes, not to the size of the cache.
type Image struct {
	changeLog
	cache *Cache
}

// NewImage returns an empty image of c and makes it the watcher of c. No block of c may be hashed yet.
// Another watcher may replace the image if it forwards all notifications to it.
func NewImage(c *Cache) *Image {
	m := &Image{newChangeLog(c.tree, c.groupCount()), c}
	c.Watch(m)
	return m
}

// Refresh updates the image to the present.
func (m *Image) Refresh() {
	m.cache.CatchUp()
	m.changeLog.Refresh()
}

// changeLog is what an image has: the blocks at the last Refresh and the changes since then.
type changeLog struct {
	tree *Tree
	log  []change
	// blocks has, for each group, the extents of each node in ascending order, with gaps between them. It
	// holds no references to its nodes, yet their numbers are not reused: blocks that are still there keep their
	// node alive, and so do evictions in the log.
	blocks []map[Node][]extent
}

// change is a call of Inserted or, if inserted is false, of Evicted.
type change struct {
	node     Node
	lo, hi   int32
	group    int16
	inserted bool
}

func newChangeLog(tree *Tree, groups int) changeLog {
	m := changeLog{tree: tree}
	for range groups {
		m.blocks = append(m.blocks, map[Node][]extent{})
	}
	return m
}

// Inserted is called by what the image is of.
func (m *changeLog) Inserted(group int, n Node, lo, hi int32) {
	m.add(change{n, lo, hi, int16(group), true})
}

// Evicted is called by what the image is of.
func (m *changeLog) Evicted(group int, n Node, lo, hi int32) {
	m.add(change{n, lo, hi, int16(group), false})
}

func (m *changeLog) add(c change) {
	m.tree.ref(c.node)
	m.log = append(m.log, c)
}

// Refresh updates the image to the present.
func (m *changeLog) Refresh() {
	for _, c := range m.log {
		c.apply(m.blocks[c.group])
		m.tree.unref(c.node)
	}
	m.log = m.log[:0]
}

// apply makes the change in the extents of nodes.
func (c change) apply(blocks map[Node][]extent) {
	list := blocks[c.node]
	if c.inserted {
		list = insert(list, c)
	} else {
		list = remove(list, c)
	}
	if len(list) == 0 {
		delete(blocks, c.node)
	} else {
		blocks[c.node] = list
	}
}

// insert returns list with the blocks of c, which are not in it.
func insert(list []extent, c change) []extent {
	i := 0
	for i < len(list) && list[i].hi < c.lo {
		i++
	}
	lo, hi := c.lo, c.hi
	k := i
	for k < len(list) && list[k].lo <= hi { // extents without a gap between become one
		lo, hi = min(lo, list[k].lo), max(hi, list[k].hi)
		k++
	}
	return slices.Replace(list, i, k, extent{c.node, lo, hi})
}

// remove returns list without the blocks of c, which are all in one of its extents.
func remove(list []extent, c change) []extent {
	for i := range list {
		e := list[i]
		if e.hi <= c.lo || c.hi <= e.lo {
			continue
		}
		var rest []extent
		if e.lo < c.lo {
			rest = append(rest, extent{c.node, e.lo, c.lo})
		}
		if c.hi < e.hi {
			rest = append(rest, extent{c.node, c.hi, e.hi})
		}
		return slices.Replace(list, i, i+1, rest...)
	}
	return list
}

// Match returns what Cache.Match would have returned at the last Refresh.
func (m *Image) Match(path Path, n int) int {
	if g := m.cache.groups; g != nil {
		if !m.cache.caching {
			return 0
		}
		hit, _ := g.layout.longestHit(m, path, int32(n))
		return int(hit)
	}
	size := m.cache.blockSize
	maxBlocks := int32(n) / size
	var hits int32
	for _, span := range path {
		end := min((span.End-m.cache.lookahead)/size, maxBlocks)
		if end <= hits {
			continue
		}
		for _, e := range m.blocks[0][span.Node] {
			if e.lo <= hits && hits < e.hi {
				hits = min(e.hi, end)
				break
			}
		}
		if hits < end {
			break
		}
	}
	if m.cache.dropLastHit {
		hits = max(0, hits-1)
	}
	return int(hits * size)
}

// has reports whether block j of node n is hashed for a group.
func (m *Image) has(group int, n Node, j int32) bool {
	return slices.ContainsFunc(m.blocks[group][n], func(e extent) bool { return e.lo <= j && j < e.hi })
}
