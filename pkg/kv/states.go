package kv

import "slices"

// A group of recurrent states has a block for each block of tokens, like others, but only the blocks at the ends
// of chunks have states; the places between are none. A state is hashed when the tokens of its block are full,
// and a hit needs only the one at its end (MambaManager in vllm/v1/core/single_type_kv_cache_manager.py, with
// mamba_cache_mode align).

// StateChunks says where the chunks of prompts end if states are hashed: a state is written at the end of a chunk,
// and it can be hashed if a block ends there (Scheduler._mamba_block_aligned_split in
// vllm/v1/core/sched/scheduler.py).
type StateChunks uint8

const (
	// AlignPrompts ends chunks of prompts with the last full block, and earlier chunks after a multiple of blocks.
	AlignPrompts StateChunks = iota
	// AlignRecomputed does so for output that is computed again, too.
	AlignRecomputed
	// AlignShared also ends a first chunk where the prompt leaves one that is cached in other groups.
	AlignShared
	// AlignBlocks ends chunks at ends of blocks wherever they begin; also later ones where the prompt leaves
	// another. Blocks can have more tokens than a step.
	AlignBlocks
	// AlignResumable takes for the last full block one before the last token, which a later prompt can hit.
	AlignResumable
)

// content identifies what a hashed block of a group holds.
type content struct {
	group int
	node  Node
	index int32
}

// maxEventTicks is the most ticks for which the events of growing sequences are planned ahead. Without prefix
// caching a state has a block of as many tokens as a sequence can have.
const maxEventTicks = 1 << 12

// states returns the most states that a sequence with this many blocks holds at any time: that before a chunk, that
// after it, that of a step in flight, and checkpoints. It does not count those that LastStateOnly leaves.
func (g *Group) states(rules *GroupRules, blocks int32) int32 {
	n := int32(2 + rules.Checkpoints)
	if rules.KeepUntilComputed {
		n++
	}
	return min(n, blocks)
}

// most returns how many of the given number of blocks q takes in group i to have n tokens.
func (g *groupStore) most(q *groupSequence, i int, n, blocks int32) int32 {
	if g.groups[i].Kind == RecurrentState {
		return min(blocks, 1+g.checkpoints(q, i, n))
	}
	return blocks
}

// checkpoints returns how many states q may write within the chunk that ends with its first n tokens: one at the
// last end of a block before n, if the chunk starts with a block and, where only states at ends of prompts are kept,
// ends a prompt (MambaManager._needs_internal_checkpoint). A chunk of one block has no place for it.
func (g *groupStore) checkpoints(q *groupSequence, i int, n int32) int32 {
	if g.rules.Checkpoints == 0 || q.scheduled%int32(g.groups[i].BlockSize) != 0 ||
		g.rules.Sparse && g.rules.Interval == 0 && n < q.prefillEnd {
		return 0
	}
	return 1
}

// leaveOut appends empty places to the table of q in group i, which lacks the given number of blocks for n
// tokens, and returns how many blocks it takes after them.
func (g *groupStore) leaveOut(q *groupSequence, i int, n, blocks int32) int32 {
	table := &q.tables[i]
	table.last = max(0, int32(len(table.blocks))-1)
	more := g.most(q, i, n, blocks)
	for range blocks - more {
		table.blocks = append(table.blocks, none)
	}
	return more
}

// runBefore returns the first of the blocks of a table that end at hi without an empty place.
func (t *blockTable) runBefore(hi int32) int32 {
	for hi > 0 && t.blocks[hi-1] != none {
		hi--
	}
	return hi
}

// noteFresh notes that s published block j of node n in group i, if that is a state and happens in this step. A
// growing sequence may publish what it filled before.
func (g *groupStore) noteFresh(s Seq, i int, n Node, j int32) {
	if !g.rules.DeferFresh || g.groups[i].Kind != RecurrentState {
		return
	}
	r, end := &g.c.seqs[s], int64(j+1)*int64(g.groups[i].BlockSize)
	if !r.growing || end > r.base+g.began-int64(r.lag) {
		g.fresh = append(g.fresh, content{i, n, j})
	}
}

// isFresh reports whether the hit of the last lookup, of s, ends with a state that was hashed in this step: it is
// not computed yet.
func (g *groupStore) isFresh(s Seq) bool {
	if len(g.fresh) == 0 || g.hit == 0 {
		return false
	}
	node := noNode
	for _, span := range g.c.seqs[s].path {
		if node = span.Node; span.End >= g.hit {
			break
		}
	}
	return slices.ContainsFunc(g.fresh, func(x content) bool {
		return x.node == node && (x.index+1)*int32(g.groups[x.group].BlockSize) == g.hit
	})
}

// BeginStep says that a batch is formed. What is hashed from now on is computed in its step.
func (c *Cache) BeginStep() {
	if c.groups != nil {
		c.groups.fresh, c.groups.began = c.groups.fresh[:0], c.tick
	}
}

// Junction returns how many tokens of the last lookup of s the groups with most of them had, if that is more than
// all groups had, and otherwise 0 (shared_prefix_boundary of a Request in vllm/v1/request.py).
func (c *Cache) Junction(s Seq) int {
	if c.groups == nil {
		return 0
	}
	return int(c.groups.seqs[s].junction)
}
