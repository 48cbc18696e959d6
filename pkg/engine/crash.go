package engine

import (
	"slices"

	"blis/pkg/des"
)

// Crash ends a replica without a tier at time now: the step in flight has no results, and the cache is lost. All
// requests must have been aborted or have moved. It returns the tags of those that were aborted during the step and
// leave now. The replica can then be used again. It keeps its Stats and when its clients got the last tokens.
func (e *Engine) Crash(now des.Time) []int32 {
	e.Stop(now)
	e.inFlight, e.hasNext = false, false
	e.result.Aborted = e.result.Aborted[:0]
	e.dropAborted()
	left := slices.Clone(e.result.Aborted)
	e.cache.Clear()
	fresh := New(e.cfg, e.model, e.cache)
	fresh.stats, fresh.deliveredAt, fresh.notBefore = e.stats, e.deliveredAt, e.notBefore
	fresh.emittedTick = e.cache.Ticks()
	*e = *fresh
	return left
}
