package sim

import (
	"cmp"
	"context"
	"runtime"
	"sync"

	"blis/pkg/stream"
)

// alternativeRunner re-simulates decisions: it forks base, the same run from its start, and compares
// each fork with actual, the results of the original run.
type alternativeRunner struct {
	ctx     context.Context
	base    *simulation
	actual  *results
	horizon *Horizon
}

// runAll runs the trials in the given order and returns what each changes. Forks are independent
// runs, so several run concurrently while base continues.
func (p *alternativeRunner) runAll(trials []trial, order []int) ([]stream.Alternative, error) {
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
	p.base.eventLimit = t.event - 1
	if err := p.base.run(p.ctx.Err); err != nil {
		return nil, err
	}
	fork, actualFork := p.base.fork(&results{}), (*simulation)(nil)
	fork.override = t.override
	if p.horizon != nil { // both runs are compared at the same instant
		actualFork = p.base.fork(&results{})
	}
	finalized := p.base.sink.(*results).finalized()
	return func() (stream.Alternative, error) {
		actual := p.actual
		if actualFork != nil {
			if err := p.runToEnd(actualFork); err != nil {
				return stream.Alternative{}, err
			}
			actual = actualFork.sink.(*results)
		}
		if err := p.runToEnd(fork); err != nil {
			return stream.Alternative{}, err
		}
		return p.alternative(t, finalized, actual, fork.sink.(*results)), nil
	}, nil
}

// alternative is the difference between the results actual and changed: for the request itself, and
// for all requests that were not final when the trial began.
func (p *alternativeRunner) alternative(t trial, finalized []bool, actual, changed *results) stream.Alternative {
	a := stream.Alternative{Replica: stream.Nowhere, Own: &stream.Difference{}, All: &stream.Difference{}}
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
	f.eventLimit = 1<<63 - 1
	if p.horizon != nil {
		f.horizon = min(f.horizon, f.queue.Next()+p.horizon.Time)
	}
	if err := f.run(p.ctx.Err); err != nil {
		return err
	}
	return f.close()
}
