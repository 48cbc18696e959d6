package engine

import (
	"slices"

	"blis/pkg/des"
)

// Crash ends a replica at time now: the step in flight has no results, transfers under way fail, and the cache and the
// tier are lost. All requests must have been aborted or have moved. It returns the tags of those that were aborted
// earlier and leave now. The replica can then be used again. It keeps its Stats and when its clients got the last
// tokens.
func (e *Engine) Crash(now des.Time) []int32 {
	e.Stop(now)
	e.inFlight, e.hasNext = false, false
	e.result.Aborted = e.result.Aborted[:0]
	e.dropAborted()
	e.crashTier()
	left := slices.Clone(e.result.Aborted)
	e.cache.Clear()
	fresh := New(e.cfg, e.model, e.cache)
	fresh.stats, fresh.deliveredAt, fresh.notBefore = e.stats, e.deliveredAt, e.notBefore
	fresh.emittedTick = e.cache.Ticks()
	if e.offload != nil {
		fresh.offload.stats = e.offload.stats
	}
	if e.lora != nil {
		fresh.lora.changes = e.lora.changes
	}
	*e = *fresh
	e.stopGrowthOnDemand()
	return left
}

// crashTier removes the requests that still have blocks, and empties the tier.
func (e *Engine) crashTier() {
	o := e.offload
	if o == nil {
		return
	}
	for _, s := range slices.Concat(o.orphans, o.late) {
		e.leave(s)
	}
	e.dropReleased()
	if o.store == nil {
		return
	}
	for i := range o.left {
		o.store.Release(o.left[i].path)
	}
	o.store.Clear()
	o.recent.clear()
}

// FailTransfers ends all transfers between the cache and the tier, as of a replica that is gone.
func (e *Engine) FailTransfers(now des.Time) {
	if o := e.offload; o != nil && o.store != nil {
		e.endStores(now)
		o.loading, o.storing, o.growths.active = nil, nil, nil
	}
}
