package engine

import (
	"blis/pkg/kv"
	"blis/pkg/tier"
)

// With the policy lazy blocks are stored when the cache gives them to others, as at the limit of vLLM's
// SimpleCPUOffloadConnector (vllm/v1/simple_kv_offload/manager.py in 0.33), which stores the blocks that are next in
// line for that.

// storeGiven stores the blocks that the batch being formed takes from others and that the tier lacks, in one transfer,
// for which its step waits. Without room for all of them none is stored. A batch without tokens is formed again: it may
// have loads that the others now wait for, and the tier less.
func (e *Engine) storeGiven(b *batch) {
	o := e.offload
	var list []tier.Evicted
	for i, x := range e.cache.Given() {
		list = appendFirst(list, x, e.cache.Given()[:i])
	}
	if len(list) > 0 {
		if missing := o.store.CopyEvicted(list); len(missing) > 0 {
			b.storesLeft = true
			o.wait = max(o.wait, e.ask(&pendingStore{seq: none, tag: noTag, extents: missing}, e.now))
		}
	}
	e.cache.DropGiven()
}

// appendFirst appends to a list those of the blocks of x, the last one first, that are not among the ones before.
func appendFirst(list []tier.Evicted, x kv.Given, before []kv.Given) []tier.Evicted {
	for i := len(before) - 1; i >= 0; i-- {
		y := before[i]
		if y.Node != x.Node || y.Hi <= x.Lo || x.Hi <= y.Lo {
			continue
		}
		if y.Hi < x.Hi {
			list = appendFirst(list, kv.Given{Node: x.Node, Lo: y.Hi, Hi: x.Hi}, before[:i])
		}
		if x.Lo < y.Lo {
			list = appendFirst(list, kv.Given{Node: x.Node, Lo: x.Lo, Hi: y.Lo}, before[:i])
		}
		return list
	}
	return append(list, tier.Evicted{Extent: tier.Extent{Node: x.Node, Lo: x.Lo, Hi: x.Hi}})
}
