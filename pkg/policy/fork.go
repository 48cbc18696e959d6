package policy

import (
	"slices"

	"blis/pkg/kv"
)

// Clone returns a model that goes on from here by itself, on a clone of the tree.
func (s *Shadow) Clone(tree *kv.Tree) *Shadow {
	c := &Shadow{caches: slices.Clone(s.caches)}
	for i := range c.caches {
		c.caches[i] = c.caches[i].Clone(tree)
	}
	return c
}

// Clone returns a queue that goes on from here by itself.
func (f *Flow) Clone() *Flow {
	c := *f
	c.lines, c.lineOf, c.waiting = slices.Clone(f.lines), slices.Clone(f.lineOf), f.waiting.clone()
	for i := range c.lines {
		c.lines[i] = slices.Clone(c.lines[i])
	}
	return &c
}
