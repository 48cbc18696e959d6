package engine

import (
	"math"
	"slices"

	"blis/pkg/des"
	"blis/pkg/kv"
	"blis/pkg/tier"
)

// A tier thrashes if blocks are loaded that were stored shortly before: the cache is too small to keep them for their
// next use. So are loads whose request has left when they end.

// stored are blocks whose store was asked for at a time. The one before it in its chain has a number that is lower by
// back.
type stored struct {
	tier.Extent
	back int32
	at   des.Time
}

// chains is how many chains the stores are in, by node.
const chains = 256

// recentStores are the stores asked for in the last window, in that order; a block may be in several. A block that the
// tier has and that is not among them was stored earlier. Blocks of a request that has left, which no other can have,
// may be missing.
type recentStores struct {
	window des.Time
	list   []stored
	first  int // those before are older
	// dropped counts those that are no longer in the list. newest are the numbers, from 1 on, of the newest stores
	// of the chains.
	dropped int64
	newest  [chains]int64
	tree    *kv.Tree      // if nodes are kept alive: else the tier does not have the blocks of one that is no more
	now     des.Time      // of the last stores; some begin later
	spans   []tier.Extent // scratch
}

// askedTimes are the times at which the growths of a phase were asked for, without those long before the last one.
// count is the number of all of them.
type askedTimes struct {
	list  []des.Time
	count int64
}

// oldest returns when the window begins.
func (r *recentStores) oldest() des.Time { return r.now - r.window }

// add notes a store.
func (r *recentStores) add(x tier.Extent, at des.Time) {
	for ; r.first < len(r.list) && r.list[r.first].at < r.oldest(); r.first++ {
		if r.tree != nil {
			r.tree.Unref(r.list[r.first].Node)
		}
	}
	if 2*r.first > len(r.list) {
		r.dropped += int64(r.first)
		r.list, r.first = r.list[:copy(r.list, r.list[r.first:])], 0
	}
	if r.tree != nil {
		r.tree.Ref(x.Node)
	}
	chain := &r.newest[x.Node%chains]
	number := r.dropped + int64(len(r.list)) + 1
	r.list = append(r.list, stored{x, int32(min(number-*chain, math.MaxInt32)), at})
	*chain = number
}

// clear forgets all stores.
func (r *recentStores) clear() {
	for _, x := range r.list[r.first:] {
		if r.tree != nil {
			r.tree.Unref(x.Node)
		}
	}
	r.dropped += int64(len(r.list))
	r.list, r.first = r.list[:0], 0
}

// count returns how many blocks of a list were stored shortly before now.
func (r *recentStores) count(list []tier.Extent, now des.Time) (n int32) {
	for _, x := range list {
		r.spans = r.spans[:0]
		for k := r.newest[x.Node%chains]; k > r.dropped+int64(r.first); {
			y := &r.list[k-r.dropped-1]
			if k -= int64(y.back); y.Node == x.Node && y.at >= now-r.window && y.Lo < x.Hi && x.Lo < y.Hi {
				r.spans = append(r.spans, y.Extent)
			}
		}
		slices.SortFunc(r.spans, func(a, b tier.Extent) int { return int(a.Lo - b.Lo) })
		at := x.Lo
		for _, y := range r.spans {
			if hi := min(y.Hi, x.Hi); hi > at {
				n += hi - max(at, y.Lo)
				at = hi
			}
		}
	}
	return n
}

// add notes that a growth was asked for, and drops times before the oldest one of interest.
func (a *askedTimes) add(at, oldest des.Time) {
	if len(a.list) == cap(a.list) {
		old, _ := slices.BinarySearch(a.list, oldest)
		if 2*old > len(a.list) { // else a longer list costs less than copying this one at each call
			a.list = a.list[:copy(a.list, a.list[old:])]
		}
	}
	a.list = append(a.list, at)
	a.count++
}

func (a askedTimes) clone() askedTimes { return askedTimes{slices.Clone(a.list), a.count} }

// addGrown notes the stores of blocks lo to hi of a node, which grew since their phase was offered this many times.
// Those that are not asked for yet are noted then.
func (r *recentStores) addGrown(node kv.Node, asked *askedTimes, since int64, lo, hi int32) {
	for at := lo; at < hi; at++ {
		k := since + int64(at-lo) - (asked.count - int64(len(asked.list)))
		if k >= int64(len(asked.list)) {
			return
		}
		if k >= 0 {
			r.add(tier.Extent{Node: node, Lo: at, Hi: at + 1}, asked.list[k])
		}
	}
}

func (r *recentStores) clone(tree *kv.Tree) recentStores {
	d := *r
	d.list, d.spans = slices.Clone(r.list), nil
	if r.tree != nil {
		d.tree = tree
	}
	return d
}
