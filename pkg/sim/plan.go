package sim

import (
	"cmp"
	"context"
	"math"
	"runtime"
	"slices"
	"sync"

	"blis/pkg/cluster"
	"blis/pkg/metrics"
	"blis/pkg/stream"
)

const (
	// planWindows is the number of windows of a plan, minWindow the minimum number of arrivals in one.
	planWindows, minWindow = 24, 8
	// planRules is the number of rules that a plan uses: the best ones for a whole run.
	planRules = 4
)

// planner makes the plan of a clairvoyant router. It begins with the rule that is best for the whole run. Window by
// window, it then simulates the rest of the run with each other rule in the window, and keeps what is better for
// all requests together. So the plan is never worse than any rule alone, the policy included.
type planner struct {
	ctx     context.Context
	targets bool // else latency
	base    *simulation
	known   *results
	plan    *plan
}

// total is what plans are compared by: requests that did not complete, those that missed a target, and the sum of
// the E2E latencies in µs.
type total struct {
	incomplete, missed int
	e2e                int64
}

// trialPlan is a plan with its total.
type trialPlan struct {
	rules []int
	total
}

// makePlan returns the plan for the run of base, a simulation before its start, whose feed is in memory. calls is
// the number of requests in the workload.
func makePlan(ctx context.Context, base *simulation, calls int64, goal string) (*plan, error) {
	p := &planner{ctx: ctx, targets: goal == stream.GoalTargets, base: base, known: &results{},
		plan: &plan{window: max(minWindow, (calls+planWindows-1)/planWindows)}}
	stop := &pause{}
	base.route(newClairvoyant(len(base.replicas), p.plan))
	base.observers.add(p.known)
	base.observers.add(stop)
	if err := base.readNext(); err != nil {
		return nil, err
	}
	var trials []trialPlan
	for _, number := range allRules() {
		trials = append(trials, trialPlan{rules: []int{number}})
	}
	if err := p.tryAll(trials); err != nil {
		return nil, err
	}
	slices.SortStableFunc(trials, func(x, y trialPlan) int { return p.compare(x.total, y.total) })
	best, others := trials[0], trials[1:min(len(trials), planRules)]
	constant := best.rules[0]
	for k := 0; ; k++ {
		trials = trials[:0:0]
		for _, o := range others {
			rules := append(slices.Clone(best.rules[:min(k, len(best.rules))]), o.rules[0], constant)
			trials = append(trials, trialPlan{rules: rules})
		}
		if err := p.tryAll(trials); err != nil {
			return nil, err
		}
		for _, t := range trials {
			if p.compare(t.total, best.total) < 0 {
				best = t
			}
		}
		for len(best.rules) < k+2 {
			best.rules = append(best.rules, constant)
		}
		p.plan.rules = best.rules
		stop.at = int64(k+1) * p.plan.window
		base.events.limit = noLimit
		if err := base.run(ctx.Err); err != nil || base.events.limit == noLimit { // the end
			return p.plan, err
		}
	}
}

// noLimit is more events than any run has.
const noLimit = math.MaxInt64

// tryAll simulates the rest of the run by each plan.
func (p *planner) tryAll(trials []trialPlan) error {
	errs := make([]error, len(trials))
	free := make(chan struct{}, runtime.GOMAXPROCS(0))
	var wait sync.WaitGroup
	for i := range trials {
		free <- struct{}{}
		known := p.known.clone()
		f := p.base.fork(known)
		f.router.chooser.(*clairvoyant).plan = &plan{rules: trials[i].rules, window: p.plan.window}
		f.events.limit = noLimit
		wait.Go(func() {
			if errs[i] = f.run(p.ctx.Err); errs[i] == nil {
				errs[i] = f.close()
			}
			trials[i].total = known.total()
			<-free
		})
	}
	wait.Wait()
	return cmp.Or(errs...)
}

// compare compares totals by the goal of the plan; the better one is lower.
func (p *planner) compare(x, y total) int {
	if p.targets {
		return cmp.Or(cmp.Compare(x.missed, y.missed), cmp.Compare(x.incomplete, y.incomplete),
			cmp.Compare(x.e2e, y.e2e))
	}
	return cmp.Or(cmp.Compare(x.incomplete, y.incomplete), cmp.Compare(x.e2e, y.e2e))
}

// total sums the results.
func (f *results) total() (t total) {
	for _, r := range f.byPosition {
		if !r.met {
			t.missed++
		}
		if r.completed {
			t.e2e += int64(r.e2e)
		} else {
			t.incomplete++
		}
	}
	return t
}

// pause stops a run at that many arrivals.
type pause struct{ at int64 }

func (p *pause) hooks() []hook { return []hook{onArrival} }

func (p *pause) observe(s *simulation, _ hook, _ int32) error {
	if s.counts.Offered == p.at {
		s.events.limit = s.events.count
	}
	return nil
}

// lookAhead reads the workload and makes s route by a plan for it. It returns what no plan can beat.
func (s *simulation) lookAhead(ctx context.Context, c *cluster.Config, classes []stream.SLOClass,
	specs []replicaSpec, o *Options) (*metrics.Bound, error) {
	w, calls, err := readAll(s.feed)
	if err != nil {
		return nil, err
	}
	base, err := newSimulation(c, classes, specs, o)
	if err != nil {
		return nil, err
	}
	base.feed, s.feed = w.feed(), w.feed()
	base.horizon = s.horizon
	p, err := makePlan(ctx, base, calls, o.Clairvoyant)
	if err != nil {
		return nil, err
	}
	s.route(newClairvoyant(len(s.replicas), p))
	return s.bound(c, w)
}

// route makes s, which has not started, route by c.
func (s *simulation) route(c *clairvoyant) {
	s.router.chooser = c
	s.observers.add(c)
}

// readAll reads a workload into memory, and counts its requests.
func readAll(a feed) (w workload, calls int64, err error) {
	f := &recordingFeed{feed: a}
	for {
		next, _, err := f.next()
		if next == nil || err != nil {
			return slices.Clip(f.workload), calls, err
		}
		if calls++; next.IsSession {
			calls += int64(len(next.Session.Steps)) - 1
		}
	}
}
