// Package tier models a memory behind the KV cache of a replica: which blocks it has and which of them it evicts
// (vllm/v1/kv_offload/cpu/manager.py and policies/lru.py in vLLM 0.33). A block is identified by its content, a
// node of a kv.Tree and its index there, as in the cache.
//
// Blocks have the rank of the request that used them last. A rank is a place in a list, the lowest first. Of the
// blocks with one rank the last ones of the sequence come first. For a new block the first one goes that
// no transfer reads or writes. The store keeps runs of blocks, not blocks.
package tier

import (
	"maps"
	"slices"

	"blis/pkg/kv"
)

// Extent is blocks Lo to Hi, without Hi, of a node.
type Extent struct {
	Node   kv.Node
	Lo, Hi int32
}

// Blocks returns how many blocks the extents have.
func Blocks(list []Extent) (n int32) {
	for _, x := range list {
		n += x.Hi - x.Lo
	}
	return n
}

type state uint8

const (
	ready state = iota
	storing
	loading
	offered // ready, and not to be evicted for its own offer
)

// run is consecutive blocks of a node with the same state and rank.
type run struct {
	Extent
	state state
	rank  int32 // an index in ranks
	// prev and next are neighbors among the runs of a rank, in ascending order of their blocks; following is the
	// next run of the node, in the same order.
	prev, next, following int32
}

// rank is a place in the list of ranks.
type rank struct {
	number      int64 // ascending
	prev, next  int32
	first, last int32 // its runs
	users       int32 // requests that have it
}

const none int32 = -1

// Store is the blocks of a tier.
type Store struct {
	tree        *kv.Tree
	total, used int32
	idle        int32 // ready blocks
	runs        []run
	spareRuns   []int32
	first       map[kv.Node]int32 // the first run of each node
	ranks       []rank
	spareRanks  []int32
	lowest      int32
	highest     int32
	numbers     int64
	scratch     []Extent
	stats       Stats
}

// Stats count blocks: used now and at most, evicted, and refused for lack of room.
type Stats struct {
	Blocks, Used, Peak int32
	Evicted, Refused   int64
}

// Stats returns the counts so far.
func (s *Store) Stats() Stats {
	x := s.stats
	x.Blocks, x.Used = s.total, s.used
	return x
}

// NewStore returns an empty tier with this many blocks.
func NewStore(tree *kv.Tree, blocks int) *Store {
	return &Store{tree: tree, total: int32(blocks), first: map[kv.Node]int32{}, lowest: none, highest: none}
}

// User is the use that a request makes of a store. The zero value has used nothing.
type User struct {
	rank   int32 // index + 1; 0: none yet
	ranges [][2]int32
}

// Clone returns an independent copy of u.
func (u User) Clone() User {
	u.ranges = slices.Clone(u.ranges)
	return u
}

// note adds blocks lo to hi to what u has used and calls f for those that are new, range by range.
func (u *User) note(lo, hi int32, f func(lo, hi int32)) {
	i := 0
	for i < len(u.ranges) && u.ranges[i][1] < lo {
		i++
	}
	at, first := lo, i
	for ; i < len(u.ranges) && u.ranges[i][0] <= hi; i++ {
		if u.ranges[i][0] > at {
			f(at, u.ranges[i][0])
		}
		at, lo, hi = max(at, u.ranges[i][1]), min(lo, u.ranges[i][0]), max(hi, u.ranges[i][1])
	}
	if at < hi {
		f(at, hi)
	}
	u.ranges = slices.Replace(u.ranges, first, i, [2]int32{lo, hi})
}

// Used reports whether u has used blocks.
func (u *User) Used() bool { return len(u.ranges) > 0 }

// extents appends to list the nodes that have blocks lo to hi of a path, for blocks of this many tokens.
func extents(list []Extent, path kv.Path, blockSize, lo, hi int32) []Extent {
	for _, span := range path {
		if end := min(span.End/blockSize, hi); end > lo {
			list = append(list, Extent{span.Node, lo, end})
			lo = end
		}
	}
	return list
}

// Lookup returns how many of blocks lo to hi of a path the store has, up to the first that it lacks, and whether one
// of them is being stored or loaded.
func (s *Store) Lookup(path kv.Path, blockSize, lo, hi int32) (n int32, busy bool) {
	at := lo
	s.scratch = extents(s.scratch[:0], path, blockSize, lo, hi)
	for _, x := range s.scratch {
		for r := s.head(x.Node); r != none && at < x.Hi; r = s.runs[r].following {
			q := &s.runs[r]
			if q.Hi <= at {
				continue
			}
			if q.Lo > at {
				break
			}
			busy = busy || q.state != ready
			at = min(q.Hi, x.Hi)
		}
		if at < x.Hi {
			break
		}
	}
	return at - lo, busy
}

// Load begins to load blocks lo to hi of a path, which are ready, for u.
func (s *Store) Load(u *User, path kv.Path, blockSize, lo, hi int32) []Extent {
	list := extents(nil, path, blockSize, lo, hi)
	s.rankOf(u)
	for _, x := range list {
		s.each(x, func(r int32) { s.runs[r].state = loading })
		s.use(u, x, loading)
	}
	s.idle -= Blocks(list)
	return list
}

// Offer begins to store those of blocks lo to hi of a path that the store lacks, for u, and returns them. If it
// has no room for all of them, it stores none and returns false.
func (s *Store) Offer(u *User, path kv.Path, blockSize, lo, hi int32) (missing []Extent, ok bool) {
	list := extents(s.scratch[:0], path, blockSize, lo, hi)
	s.scratch = list
	own := int32(0) // idle blocks of the offer, which are not evicted for it
	for _, x := range list {
		at := x.Lo
		for r := s.head(x.Node); r != none && s.runs[r].Lo < x.Hi; r = s.runs[r].following {
			q := &s.runs[r]
			if q.Hi <= at {
				continue
			}
			if q.Lo > at {
				missing = append(missing, Extent{x.Node, at, q.Lo})
			}
			if q.state == ready {
				own += min(q.Hi, x.Hi) - max(q.Lo, at)
			}
			at = min(q.Hi, x.Hi)
		}
		if at < x.Hi {
			missing = append(missing, Extent{x.Node, at, x.Hi})
		}
	}
	n := Blocks(missing)
	lack := n - (s.total - s.used)
	if own+n > 0 {
		s.rankOf(u)
		for _, x := range list {
			s.change(x, ready, offered)
		}
		defer func() {
			for _, x := range list {
				s.change(x, offered, ready)
				s.merge(x)
			}
		}()
		for _, x := range list {
			s.use(u, x, offered)
		}
		for _, x := range missing {
			u.note(x.Lo, x.Hi, func(int32, int32) {})
		}
	}
	if lack > s.idle-own {
		s.stats.Refused += int64(n)
		return nil, false
	}
	s.stats.Evicted += int64(max(0, lack))
	s.evict(lack)
	for _, x := range missing {
		s.insert(x, u.rank-1)
	}
	s.used += n
	s.stats.Peak = max(s.stats.Peak, s.used)
	return missing, true
}

// Keep returns a copy of a path that stays valid until Release.
func (s *Store) Keep(path kv.Path) kv.Path {
	s.tree.Ref(path[len(path)-1].Node)
	return slices.Clone(path)
}

// Release undoes Keep.
func (s *Store) Release(path kv.Path) {
	if len(path) > 0 {
		s.tree.Unref(path[len(path)-1].Node)
	}
}

// Stored ends a store of Offer.
func (s *Store) Stored(list []Extent) { s.end(list, storing) }

// Loaded ends a load.
func (s *Store) Loaded(list []Extent) { s.end(list, loading) }

// end makes the blocks of a transfer, which are in this state, idle.
func (s *Store) end(list []Extent, was state) {
	for _, x := range list {
		s.each(x, func(r int32) { s.runs[r].state = ready })
		s.merge(x)
	}
	s.idle += Blocks(list)
}

// Finish renews the rank of all blocks that u has stored, loaded or offered, since its request has ended.
func (s *Store) Finish(u *User, path kv.Path, blockSize int32) {
	if len(u.ranges) == 0 {
		return
	}
	next := s.newRank()
	for _, used := range u.ranges {
		list := extents(nil, path, blockSize, used[0], used[1])
		for _, x := range list {
			s.each(x, func(r int32) { s.move(r, next) })
			s.merge(x)
		}
	}
	if u.rank > 0 {
		s.ranks[u.rank-1].users--
		s.dropRank(u.rank - 1)
	}
	s.ranks[next].users--
	s.dropRank(next)
	*u = User{}
}

// Clone returns an independent copy on tree, a clone of the store's tree.
func (s *Store) Clone(tree *kv.Tree) *Store {
	d := *s
	d.tree, d.scratch = tree, nil
	d.runs, d.spareRuns, d.first = slices.Clone(s.runs), slices.Clone(s.spareRuns), maps.Clone(s.first)
	d.ranks, d.spareRanks = slices.Clone(s.ranks), slices.Clone(s.spareRanks)
	return &d
}
