package policy

import (
	"math"
	"slices"
)

// Fleet is what an auto-scaler sees of a deployment, or of all those that it scales together.
type Fleet struct {
	NowUS int64
	// Replicas are those that serve or warm up, as the router sees them. Loading ones load the model, Provisioning
	// ones have no GPUs yet. Draining ones complete their requests and are no part of the number.
	Replicas                        []Replica
	Loading, Provisioning, Draining int
	// Min is the minimum number of replicas.
	Min int
	// Waiting is the number of requests for the deployment's model in flow control.
	Waiting int
	// ScaledUS is the time of the last change of the number of replicas, 0 before.
	ScaledUS int64
	// Traffic is that of the deployment; nil unless the policy needs it.
	Traffic *Traffic
	// Engine is a replica of the deployment.
	Engine *Engine
	// ID and Price, of a replica for an hour, are those of the deployment when one of a fleet is chosen.
	ID    string
	Price float64
	// memory is that of the policy which is deciding, if it has one.
	memory *memory
}

// Current is the number of replicas. Those that drain are not in it.
func (f *Fleet) Current() int { return len(f.Replicas) + f.starting() }

// starting is the number of replicas that do not serve yet.
func (f *Fleet) starting() int { return f.Loading + f.Provisioning }

// sum adds up a value of the replicas that serve.
func (f *Fleet) sum(of func(*Replica) float64) (sum float64) {
	for i := range f.Replicas {
		sum += of(&f.Replicas[i])
	}
	return sum
}

// mean is the mean of a value over the replicas that serve, 0 without any.
func (f *Fleet) mean(of func(*Replica) float64) float64 {
	return f.sum(of) / float64(max(1, len(f.Replicas)))
}

// trafficUS is the time over which an auto-scaler sees rates and latencies.
const trafficUS = 60e6

// maxLoads is the number of intervals between looks of which Traffic keeps the rate.
const maxLoads = 60

// Traffic is what a router measures of the requests of a deployment. Those that have not been sent to any deployment
// belong to all deployments of their model.
type Traffic struct {
	arrivals []int64
	ended    []Ended
	windowUS int64
	loads    []float64 // of the last intervals, the newest one last
	since    int64     // the start of the present interval
	present  interval
	interval interval // the last one
}

// interval has the requests between two looks: those that arrived and those that completed.
type interval struct {
	lengthUS           int64
	arrived, completed int
	// input and output are the tokens of those that completed, cached the sum of the shares of their prompts that the
	// router expected to be cached.
	input, output int64
	cached        float64
}

// Ended is a request that is final.
type Ended struct {
	AtUS  int64
	Class string
	// HasTargets: its class has SLO targets, all of which it met if MetTargets.
	HasTargets, MetTargets bool
	// TTFTUS and E2EUS are its latencies, negative if it has none.
	TTFTUS, E2EUS int64
	// Input and Output are its tokens, Cached those of its prompt that the router expected to be cached.
	Input, Output, Cached int64
}

// NewTraffic returns the traffic of a deployment without requests. windowUS is the longest time over which a policy
// looks at requests that have ended.
func NewTraffic(windowUS int64) *Traffic { return &Traffic{windowUS: max(windowUS, trafficUS)} }

// Arrive counts a request that arrives. Times never decrease.
func (t *Traffic) Arrive(atUS int64) {
	t.arrivals = append(t.arrivals, atUS)
	t.present.arrived++
	if old := len(t.arrivals) / 2; old > 0 && t.arrivals[old] <= atUS-trafficUS {
		t.arrivals = slices.Delete(t.arrivals, 0, old)
	}
}

// End counts a request that is final.
func (t *Traffic) End(e *Ended) {
	if e.E2EUS >= 0 {
		x := &t.present
		x.completed++
		x.input, x.output = x.input+e.Input, x.output+e.Output
		x.cached += float64(e.Cached) / float64(max(1, e.Input))
	}
	t.ended = append(t.ended, *e)
	if old := len(t.ended) / 2; old > 0 && t.ended[old].AtUS <= e.AtUS-t.windowUS {
		t.ended = slices.Delete(t.ended, 0, old)
	}
}

// Look ends the interval since the last look.
func (t *Traffic) Look(atUS int64) {
	if atUS > t.since {
		t.loads = append(t.loads, float64(t.present.arrived)*1e6/float64(atUS-t.since))
		t.loads = t.loads[max(0, len(t.loads)-maxLoads):]
		t.interval = t.present
		t.interval.lengthUS = atUS - t.since
	}
	t.since, t.present = atUS, interval{}
}

// Clone returns an independent copy; t may be nil.
func (t *Traffic) Clone() *Traffic {
	if t == nil {
		return nil
	}
	c := *t
	c.arrivals, c.ended, c.loads = slices.Clone(t.arrivals), slices.Clone(t.ended), slices.Clone(t.loads)
	return &c
}

// rate is the number of requests per second over the last minute or, before its end, since the start.
func (t *Traffic) rate(now int64) float64 {
	n := 0
	for i := len(t.arrivals) - 1; i >= 0 && t.arrivals[i] > now-trafficUS; i-- {
		n++
	}
	return float64(n) * 1e6 / float64(min(trafficUS, max(now, 1)))
}

// load is the rate in an interval between two looks; 0 is the last one. It is 0 before the first.
func (t *Traffic) load(i int) float64 {
	if i >= len(t.loads) {
		return 0
	}
	return t.loads[len(t.loads)-1-i]
}

// recent returns the requests that have ended in the last windowUS.
func (t *Traffic) recent(now, windowUS int64) []Ended {
	i := len(t.ended)
	for i > 0 && t.ended[i-1].AtUS > now-windowUS {
		i--
	}
	return t.ended[i:]
}

// attainment is the share of the requests of a class, of all classes for "", that met their targets among those that
// have ended in the last windowUS, and their number. Without any the share is 1.
func (t *Traffic) attainment(class string, now, windowUS int64) (share float64, n int) {
	met := 0
	for _, e := range t.recent(now, windowUS) {
		if e.HasTargets && (class == "" || e.Class == class) {
			if n++; e.MetTargets {
				met++
			}
		}
	}
	if n == 0 {
		return 1, 0
	}
	return float64(met) / float64(n), n
}

// meanE2E is the mean E2E in ms of the requests that completed in the last minute, 0 without any.
func (t *Traffic) meanE2E(now int64) float64 {
	sum, n := int64(0), int64(0)
	for _, e := range t.recent(now, trafficUS) {
		if e.E2EUS >= 0 {
			sum, n = sum+e.E2EUS, n+1
		}
	}
	return float64(sum) / float64(max(1, n)) / 1000
}

// ttft is a quantile of the TTFT in ms of the requests that ended in the last minute, by nearest rank; 0 without any.
func (t *Traffic) ttft(quantile float64, now int64) float64 {
	var all []int64
	for _, e := range t.recent(now, trafficUS) {
		if e.TTFTUS >= 0 {
			all = append(all, e.TTFTUS)
		}
	}
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return float64(all[max(0, int(math.Ceil(quantile*float64(len(all))))-1)]) / 1000
}
