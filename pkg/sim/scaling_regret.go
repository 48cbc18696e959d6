package sim

import (
	"cmp"
	"context"
	"math"
	"runtime"
	"sync"

	"blis/pkg/stream"
)

// scalingRegret observes changes of the number of replicas. After the run it simulates the whole workload again for
// each alternative to some of them: the same change one look earlier, one look later, or not at that look.
type scalingRegret struct {
	n       int // of changes to re-simulate
	w       *stream.Writer
	feed    recordingFeed
	actual  results
	changes []scalingChange
}

// scalingChange is a look at which the number of replicas of a deployment changed.
type scalingChange struct {
	look
	at      stream.Micros
	count   int64 // of its deployment's looks before it
	desired int
}

// forcedLook replaces what the look after count others decides.
type forcedLook struct {
	count    int64
	replicas int
}

// forced is the number of replicas that a look decides: that of the auto-scaler, n, unless it is replaced.
func (e *elastic) forced(n int) int {
	for _, f := range e.overrides {
		if f.count == e.looks {
			n = f.replicas
		}
	}
	return n
}

// newScalingRegret makes s record what the alternatives need. It is nil if none are asked for.
func newScalingRegret(c *Counterfactual, s *simulation, w *stream.Writer) *scalingRegret {
	if c.scaling == 0 {
		return nil
	}
	g := &scalingRegret{n: c.scaling, w: w}
	g.feed.feed, s.feed = s.feed, &g.feed
	s.observers.add(g)
	s.observers.add(&g.actual)
	return g
}

func (g *scalingRegret) hooks() []hook { return []hook{onScale} }

func (g *scalingRegret) observe(s *simulation, _ hook, i int32) error {
	e := s.deployments[i].elastic
	if l := s.fleet.last; e.desired != l.current {
		g.changes = append(g.changes, scalingChange{l, stream.Micros(s.now), e.looks, e.desired})
	}
	return nil
}

// selected are the changes to re-simulate: all of them, or n at even distances.
func (g *scalingRegret) selected() (some []scalingChange) {
	n := min(g.n, len(g.changes))
	for k := range n {
		some = append(some, g.changes[k*len(g.changes)/n])
	}
	return some
}

// scalingControls is the number of runs in which only one request has one output token more.
const scalingControls = 4

// resimulate writes the regret of the selected changes of the run s. fresh returns the same simulation before its
// start, without a workload.
func (g *scalingRegret) resimulate(ctx context.Context, s *simulation, fresh func() (*simulation, error)) error {
	selected := g.selected()
	if len(selected) == 0 {
		return nil
	}
	g.feed.workload.mergeSegments()
	var trials []*scalingTrial
	for i := range selected {
		trials = append(trials, selected[i].trials()...)
	}
	alternatives := len(trials)
	controls := min(scalingControls, len(g.feed.workload))
	for k := range controls {
		trials = append(trials, &scalingTrial{lengthened: 1 + k*len(g.feed.workload)/controls})
	}
	if err := g.runAll(ctx, s, trials, fresh); err != nil {
		return err
	}
	noise, gpuS := scalingNoise(trials[alternatives:])
	sensitivity := &stream.ScalingSensitivity{Controls: noise.Controls, SLO: noise.SLO, Completed: noise.Completed,
		TTFTMS: noise.TTFTMS, E2EMS: noise.E2EMS, GPUS: gpuS}
	for i := range selected {
		c := &selected[i]
		x := stream.ScalingRegret{Kind: stream.KindScalingRegret, Decision: decisionID(c.number), AtUS: c.at,
			Deployment: s.fleetName(&s.deployments[c.deployment]), Current: int64(c.current), Desired: int64(c.desired),
			Sensitivity: sensitivity}
		for _, t := range trials[:alternatives] {
			if t.of == c {
				t.change.Insensitive = within(t.change.All, &noise) && math.Abs(t.change.GPUS) <= gpuS
				x.Alternatives = append(x.Alternatives, t.change)
			}
		}
		if err := g.w.Any(&x); err != nil {
			return err
		}
	}
	return nil
}

// scalingTrial is one more run: with the looks of a change replaced or, if of is nil, with one output token more for
// arrival number lengthened, from 1.
type scalingTrial struct {
	of         *scalingChange
	overrides  []forcedLook
	lengthened int
	change     stream.ScalingAlternative
}

// trials returns the alternatives of a change. The first look has none before it.
func (c *scalingChange) trials() (all []*scalingTrial) {
	add := func(change string, overrides ...forcedLook) {
		all = append(all, &scalingTrial{of: c, overrides: overrides, change: stream.ScalingAlternative{Change: change}})
	}
	stay := forcedLook{c.count, c.current}
	if c.count > 0 {
		add(stream.ScalingEarlier, forcedLook{c.count - 1, c.desired})
	}
	add(stream.ScalingLater, stay, forcedLook{c.count + 1, c.desired})
	add(stream.ScalingNever, stay)
	return all
}

// runAll runs the trials, which are independent of each other, and sets what each changes.
func (g *scalingRegret) runAll(ctx context.Context, s *simulation, trials []*scalingTrial,
	fresh func() (*simulation, error)) error {
	errs := make([]error, len(trials))
	free := make(chan struct{}, runtime.GOMAXPROCS(0))
	var wait sync.WaitGroup
	for i, t := range trials {
		free <- struct{}{}
		wait.Go(func() {
			errs[i] = g.run(ctx, s, t, fresh)
			<-free
		})
	}
	wait.Wait()
	return cmp.Or(errs...)
}

func (g *scalingRegret) run(ctx context.Context, s *simulation, t *scalingTrial,
	fresh func() (*simulation, error)) error {
	f, err := fresh()
	if err != nil {
		return err
	}
	feed, changed := g.feed.workload.feed(), &results{}
	if t.lengthened > 0 {
		feed.lengthen(t.lengthened - 1)
	}
	f.feed = feed
	f.observers.add(changed)
	if t.of != nil {
		f.deployments[t.of.deployment].elastic.overrides = t.overrides
	}
	if err := f.readNext(); err != nil {
		return err
	}
	if err := f.run(ctx.Err); err != nil {
		return err
	}
	if err := f.close(); err != nil {
		return err
	}
	t.change.All = g.actual.difference(changed, 0, max(len(g.actual.byPosition), len(changed.byPosition)))
	t.change.GPUS = float64(s.gpuUS()-f.gpuUS()) / 1e6
	return nil
}

// gpuUS is the sum over GPUs of the time in which a replica held them.
func (s *simulation) gpuUS() (sum int64) {
	for i := range s.replicas {
		sum += s.upUS(i) * int64(s.deployments[s.replicas[i].deployment].gpus)
	}
	return sum
}

// scalingNoise is the largest change in the controls.
func scalingNoise(controls []*scalingTrial) (s stream.Sensitivity, gpuS float64) {
	s.Controls = int64(len(controls))
	for _, t := range controls {
		widen(&s, t.change.All)
		gpuS = max(gpuS, math.Abs(t.change.GPUS))
	}
	return s, gpuS
}
