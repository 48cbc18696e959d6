package sim

import (
	"blis/pkg/kv"
	"blis/pkg/policy"
)

// What replicas report of their caches: evictions to the router's shadow, and
// everything to the image of a cache that is not looked at each time.

// watchCache lets the router hear of replica i's cache, if it wants to.
func (s *simulation) watchCache(i int32, c *kv.Cache) {
	w := &cacheReports{sim: s, replica: i}
	for _, list := range [...][]timed{s.seen.periodic, s.seen.demands} {
		for _, t := range list {
			if t.field == policy.FieldCache {
				w.image = s.seen.own[i].image
				if w.image == nil {
					w.image = kv.NewImage(c)
					s.seen.own[i].image = w.image
				}
				c.Watch(w.image)
			}
		}
	}
	if s.router.shadow != nil && s.router.ShadowEvictions {
		c.Watch(w)
	}
}

// cacheReports passes on what a cache tells.
type cacheReports struct {
	sim     *simulation
	replica int32
	image   *kv.Image // nil if nobody wants it
}

// Found is called by the cache.
func (w *cacheReports) Found(n kv.Node, lo, hi int32) {
	if w.image != nil {
		w.image.Found(n, lo, hi)
	}
}

// Lost is called by the cache.
func (w *cacheReports) Lost(n kv.Node, lo, hi int32) {
	if w.image != nil {
		w.image.Lost(n, lo, hi)
	}
	s := w.sim
	s.tree.Ref(n) // until the report has arrived
	s.router.reports = append(s.router.reports, report{s.now + s.router.ShadowLagUS, w.replica, n, lo, hi})
}

// report is an eviction that the router hears of at a time.
type report struct {
	at      int64
	replica int32
	node    kv.Node
	lo, hi  int32
}

// hear lets the shadow learn what was reported by now.
func (s *simulation) hear() {
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
