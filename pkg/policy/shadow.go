package policy

import "blis/pkg/kv"

// ShadowBlocks is how many blocks a router remembers of each replica if nobody
// says otherwise: the default of llm-d's prefix scorer (lruCapacityPerServer).
const ShadowBlocks = 31250

// Shadow is the router's own model of which prompts are where. It learns from
// routing decisions only: of each replica it remembers the prompt blocks most
// recently sent there, and it does not know what the replica has evicted.
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

// Look fills in what the view's candidates are believed to have of its prompt.
func (s *Shadow) Look(v *View) {
	for i := range v.Replicas {
		r := &v.Replicas[i]
		c := s.caches[r.Index]
		size := c.BlockSize()
		r.Blocks = int32(v.InputTokens / size)
		r.Matched = int32(c.Match(v.Path, v.InputTokens) / size)
	}
}

// Sent learns that a prompt went to a replica.
func (s *Shadow) Sent(replica int32, path kv.Path, inputTokens int) {
	s.caches[replica].Touch(path, inputTokens)
}
