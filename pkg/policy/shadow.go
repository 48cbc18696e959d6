package policy

import "blis/pkg/kv"

// ShadowBlocks is how many blocks a router remembers of each replica if nobody
// says otherwise: the default of llm-d's prefix scorer (lruCapacityPerServer).
const ShadowBlocks = 31250

// Shadow is the router's own model of which prompts are where. Of each replica it
// remembers the prompt blocks most recently sent there. What the replica has
// evicted it does not know unless it is told.
type Shadow struct{ caches []*kv.Cache }

// NewShadow returns an empty model, with room for capacity blocks each, of
// replicas with blocks of the given sizes.
func NewShadow(tree *kv.Tree, capacity int, blockSizes []int) *Shadow {
	s := &Shadow{}
	for _, size := range blockSizes {
		s.caches = append(s.caches, kv.NewCache(tree, capacity, size, true, kv.Window{}))
	}
	return s
}

// Look fills in what the candidates are believed to have of a prompt.
func (s *Shadow) Look(path kv.Path, inputTokens int, candidates []Replica) {
	for i := range candidates {
		r := &candidates[i]
		c := s.caches[r.Index]
		size := c.BlockSize()
		r.Blocks = int32(inputTokens / size)
		r.Matched = int32(c.Match(path, inputTokens) / size)
	}
}

// Evicted learns that a replica has evicted blocks lo to hi of a node.
func (s *Shadow) Evicted(replica int32, n kv.Node, lo, hi int32) { s.caches[replica].Forget(n, lo, hi) }

// Sent learns that a prompt went to a replica.
func (s *Shadow) Sent(replica int32, path kv.Path, inputTokens int) {
	s.caches[replica].Touch(path, inputTokens)
}
