package policy

import (
	"slices"

	"blis/pkg/kv"
)

// ShadowBlocks is the default number of blocks that a router remembers for each replica, as in
// llm-d's prefix scorer (lruCapacityPerServer).
const ShadowBlocks = 31250

// Shadow is the router's own model of which prompts are cached where. For each replica it remembers
// the prompt blocks most recently sent there. It does not know what a replica has evicted unless
// Evicted reports it.
type Shadow struct{ caches []*kv.Cache }

// NewShadow returns an empty model of replicas with the given block sizes, with capacity blocks for
// each.
func NewShadow(tree *kv.Tree, capacity int, blockSizes []int) *Shadow {
	s := &Shadow{}
	for _, size := range blockSizes {
		s.caches = append(s.caches, kv.NewCache(tree, capacity, size, true, kv.Window{}))
	}
	return s
}

// Match sets the Blocks and Matched counts of the candidates for a prompt.
func (s *Shadow) Match(path kv.Path, inputTokens int, candidates []Replica) {
	for i := range candidates {
		r := &candidates[i]
		c := s.caches[r.Index]
		size := c.BlockSize()
		r.Blocks = int32(inputTokens / size)
		r.Matched = int32(c.Match(path, inputTokens) / size)
	}
}

// Evicted records that a replica has evicted blocks lo to hi of a node.
func (s *Shadow) Evicted(replica int32, n kv.Node, lo, hi int32) {
	s.caches[replica].Invalidate(n, lo, hi)
}

// RecordRouting records that a prompt was sent to a replica.
func (s *Shadow) RecordRouting(replica int32, path kv.Path, inputTokens int) {
	s.caches[replica].Touch(path, inputTokens)
}

// Clone returns an independent copy of the model on a clone of the tree.
func (s *Shadow) Clone(tree *kv.Tree) *Shadow {
	c := &Shadow{caches: slices.Clone(s.caches)}
	for i := range c.caches {
		c.caches[i] = c.caches[i].Clone(tree)
	}
	return c
}
