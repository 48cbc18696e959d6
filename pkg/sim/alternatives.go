package sim

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"

	"blis/pkg/policy"
	"blis/pkg/stream"
)

// resimulate re-simulates the selected decisions of a run with their alternatives and writes the
// differences. base is the same simulation before its start. The recorder is closed by then.
func (g *regretRecorder) resimulate(ctx context.Context, base *simulation, horizon *Horizon) error {
	known := &results{}
	g.feed.workload.mergeSegments()
	base.feed = g.feed.workload.feed()
	base.observers.add(known)
	if err := base.readNext(); err != nil {
		return err
	}
	p := &alternativeRunner{ctx: ctx, base: base, known: known, actual: &g.actual, horizon: horizon}
	sample := g.reliabilityTrials()
	selected := g.selectedDecisions()
	trials := make([][]*trial, len(selected))
	for i := range selected {
		trials[i] = selected[i].trials()
	}
	alternatives, controls := slices.Concat(trials...), controls(selected)
	if horizon != nil {
		sample = nil // the requests' own latencies end later
	}
	if err := p.runAll(slices.Concat(alternatives, controls, sample)); err != nil {
		return err
	}
	if g.worst == 0 && horizon == nil {
		sample = alternatives
	}
	g.addReliability(sample)
	for i, d := range selected {
		x := stream.Regret{Kind: stream.KindRegret, Decision: decisionID(d.number), Request: d.request,
			Stage: d.stage, Method: stream.MethodExact, Alternatives: []stream.Alternative{},
			Sensitivity: sensitivity(selected, i, controls)}
		for _, t := range trials[i] {
			t.change.Insensitive = x.Sensitivity != nil && within(t.change.All, x.Sensitivity)
			x.Alternatives = append(x.Alternatives, t.change)
		}
		if err := g.records.w.Regret(&x); err != nil {
			return err
		}
	}
	return nil
}

// alternativeRunner runs trials: it forks base, the original run from its start, whose results so
// far are known, and compares each fork with actual, the results of the original run.
type alternativeRunner struct {
	ctx           context.Context
	base          *simulation
	known, actual *results
	horizon       *Horizon
}

// runAll runs the trials and sets what each changes. base only moves forward, so trials start in
// the order of their events: a request's admission comes before its routing. Forks are independent
// runs, so several run concurrently while base continues.
func (p *alternativeRunner) runAll(trials []*trial) error {
	slices.SortStableFunc(trials, func(a, b *trial) int { return cmp.Compare(a.event, b.event) })
	errs := make([]error, len(trials))
	free := make(chan struct{}, runtime.GOMAXPROCS(0))
	var wait sync.WaitGroup
	for i, t := range trials {
		free <- struct{}{}
		finish, err := p.start(t)
		if err != nil {
			errs[i] = err
			break
		}
		wait.Go(func() {
			errs[i] = finish()
			<-free
		})
	}
	wait.Wait()
	return cmp.Or(errs...)
}

// start starts one trial. The returned function runs it to its end.
func (p *alternativeRunner) start(t *trial) (finish func() error, err error) {
	p.base.events.limit = t.event - 1
	if err := p.base.run(p.ctx.Err); err != nil {
		return nil, err
	}
	changed, actual := p.known.clone(), p.actual // the forks add to what is known
	forks := []*simulation{p.base.fork(changed)}
	forks[0].decisions.override = t.override
	if t.control != "" && !forks[0].perturb(t.control) {
		return func() error { return nil }, nil
	}
	if p.horizon != nil { // both runs are compared at the same instant
		actual = p.known.clone()
		forks = append(forks, p.base.fork(actual))
	}
	own, stop := int(t.of.position%retryStride), p.ctx.Err
	if t.ownOnly {
		stop = func() error {
			if changed.at(own) != (result{}) {
				return errOwnKnown
			}
			return p.ctx.Err()
		}
	}
	return func() error {
		for _, f := range forks {
			if err := p.runToEnd(f, stop); err != nil && !errors.Is(err, errOwnKnown) {
				return err
			}
		}
		t.change.Own = actual.difference(changed, own, own+1)
		if !t.ownOnly {
			t.change.All = actual.difference(changed, 0, max(len(actual.byPosition), len(changed.byPosition)))
		}
		if t.replica == missing {
			t.change.Verdict, t.change.Replica = t.override.verdict.Action.String(), stream.NoIndex
		} else {
			r := &p.base.replicas[t.replica]
			t.change.Deployment, t.change.Replica = p.base.deployments[r.deployment].id, r.index
		}
		return nil
	}, nil
}

// errOwnKnown ends a fork of which only the result of the request itself counts.
var errOwnKnown = errors.New("the result of the request is known")

// runToEnd runs a fork, whose next event is the decision, to its end, to the horizon of the comparison, or until stop
// returns an error.
func (p *alternativeRunner) runToEnd(f *simulation, stop func() error) error {
	f.events.limit = 1<<63 - 1
	if p.horizon != nil {
		f.horizon = min(f.horizon, f.events.next()+p.horizon.Time)
	}
	if err := f.run(stop); err != nil {
		return err
	}
	return f.close()
}

// trial is one alternative of a decision, at the given event: another replica, or another verdict if
// replica is missing. A control has the name of its random stream and overrules nothing.
type trial struct {
	of       *pastDecision
	event    int64
	override override
	replica  int32
	estimate estimate // of the replica
	control  string
	// ownOnly: only what changes for the request itself counts, so the fork ends when that is known.
	ownOnly bool
	change  stream.Alternative // of the request itself, and of all requests
}

// trials returns the alternatives of a decision.
func (d *pastDecision) trials() (all []*trial) {
	for _, c := range d.alternatives {
		all = append(all, &trial{of: d, event: d.event, replica: c.replica, estimate: c,
			override: override{decision: d.number, candidate: c.candidate}})
	}
	if a := d.admission; a.number >= 0 {
		opposite := policy.Verdict{Action: policy.Admit}
		if a.verdict.Action == policy.Admit {
			opposite.Action = policy.Reject
		}
		all = append(all, &trial{of: d, event: a.event, replica: missing,
			override: override{decision: a.number, verdict: opposite}})
	}
	return all
}

// result is the result of one request: its TTFT and E2E latency in µs, stream.Never if undefined,
// and whether it met its targets.
type result struct {
	ttft, e2e      stream.Micros
	completed, met bool
}

// results observes the result of each request, by position.
type results struct{ byPosition []result }

// at is the result of the request at a position.
func (f *results) at(position int) result {
	if position < len(f.byPosition) {
		return f.byPosition[position]
	}
	return result{}
}

// clone returns an independent copy.
func (f *results) clone() *results { return &results{slices.Clone(f.byPosition)} }

// difference sums up what others change at the positions from first to end-1.
func (f *results) difference(others *results, first, end int) *stream.Difference {
	d := &stream.Difference{}
	var ttft, e2e stream.Micros
	for i := first; i < end; i++ {
		actual, changed := f.at(i), others.at(i)
		switch {
		case changed.met && !actual.met:
			d.SLOGained++
		case actual.met && !changed.met:
			d.SLOLost++
		}
		switch {
		case changed.completed && !actual.completed:
			d.Completed++
		case actual.completed && !changed.completed:
			d.Completed--
		case actual.completed && (actual.ttft != changed.ttft || actual.e2e != changed.e2e):
			d.LatencyChanged++
			ttft += actual.ttft - changed.ttft
			e2e += actual.e2e - changed.e2e
		}
	}
	d.TTFTMS, d.E2EMS = float64(ttft)/1000, float64(e2e)/1000
	return d
}

func (f *results) hooks() []hook { return []hook{onFinal} }

func (f *results) observe(s *simulation, _ hook, i int32) error {
	r := s.request(i)
	o, at := &r.out, r.position%retryStride
	if o.Retried { // the last attempt counts
		return nil
	}
	for int64(len(f.byPosition)) <= at {
		f.byPosition = append(f.byPosition, result{})
	}
	own := result{ttft: stream.Never, e2e: stream.Never, completed: o.State == stream.StateCompleted,
		met: o.SLOMet != nil && *o.SLOMet}
	if !o.FirstTokenUS.IsZero() {
		own.ttft = o.FirstTokenUS - o.Began()
	}
	if own.completed {
		own.e2e = o.CompletedUS - o.Began()
	}
	f.byPosition[at] = own
	return nil
}
