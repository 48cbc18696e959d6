package engine

import (
	"slices"

	"blis/pkg/kv"
	"blis/pkg/latency"
)

// Clone returns an independent copy of the engine in its current state, on a clone of its cache,
// with its own latency model and preemption score. Sequences keep their numbers. StopGrowth comes first.
func (e *Engine) Clone(cache *kv.Cache, model latency.Model, victim func(int32, Progress) float64) *Engine {
	d := *e
	d.cache, d.model, d.cfg.PreemptionScore = cache, model, victim
	d.seqs, d.spare = slices.Clone(e.seqs), slices.Clone(e.spare)
	for i := range d.seqs {
		d.seqs[i].gaps.List = slices.Clone(d.seqs[i].gaps.List)
	}
	d.wait.heap = slices.Clone(e.wait.heap)
	d.individual, d.decoding, d.finishing = slices.Clone(e.individual), e.decoding.Clone(), slices.Clone(e.finishing)
	d.started = slices.Clone(e.started)
	d.window.fillsAt = slices.Clone(e.window.fillsAt)
	d.current, d.next = e.current.clone(), e.next.clone()
	d.formed = nil // the batches of the last Start are no longer read
	d.aborted, d.earlierPreempted = slices.Clone(e.aborted), slices.Clone(e.earlierPreempted)
	d.log.peaks, d.log.all = slices.Clone(e.log.peaks), slices.Clone(e.log.all)
	d.scheduled, d.finished = slices.Clone(e.scheduled), nil
	d.offload, d.loaders = e.offload.clone(cache.Tree()), slices.Clone(e.loaders)
	if d.offload != nil {
		d.cfg.Offload = d.offload.cfg
	}
	d.spec, d.lora, d.grammars, d.encoder = e.spec.clone(), e.lora.clone(), e.grammars.clone(), e.encoder.clone()
	d.pipe, d.cadence = e.pipe.clone(), e.cadence.clone()
	d.skipping.skipped, d.early = nil, nil
	d.stopGrowthOnDemand()
	d.own, d.result = ownLoad{}, StepResult{}
	return &d
}

func (b *batch) clone() *batch {
	c := *b
	c.Entries = slices.Clone(b.Entries)
	c.Admitted, c.Preempted, c.Resumed = slices.Clone(b.Admitted), slices.Clone(b.Preempted), slices.Clone(b.Resumed)
	c.drafted, c.masked = slices.Clone(b.drafted), slices.Clone(b.masked)
	c.flights, c.stages = slices.Clone(b.flights), slices.Clone(b.stages)
	c.encoded, c.withItems = slices.Clone(b.encoded), slices.Clone(b.withItems)
	c.finishing, c.individual = slices.Clone(b.finishing), slices.Clone(b.individual)
	c.stores = slices.Clone(b.stores)
	for i := range c.stores {
		c.stores[i].extents = slices.Clone(c.stores[i].extents)
	}
	return &c
}

// clone returns an independent copy on a clone of the tree, which has the same storage.
func (o *offload) clone(tree *kv.Tree) *offload {
	if o == nil {
		return nil
	}
	d, cfg := *o, *o.cfg
	if o.store != nil {
		d.store = o.store.Clone(tree)
		cfg.Store = d.store
	}
	d.cfg = &cfg
	d.uses = slices.Clone(o.uses)
	for i := range d.uses {
		d.uses[i].User = o.uses[i].User.Clone()
	}
	d.loading, d.storing, d.started = slices.Clone(o.loading), slices.Clone(o.storing), slices.Clone(o.started)
	d.pulling, d.released = slices.Clone(o.pulling), slices.Clone(o.released)
	d.below.promoting, d.below.copying = slices.Clone(o.below.promoting), slices.Clone(o.below.copying)
	for _, list := range [][]underWay{d.loading, d.storing, d.below.promoting, d.below.copying} {
		for i := range list {
			list[i].extents = slices.Clone(list[i].extents)
		}
	}
	d.growths = o.growths.clone()
	d.fills = slices.Clone(o.fills)
	for i := range d.fills {
		d.fills[i] = slices.Clone(o.fills[i])
	}
	d.recent, d.loaded = o.recent.clone(tree), nil
	d.refused, d.orphans, d.late = slices.Clone(o.refused), slices.Clone(o.orphans), slices.Clone(o.late)
	d.left = slices.Clone(o.left)
	for i := range d.left {
		x := &d.left[i]
		x.User, x.path, x.marked = x.User.Clone(), slices.Clone(x.path), slices.Clone(x.marked)
	}
	d.offers, d.skipped, d.below.promoted = nil, nil, nil
	return &d
}
