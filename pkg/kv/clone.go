package kv

import (
	"maps"
	"slices"
)

// Clone returns an independent copy of the tree. Nodes keep their numbers.
func (t *Tree) Clone() *Tree {
	return &Tree{nodes: slices.Clone(t.nodes), free: slices.Clone(t.free), index: maps.Clone(t.index)}
}

// Clone returns an independent copy of the cache, on a clone of its tree. Sequences keep their
// numbers. The copy has no watcher.
func (c *Cache) Clone(tree *Tree) *Cache {
	d := *c
	d.tree, d.watcher = tree, nil
	d.window.growing, d.window.leaving = slices.Clone(c.window.growing), slices.Clone(c.window.leaving)
	d.runs, d.spareRuns = slices.Clone(c.runs), slices.Clone(c.spareRuns)
	d.index.slots = slices.Clone(c.index.slots)
	d.seqs, d.spareSeqs = slices.Clone(c.seqs), slices.Clone(c.spareSeqs)
	for i := range d.seqs {
		s := &d.seqs[i]
		s.path, s.claims = slices.Clone(s.path), slices.Clone(s.claims)
	}
	d.blockDemand, d.writers = slices.Clone(c.blockDemand), maps.Clone(c.writers)
	d.matched, d.chain = nil, nil
	d.unheldHits, d.hits = 0, 0
	return &d
}

// Clone returns an independent copy of the image for c, a clone of its cache. The copy does not
// watch c yet.
func (m *Image) Clone(c *Cache) *Image {
	d := &Image{cache: c, log: slices.Clone(m.log), blocks: maps.Clone(m.blocks)}
	for n, list := range d.blocks {
		d.blocks[n] = slices.Clone(list)
	}
	return d
}
