package sim

import (
	"cmp"
	"context"
	"runtime"
	"slices"
	"sync"

	"blis/pkg/policy"
	"blis/pkg/stream"
)

// resimulate re-simulates the selected decisions of a run with their alternatives and writes the
// differences. base is the same simulation before its start.
func (g *regretRecorder) resimulate(ctx context.Context, base *simulation, horizon *Horizon) error {
	known := &results{}
	base.feed = &replayFeed{workload: &g.feed.workload}
	base.observers.add(known)
	if err := base.readNext(); err != nil {
		return err
	}
	selected := g.selectedDecisions()
	p := &alternativeRunner{ctx: ctx, base: base, known: known, actual: &g.actual, horizon: horizon}
	var trials []trial
	for i := range selected {
		trials = append(trials, selected[i].trials()...)
	}
	alternatives, err := p.runAll(trials)
	if err != nil {
		return err
	}
	for i := range selected {
		n := len(selected[i].trials())
		if err := g.writeExact(&selected[i], alternatives[:n]); err != nil {
			return err
		}
		alternatives = alternatives[n:]
	}
	return nil
}

// writeExact writes what the alternatives of a decision change.
func (g *regretRecorder) writeExact(d *pastDecision, alternatives []stream.Alternative) error {
	return g.w.Any(&stream.Regret{Kind: stream.KindRegret, Decision: decisionID(d.number), Request: d.request,
		Stage: d.stage, Method: stream.MethodExact, Alternatives: alternatives})
}

// alternativeRunner runs trials: it forks base, the original run from its start, whose results so
// far are known, and compares each fork with actual, the results of the original run.
type alternativeRunner struct {
	ctx           context.Context
	base          *simulation
	known, actual *results
	horizon       *Horizon
}

// runAll runs the trials and returns what each changes. base only moves forward, so trials start in
// the order of their events: a request's admission comes before its routing. Forks are independent
// runs, so several run concurrently while base continues.
func (p *alternativeRunner) runAll(trials []trial) ([]stream.Alternative, error) {
	order := make([]int, len(trials))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(trials[a].event, trials[b].event) })
	results, errs := make([]stream.Alternative, len(trials)), make([]error, len(trials))
	free := make(chan struct{}, runtime.GOMAXPROCS(0))
	var wait sync.WaitGroup
	for _, i := range order {
		free <- struct{}{}
		finish, err := p.start(trials[i])
		if err != nil {
			errs[i] = err
			break
		}
		wait.Go(func() {
			results[i], errs[i] = finish()
			<-free
		})
	}
	wait.Wait()
	return results, cmp.Or(errs...)
}

// start starts one trial. The returned function runs it to its end and returns what it changes.
func (p *alternativeRunner) start(t trial) (finish func() (stream.Alternative, error), err error) {
	p.base.events.limit = t.event - 1
	if err := p.base.run(p.ctx.Err); err != nil {
		return nil, err
	}
	changed, actual := &results{}, p.actual
	forks := []*simulation{p.base.fork(changed)}
	forks[0].decisions.override = t.override
	if p.horizon != nil { // both runs are compared at the same instant
		actual = &results{}
		forks = append(forks, p.base.fork(actual))
	}
	finalized := p.known.finalized()
	return func() (stream.Alternative, error) {
		for _, f := range forks {
			if err := p.runToEnd(f); err != nil {
				return stream.Alternative{}, err
			}
		}
		return p.alternative(t, finalized, actual, changed), nil
	}, nil
}

// alternative is the difference between the results actual and changed: for the request itself, and
// for all requests that were not final when the trial began.
func (p *alternativeRunner) alternative(t trial, finalized []bool, actual, changed *results) stream.Alternative {
	a := stream.Alternative{Replica: stream.NoIndex, Own: &stream.Difference{}, All: &stream.Difference{}}
	if t.replica == missing {
		a.Verdict = t.override.verdict.Action.String()
	} else {
		r := &p.base.replicas[t.replica]
		a.Deployment, a.Replica = p.base.deployments[r.deployment].id, r.index
	}
	*a.All = actual.difference(changed, func(i int) bool { return i >= len(finalized) || !finalized[i] })
	*a.Own = actual.difference(changed, func(i int) bool { return int64(i) == t.of.position })
	return a
}

// runToEnd runs a fork, whose next event is the decision, to its end or to the horizon of the
// comparison.
func (p *alternativeRunner) runToEnd(f *simulation) error {
	f.events.limit = 1<<63 - 1
	if p.horizon != nil {
		f.horizon = min(f.horizon, f.events.queue.Next()+p.horizon.Time)
	}
	if err := f.run(p.ctx.Err); err != nil {
		return err
	}
	return f.close()
}

// trial is one alternative of a decision, at the given event: another replica, or another verdict if
// replica is missing.
type trial struct {
	of       *pastDecision
	event    int64
	override override
	replica  int32
}

// trials returns the alternatives of a decision.
func (d *pastDecision) trials() (all []trial) {
	for _, c := range d.alternatives {
		all = append(all, trial{d, d.event, override{decision: d.number, candidate: c.index}, c.replica})
	}
	if a := d.admission; a.number >= 0 {
		opposite := policy.Verdict{Action: policy.Admit}
		if a.verdict.Action == policy.Admit {
			opposite.Action = policy.Reject
		}
		all = append(all, trial{d, a.event, override{decision: a.number, verdict: opposite}, missing})
	}
	return all
}
