package kv

import "slices"

// Image is a snapshot of which blocks of named nodes are hashed in a cache, as of the last Refresh. It logs
// the changes since then, 16 bytes each, and Refresh applies them. A Refresh takes time in proportion to
// the number of changes, not to the size of the cache.
type Image struct {
	cache *Cache
	log   []change
	// blocks has the hashed extents of each node in ascending order, with gaps between them. It holds no
	// references to its nodes, yet their numbers are not reused: blocks that are still hashed keep their
	// node alive, and so do evictions in the log.
	blocks map[Node][]extent
}

// change is a call of Inserted or, if inserted is false, of Evicted.
type change struct {
	node     Node
	lo, hi   int32
	inserted bool
}

// NewImage returns an empty image of c and makes it the watcher of c. No block of c may be hashed yet.
// Another watcher may replace the image if it forwards all notifications to it.
func NewImage(c *Cache) *Image {
	m := &Image{cache: c, blocks: map[Node][]extent{}}
	c.Watch(m)
	return m
}

// Inserted is called by the cache.
func (m *Image) Inserted(n Node, lo, hi int32) { m.logChange(change{n, lo, hi, true}) }

// Evicted is called by the cache.
func (m *Image) Evicted(n Node, lo, hi int32) { m.logChange(change{n, lo, hi, false}) }

func (m *Image) logChange(c change) {
	m.cache.tree.ref(c.node)
	m.log = append(m.log, c)
}

// Refresh updates the image to the present.
func (m *Image) Refresh() {
	m.cache.CatchUp()
	for _, c := range m.log {
		list := m.blocks[c.node]
		if c.inserted {
			list = insert(list, c)
		} else {
			list = remove(list, c)
		}
		if len(list) == 0 {
			delete(m.blocks, c.node)
		} else {
			m.blocks[c.node] = list
		}
		m.cache.tree.unref(c.node)
	}
	m.log = m.log[:0]
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
	size := m.cache.blockSize
	maxBlocks := int32(n) / size
	var hits int32
	for _, span := range path {
		end := min(span.End/size, maxBlocks)
		if end <= hits {
			continue
		}
		for _, e := range m.blocks[span.Node] {
			if e.lo <= hits && hits < e.hi {
				hits = min(e.hi, end)
				break
			}
		}
		if hits < end {
			break
		}
	}
	return int(hits * size)
}
