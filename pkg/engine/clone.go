package engine

import (
	"slices"

	"blis/pkg/kv"
	"blis/pkg/latency"
)

// Clone returns an engine that goes on from here by itself, on a clone of its
// cache, with a latency model and a choice of victims of its own. Sequences keep
// their numbers.
func (e *Engine) Clone(cache *kv.Cache, model latency.Model, victim func(int32, Progress) float64) *Engine {
	d := *e
	d.cache, d.model, d.cfg.Victim = cache, model, victim
	d.seqs, d.spare = slices.Clone(e.seqs), slices.Clone(e.spare)
	for i := range d.seqs {
		d.seqs[i].gaps.List = slices.Clone(d.seqs[i].gaps.List)
	}
	d.wait.heap = slices.Clone(e.wait.heap)
	d.singles, d.steadies, d.endings = slices.Clone(e.singles), e.steadies.Clone(), slices.Clone(e.endings)
	d.window.crossing = slices.Clone(e.window.crossing)
	d.current, d.ahead = e.current.clone(), e.ahead.clone()
	d.formed = nil // nobody reads what the last Start formed any more
	d.aborted, d.thrown = slices.Clone(e.aborted), slices.Clone(e.thrown)
	d.log.peaks, d.log.all = slices.Clone(e.log.peaks), slices.Clone(e.log.all)
	d.parts, d.finished, d.ending, d.before, d.ends = slices.Clone(e.parts), nil, nil, kv.Ahead{}, Ends{}
	return &d
}

func (b *batch) clone() *batch {
	c := *b
	c.Admitted, c.Preempted, c.Resumed = slices.Clone(b.Admitted), slices.Clone(b.Preempted), slices.Clone(b.Resumed)
	c.last, c.tokens = slices.Clone(b.last), slices.Clone(b.tokens)
	return &c
}
