package policy

import (
	"maps"
	"math"
	"math/bits"
	"slices"

	"blis/pkg/kv"
)

// BlockIndexConfig configures a BlockIndex as approx-prefix-cache-producer of llm-d-router v0.10.0
// (pkg/epp/framework/plugins/requestcontrol/dataproducer/approximateprefix).
type BlockIndexConfig struct {
	// AutoTune uses the block size and the number of KV blocks that the engines report.
	AutoTune bool
	// BlockTokens is the block size otherwise. Blocks are never smaller than minBlockTokens.
	BlockTokens int
	// MaxTokens, or if that is 0 MaxBlocks, is how much of a prompt is matched; 0 is the whole prompt.
	MaxTokens, MaxBlocks int
	// Capacity is how many blocks are remembered for a replica without AutoTune.
	Capacity int
}

// minBlockTokens is the smallest block size, to bound the memory of the index.
const minBlockTokens = 64

// BlockIndex is what llm-d's router knows of the replicas' caches: the blocks of the prompts that it
// sent there, the most recent ones for each replica. It does not know what a replica has evicted.
//
// Its blocks are larger than those of the caches, and the last block of a prompt may be partly full.
// A match counts the leading blocks that any replica has; of these, each replica matches those that
// it has itself, also after one that it has not.
type BlockIndex struct {
	config BlockIndexConfig
	tree   *kv.Tree
	// blockTokens and capacity are those that replicas report.
	blockTokens, capacity []int
	entries               map[blockKey]int32
	keys                  []blockKey // by entry
	holders               []uint64   // words for each entry, a bit for each replica
	words                 int
	spare                 []int32 // entries that are not used
	recent                []recency
	counts                []int32 // scratch of Match, by replica
}

// blockKey identifies a block: all tokens up to its end, which is in the node.
type blockKey struct {
	node kv.Node
	end  int32
}

// NewBlockIndex returns an empty index of replicas with the given block sizes and numbers of blocks.
func NewBlockIndex(tree *kv.Tree, c BlockIndexConfig, blockTokens, capacity []int) *BlockIndex {
	n := len(blockTokens)
	return &BlockIndex{config: c, tree: tree, blockTokens: blockTokens, capacity: capacity,
		entries: map[blockKey]int32{}, words: (n + 63) / 64, recent: make([]recency, n), counts: make([]int32, n)}
}

// AddReplica adds a replica, of which it has no blocks yet.
func (x *BlockIndex) AddReplica(blockTokens, capacity int) {
	x.blockTokens, x.capacity = append(x.blockTokens, blockTokens), append(x.capacity, capacity)
	x.recent, x.counts = append(x.recent, recency{}), append(x.counts, 0)
	words := (len(x.recent) + 63) / 64
	if words == x.words {
		return
	}
	holders := make([]uint64, words*len(x.keys))
	for e := range x.keys {
		copy(holders[e*words:], x.holders[e*x.words:(e+1)*x.words])
	}
	x.holders, x.words = holders, words
}

// blocks returns the block size for candidates of which this is the first, and how many blocks of a
// prompt are matched.
func (x *BlockIndex) blocks(first int32, input int) (size, n int) {
	size = x.config.BlockTokens
	if x.config.AutoTune {
		size = x.blockTokens[first]
	}
	size = max(size, minBlockTokens)
	most := math.MaxInt
	switch {
	case x.config.MaxTokens > 0:
		most = x.config.MaxTokens / size
	case x.config.MaxBlocks > 0:
		most = x.config.MaxBlocks
	}
	return size, min((input+size-1)/size, most)
}

// Match sets the Prefix of the candidates for a prompt.
func (x *BlockIndex) Match(path kv.Path, input int, candidates []Replica) {
	size, n := x.blocks(candidates[0].Index, input)
	clear(x.counts)
	walk := blockWalk{path: path, size: int32(size), input: int32(input)}
	for range n {
		e, known := x.entries[walk.next()]
		if !known {
			break
		}
		for w := range x.words {
			for word := x.holders[int(e)*x.words+w]; word != 0; word &= word - 1 {
				x.counts[w*64+bits.TrailingZeros64(word)]++
			}
		}
	}
	for i := range candidates {
		r := &candidates[i]
		r.Stats.Prefix = PrefixMatch{x.counts[r.Index], int32(n), int32(size)}
	}
}

// RecordRouting records that a prompt was sent to a replica that Match has seen as a candidate.
func (x *BlockIndex) RecordRouting(chosen *Replica, path kv.Path, input int) {
	replica, match := chosen.Index, &chosen.Stats.Prefix
	walk := blockWalk{path: path, size: match.BlockTokens, input: int32(input)}
	capacity := x.config.Capacity
	if x.config.AutoTune {
		capacity = x.capacity[replica]
	}
	lru := &x.recent[replica]
	for range match.Blocks {
		e := x.entry(walk.next())
		if lru.touch(e) {
			x.holders[int(e)*x.words+int(replica)/64] |= 1 << (replica % 64)
		}
		if lru.len() > capacity {
			x.forget(lru.dropOldest(), replica)
		}
	}
}

// entry returns the entry of a block, which it adds if needed.
func (x *BlockIndex) entry(key blockKey) int32 {
	if e, ok := x.entries[key]; ok {
		return e
	}
	var e int32
	if last := len(x.spare) - 1; last >= 0 {
		e = x.spare[last]
		x.spare = x.spare[:last]
		x.keys[e] = key
	} else {
		e = int32(len(x.keys))
		x.keys = append(x.keys, key)
		x.holders = append(x.holders, make([]uint64, x.words)...)
	}
	x.entries[key] = e
	x.tree.Ref(key.node)
	return e
}

// forget removes a block from a replica, and from the index if no other replica has it.
func (x *BlockIndex) forget(e, replica int32) {
	words := x.holders[int(e)*x.words : int(e+1)*x.words]
	words[replica/64] &^= 1 << (replica % 64)
	if slices.ContainsFunc(words, func(w uint64) bool { return w != 0 }) {
		return
	}
	key := x.keys[e]
	delete(x.entries, key)
	x.spare = append(x.spare, e)
	x.tree.Unref(key.node)
}

// Clone returns an independent copy on a clone of the tree.
func (x *BlockIndex) Clone(tree *kv.Tree) *BlockIndex {
	c := *x
	c.tree, c.entries = tree, maps.Clone(x.entries)
	c.keys, c.holders, c.spare = slices.Clone(x.keys), slices.Clone(x.holders), slices.Clone(x.spare)
	c.recent, c.counts = make([]recency, len(x.recent)), make([]int32, len(x.counts))
	for i := range x.recent {
		c.recent[i] = x.recent[i].clone()
	}
	return &c
}

// blockWalk visits the blocks of a prompt.
type blockWalk struct {
	path        kv.Path
	size, input int32
	end         int32 // of the last block visited
	span        int
}

func (w *blockWalk) next() blockKey {
	w.end = min(w.end+w.size, w.input)
	for w.path[w.span].End < w.end {
		w.span++
	}
	return blockKey{w.path[w.span].Node, w.end}
}
