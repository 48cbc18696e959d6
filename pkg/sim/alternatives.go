package sim

import (
	"cmp"
	"context"
	"runtime"
	"sync"

	"blis/pkg/stream"
)

// brancher plays decisions again: from forks of base, the same run from its start,
// whose requests end as actual says.
type brancher struct {
	ctx     context.Context
	base    *simulation
	actual  *fates
	horizon *Horizon
}

// all plays tries in this order, and returns what each changes. The forks are runs of
// their own, so that several are played side by side while the base goes on.
func (p *brancher) all(tries []try, order []int) ([]stream.Alternative, error) {
	results, errs := make([]stream.Alternative, len(tries)), make([]error, len(tries))
	free := make(chan struct{}, runtime.GOMAXPROCS(0))
	var wait sync.WaitGroup
	for _, i := range order {
		free <- struct{}{}
		finish, err := p.try(tries[i])
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

// try begins one alternative; what it returns plays it to its end and says what it
// changes.
func (p *brancher) try(t try) (finish func() (stream.Alternative, error), err error) {
	p.base.bound = t.event - 1
	if err := p.base.run(p.ctx.Err); err != nil {
		return nil, err
	}
	f, was := p.base.fork(&fates{}), (*simulation)(nil)
	f.forced = t.forced
	if p.horizon != nil { // what would have been by then is compared with what was by then
		was = p.base.fork(&fates{})
	}
	settled := p.base.ledger.(*fates).settled()
	return func() (stream.Alternative, error) {
		actual := p.actual
		if was != nil {
			if err := p.finish(was); err != nil {
				return stream.Alternative{}, err
			}
			actual = was.ledger.(*fates)
		}
		if err := p.finish(f); err != nil {
			return stream.Alternative{}, err
		}
		return p.alternative(t, settled, actual, f.ledger.(*fates)), nil
	}, nil
}

// alternative is what t changes of what was, given what would have been, over the
// request itself and over all that were not settled when it began.
func (p *brancher) alternative(t try, settled []bool, was, would *fates) stream.Alternative {
	a := stream.Alternative{Replica: stream.Nowhere, Own: &stream.Difference{}, All: &stream.Difference{}}
	if t.replica == nowhere {
		a.Verdict = t.forced.verdict.Action.String()
	} else {
		r := &p.base.replicas[t.replica]
		a.Deployment, a.Replica = p.base.deployments[r.deployment].id, r.index
	}
	*a.All = was.difference(would, func(i int) bool { return i >= len(settled) || !settled[i] })
	*a.Own = was.difference(would, func(i int) bool { return int64(i) == t.of.position })
	return a
}

// finish plays a fork, whose next event is the decision, to its end or as far
// beyond that as it is looked at.
func (p *brancher) finish(f *simulation) error {
	f.bound = 1<<63 - 1
	if p.horizon != nil {
		f.horizon = min(f.horizon, f.queue.Next()+p.horizon.Time)
	}
	if err := f.run(p.ctx.Err); err != nil {
		return err
	}
	return f.close()
}
