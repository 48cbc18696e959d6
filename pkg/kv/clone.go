package kv

import (
	"maps"
	"slices"
)

// Clone returns an independent copy of the tree. Nodes keep their numbers.
func (t *Tree) Clone() *Tree {
	return &Tree{nodes: slices.Clone(t.nodes), spare: slices.Clone(t.spare), named: t.named.clone()}
}

// Clone returns an independent copy of the cache on tree, a clone of the cache's tree. Sequences keep their
// numbers. The copy has no watcher, and Admit needs a new Lookup.
func (c *Cache) Clone(tree *Tree) *Cache {
	d := *c
	d.tree, d.watcher, d.observed, d.given = tree, nil, c.fencing || c.keepsGiven, nil
	d.runs, d.spareRuns = slices.Clone(c.runs), slices.Clone(c.spareRuns)
	d.firstRun.slots = slices.Clone(c.firstRun.slots)
	d.seqs, d.spareSeqs = slices.Clone(c.seqs), slices.Clone(c.spareSeqs)
	for i := range d.seqs {
		s := &d.seqs[i]
		s.path, s.held = slices.Clone(s.path), slices.Clone(s.held)
	}
	d.fences, d.marked = slices.Clone(c.fences), slices.Clone(c.marked)
	d.marking, d.markedSeqs = slices.Clone(c.marking), slices.Clone(c.markedSeqs)
	d.growingByPhase, d.writers = slices.Clone(c.growingByPhase), maps.Clone(c.writers)
	d.hitExtents, d.chain = nil, nil
	d.freeHits, d.hits = 0, 0
	if c.groups != nil {
		d.groups = c.groups.clone(&d)
	}
	return &d
}

// clone returns an independent copy for c, a clone of its cache.
func (g *groupStore) clone(c *Cache) *groupStore {
	d := *g
	d.c, d.freed, d.fresh = c, nil, slices.Clone(g.fresh)
	d.blocks, d.spare, d.byNode.slots = slices.Clone(g.blocks), slices.Clone(g.spare), slices.Clone(g.byNode.slots)
	d.hashed, d.lists = slices.Clone(g.hashed), slices.Clone(g.lists)
	for i := range d.lists {
		d.lists[i].oldest = slices.Clone(d.lists[i].oldest)
	}
	d.seqs = slices.Clone(g.seqs)
	for i := range d.seqs {
		q := &d.seqs[i]
		q.tables = slices.Clone(q.tables)
		for k := range q.tables {
			q.tables[k].blocks = slices.Clone(q.tables[k].blocks)
		}
	}
	d.events = groupEvents{due: cloneLists(g.events.due), need: slices.Clone(g.events.need)}
	return &d
}

func cloneLists[T any](lists [][]T) [][]T {
	lists = slices.Clone(lists)
	for i := range lists {
		lists[i] = slices.Clone(lists[i])
	}
	return lists
}

// Clone returns an independent copy of the image as the image of c, a clone of its cache. The copy is not
// the watcher of c yet.
func (m *Image) Clone(c *Cache) *Image { return &Image{m.changeLog.clone(c.tree), c} }

// Clone returns an independent copy of the image on a clone of the tree. The copy is not the watcher of a memory yet.
func (m *MemoryImage) Clone(tree *Tree) *MemoryImage { return &MemoryImage{m.changeLog.clone(tree)} }

func (m *changeLog) clone(tree *Tree) changeLog {
	d := changeLog{tree: tree, log: slices.Clone(m.log)}
	for _, blocks := range m.blocks {
		blocks = maps.Clone(blocks)
		for n, list := range blocks {
			blocks[n] = slices.Clone(list)
		}
		d.blocks = append(d.blocks, blocks)
	}
	return d
}
