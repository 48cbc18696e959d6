package sim

import (
	"blis/pkg/kv"
	"blis/pkg/policy"
)

// Replicas report changes of their caches: evictions to the router's prefix index, and all changes
// to the stale image of a cache.

// watchCache subscribes the router to replica i's cache as its policies need.
func (s *simulation) watchCache(i int32, c *kv.Cache) {
	w := &cacheWatcher{sim: s, replica: i}
	for _, list := range [...][]refreshInterval{s.telemetry.periodic, s.telemetry.onDemand} {
		for _, t := range list {
			if t.field == policy.FieldCache {
				w.image = s.telemetry.counters[i].image
				if w.image == nil {
					w.image = kv.NewImage(c)
					s.telemetry.counters[i].image = w.image
				}
				c.Watch(w.image)
			}
		}
	}
	if s.router.shadow != nil && s.router.ShadowEvictions {
		c.Watch(w)
	}
}

// cacheWatcher forwards the changes of a cache.
type cacheWatcher struct {
	sim     *simulation
	replica int32
	image   *kv.Image // nil if not needed
}

// Inserted is called by the cache.
func (w *cacheWatcher) Inserted(n kv.Node, lo, hi int32) {
	if w.image != nil {
		w.image.Inserted(n, lo, hi)
	}
}

// Evicted is called by the cache.
func (w *cacheWatcher) Evicted(n kv.Node, lo, hi int32) {
	if w.image != nil {
		w.image.Evicted(n, lo, hi)
	}
	s := w.sim
	s.tree.Ref(n) // until the report is applied
	s.router.reports = append(s.router.reports, evictionReport{s.now + s.router.ShadowLagUS, w.replica, n, lo, hi})
}

// evictionReport is an eviction that reaches the router at a given time.
type evictionReport struct {
	at      int64
	replica int32
	node    kv.Node
	lo, hi  int32
}

// applyEvictions updates the prefix index with all reports due by now.
func (s *simulation) applyEvictions() {
	r := s.router
	n := 0
	for n < len(r.reports) && r.reports[n].at <= s.now {
		e := r.reports[n]
		r.shadow.Evicted(e.replica, e.node, e.lo, e.hi)
		s.tree.Unref(e.node)
		n++
	}
	if n > 0 {
		r.reports = append(r.reports[:0], r.reports[n:]...)
	}
}
