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
type Shadow struct {
	caches []*kv.Cache
	// indexes has one index for each block size: cache i is in indexes[sizes[i]].
	indexes []*kv.PrefixIndex
	sizes   []int32
	matched []int32 // the result of Match
}

// NewShadow returns an empty model of replicas with the given block sizes, with capacity blocks for
// each.
func NewShadow(tree *kv.Tree, capacity int, blockSizes []int) *Shadow {
	s := &Shadow{}
	for _, size := range blockSizes {
		s.AddReplica(tree, capacity, size)
	}
	return s
}

// AddReplica adds a replica, of which it remembers nothing yet.
func (s *Shadow) AddReplica(tree *kv.Tree, capacity, blockSize int) {
	k := slices.IndexFunc(s.indexes, func(x *kv.PrefixIndex) bool { return x.BlockSize() == blockSize })
	if k < 0 {
		k = len(s.indexes)
		s.indexes = append(s.indexes, kv.NewPrefixIndex(blockSize))
	}
	c := kv.NewCache(tree, kv.Config{Blocks: capacity, BlockSize: blockSize, Caching: true})
	s.indexes[k].Watch(int32(len(s.caches)), c)
	s.caches, s.sizes = append(s.caches, c), append(s.sizes, int32(k))
}

// Match sets the Blocks and Matched counts of the candidates for a prompt. It returns those with matches if there are
// many candidates.
func (s *Shadow) Match(path kv.Path, inputTokens int, candidates []Replica) []int32 {
	if len(candidates) == 1 { // its cache is faster to ask than the index, which covers all caches
		r := &candidates[0]
		c := s.caches[r.Index]
		r.Blocks, r.Matched = int32(inputTokens/c.BlockSize()), int32(c.Match(path, inputTokens)/c.BlockSize())
		return nil
	}
	s.matched = s.matched[:0]
	for k, x := range s.indexes {
		hits, blocks := x.Match(path, inputTokens), int32(inputTokens/x.BlockSize())
		for i := range candidates {
			if r := &candidates[i]; s.sizes[r.Index] == int32(k) {
				if r.Blocks, r.Matched = blocks, hits[r.Index]; r.Matched > 0 && len(candidates) >= minReplicas {
					s.matched = append(s.matched, int32(i))
				}
			}
		}
	}
	return s.matched
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
	c := &Shadow{caches: slices.Clone(s.caches), indexes: slices.Clone(s.indexes), sizes: slices.Clone(s.sizes)}
	for k := range c.indexes {
		c.indexes[k] = c.indexes[k].Clone()
	}
	for i := range c.caches {
		c.caches[i] = c.caches[i].Clone(tree)
		c.indexes[c.sizes[i]].Watch(int32(i), c.caches[i])
	}
	return c
}
