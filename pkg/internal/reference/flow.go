package reference

import (
	"cmp"
	"math"
	"slices"
)

// Flow configures flow control: the queue in front of the router.
type Flow struct {
	// Order is fifo, priority, deadline or an ordering policy of llm-d, Fairness none, round-robin or a fairness
	// policy of llm-d. Bands: no request leaves before those of a higher priority.
	Order, Fairness string
	Bands           bool
	// Capacity limits the number of requests that wait, TTLUS the time for which they do; 0 is no limit.
	Capacity int
	TTLUS    int64
	// Detector measures the saturation, nil is the mean of max(queue/5, usage/0.8). Nothing leaves from Saturation
	// on, or from what Limit says for a band, unless that is nil.
	Saturation      float64
	Detector, Limit *Plugin
}

// flow is the queue in front of the router. Requests wait in it in the order in which they came.
type flow struct {
	waiting []*request
	// bands are the priorities of all requests that came, the highest first.
	bands []float64
	turns map[float64]*turns // by band
	// due: the queue is tried after the other events of this instant. refreshAt is when it is tried because the
	// replicas report, or Never.
	due       bool
	refreshAt int64
	decisions int // of the soft ceiling
}

// turns are the tenants of a band in the order in which they take turns. last had the last turn, if one was started.
type turns struct {
	tenants []string
	last    string
	started bool
}

// queueUp puts a request into the queue of flow control.
func (s *simulation) queueUp(q *request, now int64) {
	c, f := s.config.Flow, &s.flow
	q.stage, q.until, q.flowAt = stageFlow, Never, now
	f.waiting = append(f.waiting, q)
	f.join(c, q)
	s.drain(now)
	switch {
	case q.stage != stageFlow, q.final():
	case c.Capacity > 0 && len(f.waiting) > c.Capacity:
		f.remove(c, q)
		q.outcome.State, q.outcome.Reason, q.outcome.AdmittedUS = Rejected, "admission", Never
	case c.TTLUS > 0:
		q.until = now + c.TTLUS
	}
}

// expire ends a request that has waited too long in flow control.
func (s *simulation) expire(q *request, _ int64) {
	s.flow.remove(s.config.Flow, q)
	q.outcome.State, q.outcome.Reason = TimedOut, "admission_delay"
}

// band is the priority of a request, or 0 if that does not matter.
func (c *Flow) band(q *request) float64 {
	if c.Bands {
		return q.Priority
	}
	return 0
}

// byName: tenants take turns by name, from the first on once nothing waits.
func (c *Flow) byName() bool { return c.Fairness == "round-robin-fairness-policy" }

// join adds a request's band and its tenant to the known ones.
func (f *flow) join(c *Flow, q *request) {
	band := c.band(q)
	if f.turns[band] == nil {
		f.turns[band] = &turns{}
		f.bands = append(f.bands, band)
		slices.SortFunc(f.bands, func(a, b float64) int { return cmp.Compare(b, a) })
	}
	t := f.turns[band]
	if !slices.Contains(t.tenants, q.Tenant) {
		if t.tenants = append(t.tenants, q.Tenant); c.byName() {
			slices.Sort(t.tenants)
		}
	}
}

// remove takes a request out of the queue.
func (f *flow) remove(c *Flow, q *request) {
	i := slices.Index(f.waiting, q)
	f.waiting = slices.Delete(f.waiting, i, i+1)
	if band := c.band(q); c.byName() && len(f.of(c, band)) == 0 {
		f.turns[band].started = false
	}
}

// of are the requests of a band that wait.
func (f *flow) of(c *Flow, band float64) []*request {
	return slices.DeleteFunc(slices.Clone(f.waiting), func(q *request) bool { return c.band(q) != band })
}

// drain sends requests while the replicas are not saturated.
func (s *simulation) drain(now int64) {
	c, f := s.config.Flow, &s.flow
	for len(f.waiting) > 0 {
		among := s.replicas
		first := f.waiting[0]
		if s.config.hasFleet() {
			first = f.next(c, math.Inf(-1))
		}
		if s.isHeldBack(first, now) {
			return
		}
		if s.config.hasFleet() {
			candidates := s.candidates(first, now)
			if len(candidates) == 0 && s.hopes(first, now) {
				return
			}
			if len(candidates) == 0 {
				f.remove(c, first)
				first.outcome.State, first.outcome.Reason = failed, "no_replica"
				continue
			}
			among = nil
			for _, i := range append(candidates, s.candidatesOf(true, first, now)...) {
				among = append(among, s.replicas[i])
			}
		}
		q := f.next(c, s.saturation(now, among))
		if q == nil {
			if c.Detector == nil || c.Detector.Name == "utilization-detector" {
				f.refreshAt = s.nextRead(now)
			}
			return
		}
		band := f.turns[c.band(q)]
		band.last, band.started = q.Tenant, true
		f.remove(c, q)
		s.send(q, now)
	}
}

// nextRead is when the replicas report next, at this instant if its other events are not done, or Never if they do all
// the time.
func (s *simulation) nextRead(now int64) int64 {
	every := s.config.SnapshotUS
	if every == 0 {
		return Never
	}
	if now%every == 0 && !s.router.settled {
		return now
	}
	return (now/every + 1) * every
}

// next is the request that leaves next, nil if none may: of the highest band in which one waits, unless that
// band or a higher one is closed.
func (f *flow) next(c *Flow, saturation float64) *request {
	for k, limit := range f.limits(c, saturation) {
		waiting := f.of(c, f.bands[k])
		switch {
		case saturation >= limit:
			return nil
		case len(waiting) == 0:
			continue
		case c.Fairness == "round-robin" || c.byName():
			tenant := f.turns[f.bands[k]].next(waiting)
			waiting = slices.DeleteFunc(waiting, func(q *request) bool { return q.Tenant != tenant })
		}
		return slices.MinFunc(waiting, func(a, b *request) int { return cmp.Compare(c.rank(a), c.rank(b)) })
	}
	panic("reference: nothing waits in any band")
}

// next is the first tenant after the last one for which a request waits.
func (t *turns) next(waiting []*request) string {
	at := -1
	if t.started {
		at = slices.Index(t.tenants, t.last)
	}
	for {
		at = (at + 1) % len(t.tenants)
		tenant := t.tenants[at]
		if slices.ContainsFunc(waiting, func(q *request) bool { return q.Tenant == tenant }) {
			return tenant
		}
	}
}

// rank is the place of a request among those of its queue: the lowest leaves first, of equals the one that came first.
func (c *Flow) rank(q *request) float64 {
	deadline := math.Inf(1)
	if q.DeadlineUS != Never {
		deadline = float64(q.DeadlineUS)
	}
	switch c.Order {
	case "priority":
		return -q.Priority
	case "deadline":
		return deadline
	case "edf-ordering-policy":
		if c.TTLUS > 0 {
			return min(deadline, float64(q.flowAt+c.TTLUS))
		}
		return deadline
	case "slo-deadline-ordering-policy":
		if q.TTFTTargetMS == 0 {
			return math.Inf(1)
		}
		return float64(q.outcome.ArrivalUS) + 1000*q.TTFTTargetMS
	}
	return 0
}

// limits are the saturations from which on the bands are closed.
func (f *flow) limits(c *Flow, saturation float64) []float64 {
	limits := make([]float64, len(f.bands))
	last := len(limits) - 1
	open := 0.0
	if c.Limit != nil && c.Limit.Name == "soft-reflective-ceiling-policy" && last > 0 &&
		saturation < 1 && 2*saturation >= 1 {
		f.decisions++
		if f.decisions%int(max(1, math.Round(saturation/(1-saturation+1e-9)))) == 0 {
			open = 1
		}
	}
	for i := range limits {
		limits[i] = c.Saturation
		if c.Limit == nil {
			continue
		}
		lowest, highest := c.Limit.Numbers["minCeiling"], c.Limit.Numbers["maxCeiling"]
		switch {
		case c.Limit.Name == "static-usage-limit-policy":
			limits[i] = c.Limit.Numbers["threshold"]
		case c.Limit.Name == "soft-reflective-ceiling-policy":
			limits[i] = open
			if i == 0 || saturation < 1-float64(i)*saturation/float64(last) {
				limits[i] = 1
			}
		case last == 0: // priority-holdback-policy
			limits[i] = highest
		case c.Limit.says("domain", "rank"):
			limits[i] = highest - float64(i)*(highest-lowest)/float64(last)
		default:
			least := f.bands[last]
			limits[i] = lowest + (f.bands[i]-least)/(f.bands[0]-least)*(highest-lowest)
		}
	}
	return limits
}

// saturation is how busy these replicas are.
func (s *simulation) saturation(now int64, among []*replica) float64 {
	n := float64(len(among))
	if s.config.SnapshotUS == 0 {
		s.readReports(now)
	}
	s.router.now, s.router.requests = now, s.requests
	p, sum := s.config.Flow.Detector, 0.0
	for _, x := range among {
		i := slices.Index(s.replicas, x)
		tokens, _ := s.router.load(i, x)
		of, k := s.routerOf(i)
		switch {
		case p == nil:
			sum += max(float64(s.report(i).queued+s.unreported(i))/5, s.report(i).usage/0.8)
		case p.Name == "utilization-detector":
			if s.router.reportAge() > seconds(*p, "metricsStalenessThreshold") {
				sum++
			} else {
				sum += max(float64(s.report(i).queued)/p.Numbers["queueDepthThreshold"],
					s.report(i).usage/p.Numbers["kvCacheUtilThreshold"])
			}
		case p.says("concurrencyMode", "hybrid"):
			sum += max(float64(of.inflight[k])/p.Numbers["maxConcurrency"],
				float64(tokens)/p.Numbers["maxTokenConcurrency"])
		case p.says("concurrencyMode", "tokens"):
			sum += float64(tokens)
			n = p.Numbers["maxTokenConcurrency"] * float64(len(among))
		default:
			sum += float64(of.inflight[k])
			n = p.Numbers["maxConcurrency"] * float64(len(among))
		}
	}
	return sum / n
}

// unreported counts the requests that were sent to a replica, are there or on the way, and were not in the queue that
// it reported last.
func (s *simulation) unreported(replica int) int {
	n := 0
	for _, q := range s.requests {
		at, sent := q.outcome.Replica, q
		if q.stage == stagePrefillDelay || q.stage == stagePrefill || q.stage == stageEncoding && q.twin != nil {
			at, sent = q.twin.outcome.Replica, q.twin
		}
		left := (q.final() || sent.final()) && !slices.Contains(s.replicas[replica].leaving(), sent)
		if at == replica && !sent.reported && !left && q.stage > stageFlow {
			n++
		}
	}
	return n
}

// isFlowIndexed reports whether flow control looks at llm-d's index of prompts.
func (c *Config) isFlowIndexed() bool {
	return c.Flow != nil && c.Flow.Detector != nil && c.Flow.Detector.Name == "concurrency-detector" &&
		!c.Flow.Detector.says("concurrencyMode", "requests")
}
