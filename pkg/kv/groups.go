package kv

// A KV cache group is layers of a model whose blocks are allocated together. A model with layers of several
// kinds has several groups: each has its own blocks of a sequence, and all take them from the same pool. A
// hit needs the blocks of all groups (HybridKVCacheCoordinator in vllm/v1/core/kv_cache_coordinator.py).

// GroupKind says which tokens before it a token needs in the layers of a group.
type GroupKind uint8

const (
	// FullAttention layers need all tokens.
	FullAttention GroupKind = iota
	// SlidingWindow layers need the newest tokens: a token attends to Window tokens, itself included.
	SlidingWindow
	// LocalChunks layers need the tokens of the same chunk of Window tokens.
	LocalChunks
	// RecurrentState layers need the state after the token before. See StateGroup.
	RecurrentState
)

// Group is a KV cache group (KVCacheGroupSpec in vllm/v1/kv_cache_interface.py).
type Group struct {
	Kind GroupKind
	// BlockSize is the number of tokens in a block.
	BlockSize int
	// Window is the number of tokens that a SlidingWindow reaches back, or of a chunk.
	Window int
}

// StateGroup returns a group of layers with a recurrent state instead of keys and values (MambaSpec in
// vllm/v1/kv_cache_interface.py). The state after the newest token of a block is in that block, so that a token
// needs the block of the one before it, like a window of two tokens.
func StateGroup(blockSize int) Group { return Group{RecurrentState, blockSize, 2} }

// GroupRules are the rules for groups in which versions of vLLM differ.
type GroupRules struct {
	// HashAll hashes all full blocks. Otherwise, if groups have blocks of different sizes, those before the last
	// multiple of all sizes are hashed, and of a window those that a hit can need.
	HashAll bool
	// Sparse hashes the blocks of windows only where a later prompt is expected to continue: at the end of
	// the prompt, where a request was found to leave a prompt that is cached in other groups, and at each
	// multiple of Interval tokens, if that is not 0 (prefix_cache_retention_interval).
	Sparse   bool
	Interval int
	// KeepUntilComputed keeps the blocks of a window until no token that is being computed needs them. Earlier
	// versions free them when the tokens are scheduled.
	KeepUntilComputed bool
	// MaxWindowTokens limits the tokens of a window for which a request that must fit as a whole reserves
	// blocks, in addition to the window itself; 0 means no limit. MaxLength is the maximum length of a sequence.
	MaxWindowTokens, MaxLength int
	// Checkpoints is how many states before the end of its tokens the last chunk of a prompt writes, 0 or 1
	// (num_prefill_checkpoint_blocks).
	Checkpoints int
	// DeferFresh does not admit a sequence whose hit ends with a state that is hashed in the same step.
	DeferFresh bool
	// LastStateOnly frees, of the states behind empty places, only the one before the newest. Those of steps that
	// were in flight at the time stay until the sequence ends.
	LastStateOnly bool
}

// Blocks returns the most blocks that a lone sequence of this many tokens holds at any time, if no step
// computes more than rules.MaxWindowTokens of its tokens.
func Blocks(groups []Group, rules GroupRules, tokens int) int {
	sum := 0
	for i := range groups {
		sum += int(groups[i].reserve(&rules, int32(tokens)))
	}
	return sum
}

// blocksFor returns how many blocks n tokens occupy.
func (g *Group) blocksFor(n int32) int32 {
	size := int32(g.BlockSize)
	return (n + size - 1) / size
}

// reserve returns how many blocks a sequence reserves that must fit as a whole
// (SlidingWindowSpec.max_admission_blocks_per_request in vllm/v1/kv_cache_interface.py).
func (g *Group) reserve(rules *GroupRules, tokens int32) int32 {
	all := g.blocksFor(tokens)
	switch {
	case g.Kind == RecurrentState:
		return g.states(rules, all)
	case g.Kind == FullAttention || rules.MaxWindowTokens == 0:
		return all
	}
	most, more := g.Window+rules.MaxWindowTokens, int32(0)
	if g.Kind == SlidingWindow {
		most, more = most-1, 1 // a window can begin and end within a block
	}
	if rules.MaxLength > 0 {
		most = min(most, rules.MaxLength)
	}
	return min(all, g.blocksFor(int32(most))+more)
}

// skipped returns how many of the first blocks of a sequence no token after its first n tokens needs
// (SingleTypeKVCacheManager.get_num_skipped_tokens).
func (g *Group) skipped(n int32) int32 {
	switch g.Kind {
	case SlidingWindow, RecurrentState:
		return max(0, n-int32(g.Window)+1) / int32(g.BlockSize)
	case LocalChunks:
		return (n - n%int32(g.Window)) / int32(g.BlockSize)
	}
	return 0
}

// leaves returns after how many tokens no further one needs block j; -1 if that never happens.
func (g *Group) leaves(j int32) int64 {
	end := (int64(j) + 1) * int64(g.BlockSize)
	switch g.Kind {
	case SlidingWindow, RecurrentState:
		return end + int64(g.Window) - 1
	case LocalChunks: // at the end of its last token's chunk
		return end - 1 - (end-1)%int64(g.Window) + int64(g.Window)
	}
	return -1
}

// tail returns how many full blocks before a token a window can need at most.
func (g *Group) tail() int32 {
	return max(1, g.blocksFor(int32(g.Window-1)))
}

// groupCount returns the number of groups of which c notifies its watcher.
func (c *Cache) groupCount() int {
	if c.groups == nil {
		return 1
	}
	return len(c.groups.groups)
}

// PrefixGroup returns the group without which there is no hit: the first one with full attention, or group 0.
func (c *Cache) PrefixGroup() int {
	if c.groups == nil {
		return 0
	}
	return c.groups.layout.kinds[0].members[0]
}

// PrefixBlocks converts blocks lo to hi of the PrefixGroup to blocks of BlockSize.
func (c *Cache) PrefixBlocks(lo, hi int32) (int32, int32) {
	if c.groups == nil {
		return lo, hi
	}
	size := int32(c.groups.layout.kinds[0].BlockSize)
	return lo * size / c.blockSize, (hi*size + c.blockSize - 1) / c.blockSize
}

// Demand returns about how many blocks a number of further sequences take with this many tokens in total.
func (c *Cache) Demand(tokens, sequences int64) int64 {
	if c.groups == nil {
		return (tokens + int64(c.blockSize) - 1) / int64(c.blockSize)
	}
	sum := int64(0)
	for i := range c.groups.groups {
		g := &c.groups.groups[i]
		size, most := int64(g.BlockSize), tokens
		switch g.Kind {
		case FullAttention:
		case RecurrentState:
			most = sequences * size
		default:
			most = min(tokens, sequences*int64(g.Window))
		}
		sum += (most + size - 1) / size
	}
	return sum
}
