package cluster

import (
	"fmt"
	"slices"

	"blis/pkg/kv"
	"blis/pkg/model"
	"blis/pkg/strictyaml"
)

// Groups are the rules for models whose layers form several KV cache groups, or one of sliding windows.
type Groups struct {
	// PrefixCacheRetentionInterval says which full blocks of sliding windows are hashed: all if it is -1 (vLLM's
	// None). Otherwise those at the end of each prompt, where prompts part and, if it is not 0, at its multiples.
	PrefixCacheRetentionInterval int `yaml:"prefix_cache_retention_interval" json:"prefix_cache_retention_interval"`
	// HashedBlocks says which full blocks are hashed if groups have blocks of different sizes and
	// PrefixCacheRetentionInterval is -1: HashAll or hashReachable.
	HashedBlocks string `yaml:"hashed_blocks" json:"hashed_blocks"`
	// WindowRelease says when blocks that a sliding window has left are freed: releaseScheduled or
	// ReleaseComputed. WindowReserve says what ReserveFullSequence counts for a window: reserveAll or
	// ReserveWindow.
	WindowRelease string `yaml:"window_release" json:"window_release"`
	WindowReserve string `yaml:"window_reserve" json:"window_reserve"`
	// KVGroupRatio: groups have as many layers as the kind with most of them if these are less than this many
	// times those of the kind with fewest, which otherwise gives the number.
	KVGroupRatio float64 `yaml:"kv_group_ratio" json:"kv_group_ratio"`
}

// The values of Groups.HashedBlocks, Groups.WindowRelease and Groups.WindowReserve.
const (
	HashAll          = "all"       // all, before vLLM 0.24
	hashReachable    = "reachable" // up to where all groups end a block and, of a window, those that a hit can need
	releaseScheduled = "scheduled" // when the next tokens are scheduled, before vLLM 0.28
	ReleaseComputed  = "computed"  // when the step that needs them has ended
	reserveAll       = "all"       // blocks for all tokens, before vLLM 0.24
	ReserveWindow    = "window"    // blocks for the window and for the tokens of steps in flight
)

var defaultGroups = Groups{PrefixCacheRetentionInterval: -1, HashedBlocks: HashAll, WindowRelease: releaseScheduled,
	WindowReserve: reserveAll, KVGroupRatio: 1.5}

// validate returns an error for the first invalid value.
func (g *Groups) validate(path string, errorf strictyaml.Errorf) error {
	switch {
	case g.PrefixCacheRetentionInterval < -1:
		return errorf(path+".prefix_cache_retention_interval", "must be at least 0, or -1 to hash all blocks, is %d",
			g.PrefixCacheRetentionInterval)
	case g.HashedBlocks != HashAll && g.HashedBlocks != hashReachable:
		return errorf(path+".hashed_blocks", "must be %s or %s, is %q", HashAll, hashReachable, g.HashedBlocks)
	case g.WindowRelease != releaseScheduled && g.WindowRelease != ReleaseComputed:
		return errorf(path+".window_release", "must be %s or %s, is %q", releaseScheduled, ReleaseComputed,
			g.WindowRelease)
	case g.WindowReserve != reserveAll && g.WindowReserve != ReserveWindow:
		return errorf(path+".window_reserve", "must be %s or %s, is %q", reserveAll, ReserveWindow, g.WindowReserve)
	case !(g.KVGroupRatio >= 1) || g.KVGroupRatio > maxGroupRatio:
		return errorf(path+".kv_group_ratio", "must be between 1 and %d, is %g", maxGroupRatio, g.KVGroupRatio)
	}
	return nil
}

// maxGroupRatio is far beyond the ratios of real models.
const maxGroupRatio = 1000

// KVGroups returns the groups of the KV cache, nil if there is one of full attention only.
func (d *Deployment) KVGroups() []kv.Group {
	var groups []kv.Group
	for _, g := range d.Computed.KVGroups {
		k := kv.Group{Kind: groupKinds[g.Kind], BlockSize: g.BlockSize, Window: g.WindowTokens}
		if g.Kind == model.KVState {
			k = kv.StateGroup(g.BlockSize)
		}
		groups = append(groups, k)
	}
	return groups
}

// groupKinds are the kinds of groups as the cache names them.
var groupKinds = map[model.KVKind]kv.GroupKind{
	model.KVFull: kv.FullAttention, model.KVWindow: kv.SlidingWindow, model.KVChunked: kv.LocalChunks,
	model.KVState: kv.RecurrentState,
}

// KVRules returns the rules for groups.
func (d *Deployment) KVRules() kv.GroupRules {
	e := &d.Engine
	r := kv.GroupRules{KeepUntilComputed: e.WindowRelease == ReleaseComputed, MaxLength: e.MaxModelLen,
		Checkpoints: e.NumPrefillCheckpointBlocks, DeferFresh: e.MambaFreshHits == FreshNextStep,
		LastStateOnly: e.MambaRelease == mambaReleaseLast}
	if i := e.PrefixCacheRetentionInterval; i >= 0 {
		r.Sparse, r.Interval = true, i
	} else {
		r.HashAll = e.HashedBlocks == HashAll
	}
	if e.WindowReserve == ReserveWindow {
		r.MaxWindowTokens = e.inFlightTokens()
	}
	return r
}

// inFlightTokens returns the most tokens that steps which have not ended compute while a window keeps what
// they need.
func (e *Engine) inFlightTokens() int {
	if e.PipelineParallelSize > 1 && e.WindowRelease == ReleaseComputed {
		return e.concurrentBatches() * e.MaxNumBatchedTokens
	}
	if e.AsyncScheduling && e.WindowRelease == ReleaseComputed {
		return 2 * e.MaxNumBatchedTokens
	}
	return e.MaxNumBatchedTokens
}

// HitSize returns the number of tokens of which hits in the prefix cache are multiples: the block size or, with
// groups of different block sizes, their least common multiple.
func (d *Deployment) HitSize() int {
	size := d.Engine.BlockSize
	for _, g := range d.Computed.KVGroups {
		if g.Kind == model.KVState && !d.Engine.EnablePrefixCaching {
			continue // a block for a whole sequence, in which nothing is hit
		}
		for most := size; size%g.BlockSize != 0; size += most { // sizes are small multiples of each other
		}
	}
	return size
}

// SequenceBlocks returns a function that says how many blocks must be free for a lone request with a number of
// tokens to run.
func (d *Deployment) SequenceBlocks() func(tokens int) int {
	if d.Engine.ReserveFullSequence {
		return d.blocksBy(d.KVRules())
	}
	return d.heldBlocks()
}

// heldBlocks returns a function that says how many KV blocks a lone request with a number of tokens holds at most.
func (d *Deployment) heldBlocks() func(tokens int) int {
	rules := d.KVRules()
	rules.MaxWindowTokens = d.Engine.inFlightTokens()
	return d.blocksBy(rules)
}

// blocksBy returns a function that says how many blocks a lone request with a number of tokens has by some rules.
func (d *Deployment) blocksBy(rules kv.GroupRules) func(tokens int) int {
	groups, size := d.KVGroups(), d.Engine.BlockSize
	if groups == nil {
		return func(tokens int) int { return (tokens + size - 1) / size }
	}
	return func(tokens int) int { return kv.Blocks(groups, rules, tokens) }
}

// groupRules warns of rules for groups that have no effect, and returns an error for those that vLLM refuses.
func (c *resolver) groupRules(d *Deployment, at string) error {
	windows := slices.ContainsFunc(d.Computed.KVGroups, func(g model.KVGroup) bool { return g.Kind == model.KVWindow })
	sparse := windows || d.StateBlock() > 0
	for _, name := range []string{"prefix_cache_retention_interval", "window_release", "window_reserve"} {
		has := sparse && name != "window_reserve" || windows
		if !has && !d.isDerived("engine."+name) {
			c.warnf(d, "engine.%s has no effect: the model has no layers with a sliding window", name)
		}
	}
	switch {
	case d.isDerived("engine.hashed_blocks"):
	case d.HitSize() == d.Engine.BlockSize:
		c.warnf(d, "engine.hashed_blocks has no effect: all blocks of the model have the same number of tokens")
	case d.Engine.PrefixCacheRetentionInterval >= 0:
		c.warnf(d, "engine.hashed_blocks has no effect: it needs engine.prefix_cache_retention_interval -1")
	}
	if len(d.Computed.KVGroups) < 2 && !d.isDerived("engine.kv_group_ratio") {
		c.warnf(d, "engine.kv_group_ratio has no effect: all layers of the model are of one kind")
	}
	if i := d.Engine.PrefixCacheRetentionInterval; sparse && i > 0 && i%d.HitSize() != 0 {
		return c.errorf(at+".prefix_cache_retention_interval",
			"must be a multiple of the block size, %d tokens, is %d", d.HitSize(), i)
	}
	return nil
}

// checkGroups checks the groups of a printed configuration.
func checkGroups(k *Computed, at string, errorf strictyaml.Errorf) error {
	if k.WindowTokens < 0 {
		return errorf(at+".window_tokens", "must be at least 0, is %d", k.WindowTokens)
	}
	for i, g := range k.KVGroups {
		group := fmt.Sprintf("%s.kv_groups[%d]", at, i)
		if _, ok := groupKinds[g.Kind]; !ok {
			return errorf(group+".kind", "must be full-attention, sliding-window, chunked-local or mamba, is %q",
				g.Kind)
		}
		windowed := g.Kind == model.KVWindow || g.Kind == model.KVChunked
		if g.BlockSize < 1 || g.Layers < 1 || windowed && g.WindowTokens < 1 {
			return errorf(group, "must have at least 1 as block_size, layers and window_tokens")
		}
	}
	return nil
}
