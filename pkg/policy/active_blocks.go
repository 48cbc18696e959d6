package policy

import (
	"maps"

	"blis/pkg/kv"
)

// ActiveBlocks counts the prompt blocks of the requests in flight at each replica, each block once for
// all requests that share it, as Dynamo's router does (dynamo-kv-router 1.6.1, sequences/single.rs and
// prompt_registry.rs). It has only full blocks, and no output.
type ActiveBlocks struct {
	blockTokens []int
	// holders counts the requests with each block, by replica.
	holders []map[blockKey]int32
}

// NewActiveBlocks returns the counts of idle replicas with the given block sizes.
func NewActiveBlocks(blockTokens []int) *ActiveBlocks {
	a := &ActiveBlocks{}
	for _, size := range blockTokens {
		a.AddReplica(size)
	}
	return a
}

// AddReplica adds an idle replica.
func (a *ActiveBlocks) AddReplica(blockTokens int) {
	a.blockTokens, a.holders = append(a.blockTokens, blockTokens), append(a.holders, map[blockKey]int32{})
}

// fullBlocks returns a walk over the full blocks of a prompt, and their number.
func (a *ActiveBlocks) fullBlocks(replica int32, path kv.Path, input int) (blockWalk, int) {
	size := a.blockTokens[replica]
	return blockWalk{path: path, size: int32(size), input: int32(input)}, input / size
}

// Match sets the Active of the candidates for a prompt.
func (a *ActiveBlocks) Match(path kv.Path, input int, candidates []Replica) {
	for i := range candidates {
		r := &candidates[i]
		walk, n := a.fullBlocks(r.Index, path, input)
		held := a.holders[r.Index]
		shared := 0
		for shared < n && held[walk.next()] > 0 {
			shared++
		}
		r.Stats.Active = ActiveMatch{Blocks: len(held), Shared: shared, BlockTokens: a.blockTokens[r.Index]}
	}
}

// Add counts a prompt that was sent to the replica.
func (a *ActiveBlocks) Add(replica int32, path kv.Path, input int) {
	walk, n := a.fullBlocks(replica, path, input)
	for range n {
		a.holders[replica][walk.next()]++
	}
}

// Remove undoes one Add of the same prompt.
func (a *ActiveBlocks) Remove(replica int32, path kv.Path, input int) {
	walk, n := a.fullBlocks(replica, path, input)
	for range n {
		key := walk.next()
		if a.holders[replica][key]--; a.holders[replica][key] == 0 {
			delete(a.holders[replica], key)
		}
	}
}

// Clone returns an independent copy.
func (a *ActiveBlocks) Clone() *ActiveBlocks {
	c := &ActiveBlocks{blockTokens: a.blockTokens}
	for _, held := range a.holders {
		c.holders = append(c.holders, maps.Clone(held))
	}
	return c
}
