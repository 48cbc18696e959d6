package gen

import (
	"fmt"
	"slices"

	"blis/pkg/stream"
)

// plan is the steps of a session with the most iterations of its workflow. One
// with fewer has the same steps but for the last iterations.
type plan struct {
	steps []planned
	// before is how many come before the loop, iteration how many one iteration
	// has, iterations how many there are.
	before, iteration, iterations int
}

// planned is one step of a session: all that is the same in every session.
type planned struct {
	// spec is its place in the workflow, id its name in the session.
	spec int
	id   string
	// iteration is from 1 in the loop, else 0.
	iteration int64
	// twin is the first of the parallel calls of the step, itself if alone.
	twin stream.Index
	// after are the steps that it waits for, reads the tools among them that return
	// to it.
	after, reads []stream.Index
	// extends is the call whose prompt its own begins with, prompt what comes then,
	// its own text at the end.
	extends stream.Index
	prompt  []part
}

// part is a piece of a prompt: what step of says, generates or returns.
type part struct {
	of   stream.Index
	kind partKind
}

type partKind int8

const (
	text   partKind = iota // what a call says by itself
	answer                 // what it generates
	result                 // what a tool returns
)

// newPlan lays out the sessions of w. It fails if names clash.
func newPlan(w *workflow) (*plan, error) {
	b := &planner{workflow: w, plan: &plan{}, now: make([][]stream.Index, len(w.Steps)), names: map[string]int{}}
	order, behind := w.sorted(), w.behindLoop()
	for _, i := range order {
		if !w.looped[i] && !behind[i] {
			b.add(i, 0)
		}
	}
	b.before = len(b.steps)
	if w.Loop != nil {
		for k := range w.Loop.MaxIterations {
			b.iterate(order, k+1)
			if b.clash != nil {
				return nil, b.clash
			}
		}
		b.iterations = int(w.Loop.MaxIterations)
		b.iteration = (len(b.steps) - b.before) / b.iterations
	}
	for _, i := range order {
		if behind[i] {
			b.add(i, 0)
		}
	}
	if b.clash != nil {
		return nil, b.clash
	}
	b.findPrompts()
	return b.plan, nil
}

// planner adds steps to a plan.
type planner struct {
	*workflow
	*plan
	// now are the calls of each step, in the iteration at hand; ended are those
	// that ended the iteration before.
	now   [][]stream.Index
	ended []stream.Index
	// names are the steps that the ids belong to, clash that two have the same.
	names map[string]int
	clash error
}

// iterate adds one iteration of the loop.
func (b *planner) iterate(order []int, iteration int64) {
	for _, i := range order {
		if b.looped[i] {
			b.add(i, iteration)
		}
	}
	b.ended = nil
	for i := range b.workflow.Steps {
		if b.isExit(i) {
			b.ended = append(b.ended, b.now[i]...)
		}
	}
}

// add adds the calls of step i.
func (b *planner) add(i int, iteration int64) {
	step := &b.workflow.Steps[i]
	var after, reads []stream.Index
	for _, j := range b.waits[i] {
		reads = append(reads, b.now[j]...)
		if iteration <= 1 || b.looped[j] { // what is outside has completed before the second iteration
			after = append(after, b.now[j]...)
		}
	}
	switch {
	case iteration == 1 && len(b.waits[i]) == 0:
		for _, j := range b.beforeLoop() {
			after = append(after, b.now[j]...)
		}
	case iteration > 1 && b.isEntry(i):
		after = b.ended
		reads = union(reads, b.ended)
	case iteration == 0 && b.waitsForLoop(i):
		after = union(after, b.ended)
	}
	reads = slices.DeleteFunc(reads, func(at stream.Index) bool { return !b.isTool(at) })
	slices.Sort(after)
	slices.Sort(reads)
	b.now[i] = nil
	twin := stream.Index(len(b.steps))
	for n := range step.copies() {
		id := step.ID
		if iteration > 0 {
			id = fmt.Sprintf("%s-%d", id, iteration)
		}
		if step.FanOut != nil {
			id = fmt.Sprintf("%s.%d", id, n)
		}
		b.name(id, i)
		b.now[i] = append(b.now[i], stream.Index(len(b.steps)))
		b.steps = append(b.steps, planned{spec: i, id: id, iteration: iteration, twin: twin, after: after, reads: reads, extends: stream.Nowhere})
	}
}

// name notes that a call of step i has an id.
func (b *planner) name(id string, i int) {
	if j, taken := b.names[id]; taken && b.clash == nil {
		b.clash = b.fault(b.at(max(i, j), "id"), "calls of %q and of %q would both be named %q in a session", b.ids[min(i, j)], b.ids[max(i, j)], id)
	}
	b.names[id] = i
}

func (b *planner) isTool(at stream.Index) bool { return b.workflow.Steps[b.steps[at].spec].isTool() }

// union is a and those of more that are not in it.
func union(a, more []stream.Index) []stream.Index {
	a = slices.Clone(a)
	for _, at := range more {
		if !slices.Contains(a, at) {
			a = append(a, at)
		}
	}
	return a
}

// run is the plan of a session with so many iterations.
type run struct {
	*plan
	// loopEnd is the place behind its last iteration, left how many of the plan's
	// steps it does not have.
	loopEnd, left int
}

func (p *plan) run(iterations int) run {
	return run{p, p.before + iterations*p.iteration, (p.iterations - iterations) * p.iteration}
}

// len is how many steps it has.
func (r run) len() int { return len(r.steps) - r.left }

// at returns its step at a place, and by how much the places that the step names
// must be lowered: behind the loop, which names its last iteration.
func (r run) at(place int) (step *planned, lower int) {
	if place < r.loopEnd {
		return &r.steps[place], 0
	}
	return &r.steps[place+r.left], r.left
}

// lowered is a place of the plan as a place of the session.
func (r run) lowered(place stream.Index, by int) stream.Index {
	if int(place) < r.before {
		return place
	}
	return place - stream.Index(by)
}
