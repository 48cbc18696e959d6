package reference

import "slices"

// deployment is what expressions of an auto-scaler read, by the names of its signals.
type deployment struct {
	replicas, ready, starting, draining, queueDepth, inflight, kvUtil, utilization float64
	rate, e2eMS, ttftP99MS, sinceScaleS                                            float64
	attained                                                                       float64
	judged                                                                         int // requests with targets
	history                                                                        []float64
}

// Formula is a CEL number and the same in Go.
type Formula struct {
	Text string
	of   func(d deployment) float64
}

// Formulas are for expressions and trees of auto-scaling.
var Formulas = []Formula{
	{"deployment.inflight / 3 + deployment.draining / 8",
		func(d deployment) float64 { return d.inflight/3 + d.draining/8 }},
	{"deployment.load_history[0] > deployment.load_history[1] ? deployment.replicas + 1 : deployment.ready",
		func(d deployment) float64 {
			if d.load(0) > d.load(1) {
				return d.replicas + 1
			}
			return d.ready
		}},
	{`deployment.attainment[""] < 0.9 ? deployment.replicas + 2 : deployment.replicas - deployment.kv_util * 2`,
		func(d deployment) float64 {
			if d.attained < 0.9 {
				return d.replicas + 2
			}
			return d.replicas - d.kvUtil*2
		}},
	{"deployment.e2e_ms > deployment.ttft_p99_ms * 1.5 ? deployment.replicas + 1 : deployment.starting + 1",
		func(d deployment) float64 {
			if d.e2eMS > d.ttftP99MS*1.5 {
				return d.replicas + 1
			}
			return d.starting + 1
		}},
	{"deployment.since_scale_s * deployment.rate > 2 ? deployment.queue_depth / 2 : deployment.replicas",
		func(d deployment) float64 {
			if d.sinceScaleS*d.rate > 2 {
				return d.queueDepth / 2
			}
			return d.replicas
		}},
	{"deployment.rate >= deployment.load_history[3] ? deployment.replicas + 1 - deployment.utilization : 1",
		func(d deployment) float64 {
			if d.rate >= d.load(3) {
				return d.replicas + 1 - d.utilization
			}
			return 1
		}},
}

// Condition is a CEL condition and the same in Go.
type Condition struct {
	Text string
	of   func(d deployment) bool
}

// Conditions are for triggers. The first one is none.
var Conditions = []Condition{
	{"", func(deployment) bool { return true }},
	{"deployment.queue_depth > 1", func(d deployment) bool { return d.queueDepth > 1 }},
	{"deployment.inflight > 2 * deployment.ready || deployment.inflight == 0",
		func(d deployment) bool { return d.inflight > 2*d.ready || d.inflight == 0 }},
	{"deployment.rate > 0", func(d deployment) bool { return d.rate > 0 }},
}

func (d deployment) load(i int) float64 {
	if i >= len(d.history) {
		return 0
	}
	return d.history[i]
}

// triggered reports whether the auto-scaler looks at this check.
func (s *simulation) triggered(x *scaler, now int64) bool {
	c := x.config
	if c.Trigger == 0 {
		return true
	}
	if !Conditions[c.Trigger].of(s.deployment(x, now)) {
		x.heldAt = Never
		return false
	}
	if x.heldAt == Never {
		x.heldAt = now
	}
	if now-x.heldAt < c.HoldUS {
		return false
	}
	x.heldAt = Never
	return true
}

// minuteUS is the time over which rates and latencies count.
const minuteUS = 60_000_000

// deployment returns the signals at now.
func (s *simulation) deployment(x *scaler, now int64) deployment {
	return s.deploymentOf(x, func(all []int) []int { return all }, now)
}

// deploymentOf has the signals of some replicas.
func (s *simulation) deploymentOf(x *scaler, some func([]int) []int, now int64) deployment {
	running := some(s.inStates(x, "warming", "ready"))
	d := deployment{replicas: float64(len(some(s.present(x)))), ready: float64(len(running)),
		draining: float64(len(some(s.inStates(x, "draining")))), attained: 1}
	d.starting = d.replicas - d.ready
	for _, i := range running {
		r := s.report(i)
		d.queueDepth += float64(r.queued)
		d.inflight += float64(s.inflight(i))
		d.kvUtil += r.usage
		d.utilization += float64(r.running) / float64(s.replicas[i].config.MaxNumSeqs)
	}
	d.kvUtil /= float64(max(1, len(running)))
	d.utilization /= float64(max(1, len(running)))
	changed := int64(0)
	if x.lastAct != Never {
		changed = x.lastAct
	}
	d.sinceScaleS = float64(now-changed) / 1e6
	d.rate = float64(s.arrivals(max(0, now-minuteUS+1)-1, now)) * 1e6 / float64(min(minuteUS, now))
	d.history = s.history(x)
	s.latencies(&d, now)
	return d
}

// arrivals counts the requests that have arrived after from, and until now at the latest.
func (s *simulation) arrivals(from, now int64) (n int) {
	for _, q := range s.requests {
		if q.stage != stageBlocked && q.outcome.ArrivalUS > from && q.outcome.ArrivalUS <= now {
			n++
		}
	}
	return n
}

// history has the rate in each interval between two looks, the last one first. Requests that a look did not see, though
// they arrived at its instant, are in the interval after it.
func (s *simulation) history(x *scaler) (rates []float64) {
	before := numberAt{}
	for _, look := range x.looks {
		rates = append(rates, float64(look.n-before.n)*1e6/float64(look.at-before.at))
		before = look
	}
	slices.Reverse(rates)
	return rates
}

// latencies sets the signals about requests that have ended.
func (s *simulation) latencies(d *deployment, now int64) {
	met, completed, e2e := 0, 0, int64(0)
	var ttft []int64
	for _, q := range s.requests {
		if !q.judged || q.outcome.Retried || q.outcome.State == BeyondHorizon || q.ended <= now-minuteUS {
			continue
		}
		began := q.outcome.ArrivalUS - q.outcome.RetryUS
		if q.outcome.FirstTokenUS != Never {
			ttft = append(ttft, q.outcome.FirstTokenUS-began)
		}
		done := q.outcome.State == Completed
		if done {
			completed++
			e2e += q.outcome.CompletedUS - began
		}
		if q.TTFTTargetMS > 0 {
			d.judged++
			if done && float64(q.outcome.FirstTokenUS-began)/1000 <= q.TTFTTargetMS {
				met++
			}
		}
	}
	if d.judged > 0 {
		d.attained = float64(met) / float64(d.judged)
	}
	if completed > 0 {
		d.e2eMS = float64(e2e) / float64(completed) / 1000
	}
	if len(ttft) > 0 {
		slices.Sort(ttft)
		rank := (99*len(ttft) + 99) / 100 // the least number that is at least 99 % of all
		d.ttftP99MS = float64(ttft[rank-1]) / 1000
	}
}
