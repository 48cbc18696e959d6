package sim

import (
	"slices"

	"blis/pkg/cluster"
	"blis/pkg/des"
	"blis/pkg/kv"
	"blis/pkg/policy"
	"blis/pkg/scale"
)

// Replicas that are slow, and replicas whose reports do not reach the router.

// slowEvent multiplies the lengths of the steps of a replica that start from one time on and before another.
type slowEvent struct {
	from, until des.Time
	factor      float64
}

// slowEvents returns those of a replica. f may be nil.
func (f *failures) slowEvents(s *simulation, i int32) (all []slowEvent) {
	if f == nil {
		return nil
	}
	for k := range f.config.Events {
		if e := &f.config.Events[k]; e.Kind == cluster.FailureSlow && s.isOf(e, i) {
			from, until := interval(e)
			all = append(all, slowEvent{from, until, e.Factor})
		}
	}
	return all
}

// isOf reports whether a failure is one of a replica.
func (s *simulation) isOf(e *cluster.Failure, i int32) bool {
	r := &s.replicas[i]
	return int(r.index) == e.Replica && s.deployments[r.deployment].id == e.Deployment
}

// interval returns when a failure begins and ends, which were checked.
func interval(e *cluster.Failure) (from, until des.Time) {
	from, err := e.At.Micros()
	if err != nil {
		panic("sim: " + err.Error())
	}
	if e.For == "" {
		return from, noHorizon
	}
	us, err := e.For.Micros()
	if err != nil {
		panic("sim: " + err.Error())
	}
	return from, from + us
}

// slowSteps are steps that slowEvents made longer and that anomaly detectors do not know yet.
type slowSteps struct{ from, until, count, actualUS, normalUS des.Time }

func (x *slowSteps) add(start, normal, actual des.Time) {
	if x.count == 0 {
		x.from = start
	}
	x.until, x.count = start+actual, x.count+1
	x.normalUS, x.actualUS = x.normalUS+normal, x.actualUS+actual
}

// pace is what changes the lengths of the steps of a replica: it warms up since a time, unless warmup is nil, and may
// be slow.
type pace struct {
	warmup *scale.Warmup
	since  des.Time
	events []slowEvent
}

// normal returns how long a step takes, in µs, where events do not count.
func (p *pace) normal(start, length des.Time) float64 {
	if p.warmup == nil {
		return float64(length)
	}
	return float64(length) * p.warmup.At(start-p.since)
}

func (p *pace) length(start, length des.Time) des.Time {
	us := p.normal(start, length)
	for _, e := range p.events {
		if e.contains(start) {
			us = float64(us * e.factor)
		}
	}
	return des.Micros(us)
}

func (e slowEvent) contains(start des.Time) bool { return e.from <= start && start < e.until }

// setSlow sets the lengths of the steps of a replica.
func (s *simulation) setSlow(i int32, w *scale.Warmup, since des.Time) {
	p := &pace{w, since, s.failures.slowEvents(s, i)}
	if s.failures != nil {
		s.failures.replicas[i].pace = p
	}
	if w == nil && len(p.events) == 0 {
		s.replicas[i].engine.Slow(nil)
		return
	}
	s.replicas[i].engine.Slow(p.length)
}

// countSlow notes the step that a replica has just started if events make it longer. f may be nil.
func (f *failures) countSlow(s *simulation, i int32) {
	if f == nil {
		return
	}
	x, e := &f.replicas[i], s.replicas[i].engine
	step := e.Step()
	slows := func(e slowEvent) bool { return e.contains(step.Start) && e.factor != 1 }
	if slices.ContainsFunc(x.pace.events, slows) {
		normal := des.Micros(x.pace.normal(step.Start, e.Length()))
		x.slow.add(step.Start, normal, e.Duration())
	}
}

// partition is what the telemetry knows of a replica whose reports are cut off: by how many failures, and until when
// they were the last time.
type partition struct {
	failures int
	healedAt des.Time
}

// isCut reports whether the reports of a replica are cut off.
func (o *telemetry) isCut(i int32) bool { return int(i) < len(o.cut) && o.cut[i].failures > 0 }

// cutOff cuts off the reports of a replica, or restores them.
func (s *simulation) cutOff(i int32, begins bool) {
	o := s.telemetry
	for int(i) >= len(o.cut) {
		o.cut = append(o.cut, partition{})
	}
	x := &o.cut[i]
	if !begins {
		if x.failures--; x.failures == 0 {
			x.healedAt = s.now
			o.stats[i].StepUS = o.counters[i].stepUS
			o.afterChange(s, i)
			s.router.flow.schedule(s)
		}
		return
	}
	if x.failures == 0 {
		o.beforeChange(s, i, s.instantDone())
		for _, f := range o.late {
			o.sample(s, i, f, s.now)
		}
	}
	x.failures++
}

// keepImages makes the router's view of the caches of replicas that may be cut off a copy.
func (s *simulation) keepImages() {
	if !s.router.needs.all.Has(policy.FieldCache) {
		return
	}
	for k := range s.failures.config.Events {
		e := &s.failures.config.Events[k]
		i := s.replicaOf(e)
		if e.Kind != cluster.FailurePartition || i == missing || s.telemetry.counters[i].image != nil {
			continue
		}
		cache := s.replicas[i].engine.Cache()
		w := &cacheWatcher{sim: s, replica: i, cache: cache, image: kv.NewImage(cache)}
		s.telemetry.counters[i].image = w.image
		watchTiers(s, i)
		if s.router.needs.all&policy.NeedShadow != 0 && s.router.config.ShadowEvictions {
			cache.Watch(w)
		}
	}
}
