// Package tier models a memory behind the KV cache of a replica: which blocks it has and which of them it evicts
// (vllm/v1/kv_offload/cpu/manager.py and its policies in vLLM 0.33). A block is identified by its content, a node of a
// kv.Tree and its index there, as in the cache.
//
// Blocks have the rank of the request that used them last. A rank is a place in a list, the lowest first. Of the
// blocks with one rank the last ones of the sequence come first. For a new block the first one goes that
// no transfer reads or writes. The store keeps runs of blocks, not blocks.
package tier

import "blis/pkg/kv"

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

// state is what happens to a block, plus reader for each transfer that copies it to another tier.
type state uint32

const (
	ready state = iota
	storing
	loading
	offered // ready, and not to be evicted for its own offer
	reader
)

// Store is the blocks of a tier.
type Store struct {
	table
	eviction    eviction
	total, used int32
	idle        int32 // ready blocks
	numbers     int64 // ranks given so far
	scratch     []Extent
	spareLists  [][]Extent
	stats       Stats
	policy      string
	lru         bool
	// forgets: blocks that no prompt can have any more are only counted.
	forgets bool
	// keepsTails: users may have tails.
	keepsTails bool
	// keepsEvicted: evicted are the blocks evicted since they were dropped last.
	keepsEvicted bool
	evicted      []Evicted
	watchers     []kv.Watcher
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

// NewStore returns an empty tier with this many blocks, which evicts by the policy of a name in Evictions.
func NewStore(tree *kv.Tree, blocks int, policy string) *Store {
	s := &Store{table: newTable(tree), total: int32(blocks), policy: policy, lru: policy == Evictions[0],
		forgets: policy == Evictions[0]}
	s.eviction = newEviction(s, policy)
	return s
}

// nextNumber numbers a rank above all others.
func (s *Store) nextNumber() int64 {
	s.numbers++
	return s.numbers
}

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
		if !s.tree.Tiered(x.Node) {
			break
		}
		for r := s.from(s.know(x.Node), at); r != none && at < x.Hi; r = s.runs[r].following {
			q := &s.runs[r]
			if q.Lo > at {
				break
			}
			busy = busy || q.state%reader != ready
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
	list := extents(s.spareExtents(), path, blockSize, lo, hi)
	s.numberOf(u)
	for _, x := range list {
		s.know(x.Node)
		s.each(x, func(r int32) { s.occupy(r, loading) })
		s.use(u, x)
	}
	return list
}

// Offer begins to store those of blocks lo to hi of a path that the store lacks, for u, and returns them. If it
// has no room for all of them, it stores none and returns false.
func (s *Store) Offer(u *User, path kv.Path, blockSize, lo, hi int32) (missing []Extent, ok bool) {
	if s.lru && s.extends(u, path, blockSize, lo) {
		return s.offerNext(u, Extent{path[len(path)-1].Node, lo, hi})
	}
	list := extents(s.scratch[:0], path, blockSize, lo, hi)
	s.scratch = list
	var end Extent // is for the tail of u
	if last := len(list) - 1; last >= 0 && list[last].Node == path[len(path)-1].Node && s.endsInTail(u, list[last]) {
		list, end = list[:last], list[last]
	}
	missing, own, inLoads := s.compare(list)
	n := Blocks(missing) + end.Hi - end.Lo
	if own+inLoads+n > 0 {
		s.numberOf(u)
		s.eviction.missed(s, u, missing)
		if own > 0 && s.lack(n) > s.unreachableFirst() {
			s.keep(list)
			defer s.unkeep(list)
		}
		for _, x := range list {
			s.use(u, x)
		}
		for _, x := range missing {
			u.seen.add(x.Lo, x.Hi)
		}
	}
	if !s.makeRoom(n, own) {
		s.spareLists = append(s.spareLists, missing[:0])
		return nil, false
	}
	if len(missing) > 0 {
		s.eviction.insert(s, u, missing)
	}
	if end.Lo < end.Hi {
		s.addTail(u, end)
		missing = append(s.orSpare(missing), end)
	}
	return missing, true
}

// keep prevents the eviction of the ready blocks of a list until unkeep.
func (s *Store) keep(list []Extent) {
	for _, x := range list {
		s.change(x, ready, offered)
	}
}

func (s *Store) unkeep(list []Extent) {
	for _, x := range list {
		s.change(x, offered, ready)
		s.merge(x)
	}
}

// lack returns how many blocks must be evicted for n more, if that is above 0.
func (s *Store) lack(n int32) int32 { return n - (s.total - s.used) }

// unreachableFirst returns how many blocks that no prompt can have come first in the order of eviction.
func (s *Store) unreachableFirst() int32 {
	if !s.lru {
		return 0
	}
	return *s.first(0)
}

// makeRoom evicts blocks until n more fit and counts these as used. If that would need some of own idle blocks, it
// does nothing and returns false.
func (s *Store) makeRoom(n, own int32) bool {
	lack := s.lack(n)
	if lack > s.idle-own {
		s.stats.Refused += int64(n)
		return false
	}
	if lack > 0 {
		s.stats.Evicted += int64(lack)
		s.idle -= lack
		s.used -= lack
		if lack <= s.unreachableFirst() {
			s.lists[0].takeUnreachable(s.first(0), lack)
		} else {
			s.eviction.evict(s, lack)
		}
	}
	s.used += n
	s.stats.Peak = max(s.stats.Peak, s.used)
	return true
}

// extends reports whether the blocks from lo on belong to the last node of a path and come after all blocks of that
// node in the store, the last of which u has used last.
func (s *Store) extends(u *User, path kv.Path, blockSize, lo int32) bool {
	if u.number == 0 {
		return false
	}
	last := len(path) - 1
	if !s.tree.Tiered(path[last].Node) { // this spares the lookup for most last nodes
		return false
	}
	r := s.tail(path[last].Node)
	return r != none && s.runs[r].Hi == lo && s.ranks[s.runs[r].rank].number == u.number &&
		(last == 0 || path[last-1].End/blockSize <= lo)
}

// offerNext is Offer of blocks that extend those of u in the store, which evicts by lru.
func (s *Store) offerNext(u *User, x Extent) (missing []Extent, ok bool) {
	u.seen.add(x.Lo, x.Hi)
	if !s.makeRoom(x.Hi-x.Lo, 0) {
		return nil, false
	}
	missing = append(s.spareExtents(), x)
	s.eviction.insert(s, u, missing)
	return missing, true
}

// orSpare returns a list, or an empty one if it is nil.
func (s *Store) orSpare(list []Extent) []Extent {
	if list == nil {
		return s.spareExtents()
	}
	return list
}

// spareExtents returns an empty list.
func (s *Store) spareExtents() (list []Extent) {
	if last := len(s.spareLists) - 1; last >= 0 {
		list, s.spareLists = s.spareLists[last], s.spareLists[:last]
	}
	return list
}

// compare returns which blocks of a list the store lacks, and how many others are idle, or being loaded or copied. Idle
// ones are not evicted for an offer of the list.
func (s *Store) compare(list []Extent) (missing []Extent, idle, inLoads int32) {
	lacks := func(x Extent) { missing = append(s.orSpare(missing), x) }
	for _, x := range list {
		at := x.Lo
		for r := s.from(s.know(x.Node), at); r != none && s.runs[r].Lo < x.Hi; r = s.runs[r].following {
			q := &s.runs[r]
			if q.Lo > at {
				lacks(Extent{x.Node, at, q.Lo})
			}
			switch n := min(q.Hi, x.Hi) - max(q.Lo, at); {
			case q.state == ready:
				idle += n
			case q.state != storing:
				inLoads += n
			}
			at = min(q.Hi, x.Hi)
		}
		if at < x.Hi {
			lacks(Extent{x.Node, at, x.Hi})
		}
	}
	return missing, idle, inLoads
}

// use notes that u uses those of the blocks of x that are not being stored.
func (s *Store) use(u *User, x Extent) {
	at := s.nodes.find(x.Node)
	if at.first == none {
		return
	}
	for r := s.from(at, x.Lo); r != none && s.runs[r].Lo < x.Hi; r = s.runs[r].following {
		if s.runs[r].state == storing {
			continue
		}
		lo, hi := max(s.runs[r].Lo, x.Lo), min(s.runs[r].Hi, x.Hi)
		s.eviction.use(s, u, Extent{x.Node, lo, hi})
		u.seen.add(lo, hi)
	}
	s.merge(x)
}

// Keep appends a path to buffer, which is empty. It stays valid until Release.
func (s *Store) Keep(buffer, path kv.Path) kv.Path {
	s.tree.Ref(path[len(path)-1].Node)
	return append(buffer, path...)
}

// Release undoes Keep.
func (s *Store) Release(path kv.Path) {
	if len(path) > 0 {
		s.tree.Unref(path[len(path)-1].Node)
	}
}

// Stored ends a store of Offer, or a load, of a user with this Rank. The store owns the list then.
func (s *Store) Stored(list []Extent, rank int32) {
	for _, x := range list {
		if s.storedTail(x, rank) {
			s.idle += x.Hi - x.Lo
			continue
		}
		s.idle += s.ready(x, func(before state) state { return before - before%reader })
	}
	s.spareLists = append(s.spareLists, list[:0])
}

// ready ends a transfer of the blocks of x, whose states become what after says. It returns how many of them are
// idle then.
func (s *Store) ready(x Extent, after func(before state) state) (idle int32) {
	forgets := s.forgets && s.tree.Unreachable(x.Node)
	s.each(x, func(r int32) {
		y := &s.runs[r]
		if before := y.state; len(s.watchers) > 0 && before%reader == storing {
			s.notifyStored(y.Extent)
		}
		if y.state = after(y.state); y.state != ready {
			return
		}
		idle += y.Hi - y.Lo
		if k := y.rank; forgets && !s.ranks[k].owned {
			s.release(r, &s.ranks[k].unreachable)
			s.dropRank(k)
		}
	})
	s.merge(x)
	return idle
}

// Clear removes all blocks. No transfer may be under way and no user may use the store afterwards.
func (s *Store) Clear() {
	if len(s.watchers) > 0 {
		s.notifyCleared()
	}
	s.eviction.clear()
	s.table.clear()
	s.eviction = newEviction(s, s.policy)
	s.used, s.idle = 0, 0
	s.DropEvicted()
}

// Leave ends the use by u, whose request goes on elsewhere.
func (s *Store) Leave(u *User) {
	s.Known(u)
	s.disown(u)
	*u = User{}
}

// Finish ends the use by u, whose request has ended.
func (s *Store) Finish(u *User, path kv.Path, blockSize int32) {
	s.eviction.finish(s, u, path, blockSize)
	*u = User{}
}

// Clone returns an independent copy on tree, a clone of the store's tree. It has no watchers.
func (s *Store) Clone(tree *kv.Tree) *Store {
	d := *s
	d.watchers = nil
	d.table, d.scratch, d.spareLists, d.eviction = s.table.clone(tree), nil, nil, s.eviction.clone(tree)
	d.evicted = nil // they are dropped before the batch is formed
	return &d
}
