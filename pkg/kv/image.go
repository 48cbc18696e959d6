package kv

import "slices"

// Image is a snapshot, as of the last Refresh, of the named blocks that can be found in a cache. It
// logs the changes since then, 16 bytes each, and Refresh replays them: nothing is copied, and a
// refresh costs as much as has changed.
type Image struct {
	cache *Cache
	log   []change
	// blocks holds each node's findable extents, in ascending order and with gaps between them. The log
	// keeps its nodes alive, so that their numbers are not reused. The nodes in blocks need no such
	// care: their extents are still in the cache, or their eviction is in the log.
	blocks map[Node][]extent
}

type change struct {
	node     Node
	lo, hi   int32
	inserted bool
}

// NewImage returns an empty image of c, in which nothing can be found yet, and makes it the watcher
// of c. Another watcher may replace it if it forwards all notifications.
func NewImage(c *Cache) *Image {
	m := &Image{cache: c, blocks: map[Node][]extent{}}
	c.Watch(m)
	return m
}

// Inserted is called by the cache.
func (m *Image) Inserted(n Node, lo, hi int32) { m.note(change{n, lo, hi, true}) }

// Evicted is called by the cache.
func (m *Image) Evicted(n Node, lo, hi int32) { m.note(change{n, lo, hi, false}) }

func (m *Image) note(c change) {
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

// insert adds blocks that are not in list.
func insert(list []extent, c change) []extent {
	i := 0
	for i < len(list) && list[i].hi < c.lo {
		i++
	}
	lo, hi := c.lo, c.hi
	k := i
	for k < len(list) && list[k].lo <= hi { // overlapping or adjacent
		lo, hi = min(lo, list[k].lo), max(hi, list[k].hi)
		k++
	}
	return slices.Replace(list, i, k, extent{c.node, lo, hi})
}

// remove removes blocks that are in list.
func remove(list []extent, c change) []extent {
	for i := range list {
		s := list[i]
		if s.hi <= c.lo || c.hi <= s.lo {
			continue
		}
		var left []extent
		if s.lo < c.lo {
			left = append(left, extent{c.node, s.lo, c.lo})
		}
		if c.hi < s.hi {
			left = append(left, extent{c.node, c.hi, s.hi})
		}
		return slices.Replace(list, i, i+1, left...)
	}
	return list
}

// Match is Cache.Match as of the last Refresh.
func (m *Image) Match(path Path, upto int) int {
	size := m.cache.blockSize
	limit := int32(upto) / size
	var hits int32
	for _, span := range path {
		end := min(span.End/size, limit)
		if end <= hits {
			continue
		}
		for _, s := range m.blocks[span.Node] {
			if s.lo <= hits && hits < s.hi {
				hits = min(s.hi, end)
				break
			}
		}
		if hits < end {
			break
		}
	}
	return int(hits * size)
}
