package kv

import "slices"

// Image is what could be found in a cache at an earlier instant, that of the last
// Refresh: of what has a name, as a Watcher is told. It keeps a log of what has
// changed since, 16 bytes a change, and Refresh replays it, so that nothing is
// copied and a refresh costs as much as has changed.
type Image struct {
	cache *Cache
	log   []change
	// blocks are those that could be found, of each node in rising order and not
	// next to each other. The log keeps the nodes alive that it names, so that the
	// number of one that is gone does not stand for another. That is enough: what
	// is in blocks is in the cache still, or its loss is in the log.
	blocks map[Node][]stretch
}

type change struct {
	node   Node
	lo, hi int32
	found  bool
}

// NewImage returns an empty image of c, in which nothing can be found yet, and
// makes it the watcher of c. Another watcher may take its place that passes on to
// it all that it is told.
func NewImage(c *Cache) *Image {
	m := &Image{cache: c, blocks: map[Node][]stretch{}}
	c.Watch(m)
	return m
}

// Found is called by the cache.
func (m *Image) Found(n Node, lo, hi int32) { m.note(change{n, lo, hi, true}) }

// Lost is called by the cache.
func (m *Image) Lost(n Node, lo, hi int32) { m.note(change{n, lo, hi, false}) }

func (m *Image) note(c change) {
	m.cache.tree.ref(c.node)
	m.log = append(m.log, c)
}

// Refresh makes the image that of now.
func (m *Image) Refresh() {
	m.cache.Catch()
	for _, c := range m.log {
		list := m.blocks[c.node]
		if c.found {
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
func insert(list []stretch, c change) []stretch {
	i := 0
	for i < len(list) && list[i].hi < c.lo {
		i++
	}
	lo, hi := c.lo, c.hi
	k := i
	for k < len(list) && list[k].lo <= hi { // what it touches
		lo, hi = min(lo, list[k].lo), max(hi, list[k].hi)
		k++
	}
	return slices.Replace(list, i, k, stretch{c.node, lo, hi})
}

// remove takes blocks out of list, which has them.
func remove(list []stretch, c change) []stretch {
	for i := range list {
		s := list[i]
		if s.hi <= c.lo || c.hi <= s.lo {
			continue
		}
		var left []stretch
		if s.lo < c.lo {
			left = append(left, stretch{c.node, s.lo, c.lo})
		}
		if c.hi < s.hi {
			left = append(left, stretch{c.node, c.hi, s.hi})
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
