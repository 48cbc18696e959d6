package kv

import (
	"maps"
	"slices"
)

// Clone returns an independent copy of the tree. Nodes keep their numbers.
func (t *Tree) Clone() *Tree {
	return &Tree{nodes: slices.Clone(t.nodes), spare: slices.Clone(t.spare), named: maps.Clone(t.named)}
}

// Clone returns an independent copy of the cache on tree, a clone of the cache's tree. Sequences keep their
// numbers. The copy has no watcher, and Admit needs a new Lookup.
func (c *Cache) Clone(tree *Tree) *Cache {
	d := *c
	d.tree, d.watcher = tree, nil
	d.window.filling, d.window.filledAt = slices.Clone(c.window.filling), slices.Clone(c.window.filledAt)
	d.runs, d.spareRuns = slices.Clone(c.runs), slices.Clone(c.spareRuns)
	d.firstRun.slots = slices.Clone(c.firstRun.slots)
	d.seqs, d.spareSeqs = slices.Clone(c.seqs), slices.Clone(c.spareSeqs)
	for i := range d.seqs {
		s := &d.seqs[i]
		s.path, s.held = slices.Clone(s.path), slices.Clone(s.held)
	}
	d.growingByPhase, d.writers = slices.Clone(c.growingByPhase), maps.Clone(c.writers)
	d.hitExtents, d.chain = nil, nil
	d.freeHits, d.hits = 0, 0
	return &d
}

// Clone returns an independent copy of the image as the image of c, a clone of its cache. The copy is not
// the watcher of c yet.
func (m *Image) Clone(c *Cache) *Image {
	d := &Image{cache: c, log: slices.Clone(m.log), blocks: maps.Clone(m.blocks)}
	for n, list := range d.blocks {
		d.blocks[n] = slices.Clone(list)
	}
	return d
}
