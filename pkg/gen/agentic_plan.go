package gen

import (
	"fmt"
	"slices"

	"blis/pkg/stream"
)

// plan holds the steps of a session with the maximum number of iterations. A session with fewer
// iterations leaves out the last ones.
type plan struct {
	steps []plannedStep
	// stepsBeforeLoop, stepsPerIteration and maxIterations give the layout of steps.
	stepsBeforeLoop, stepsPerIteration, maxIterations int
}

// plannedStep is one step of a session, with everything that is the same in all sessions.
type plannedStep struct {
	// spec is the index of the step in the workflow, id its id in the session.
	spec int
	id   string
	// iteration counts from 1 in the loop and is 0 outside.
	iteration int64
	// firstCopy is the first of the step's parallel calls, or the step itself.
	firstCopy stream.Index
	// after holds the steps that must complete first, toolResults the tool calls whose results the
	// step reads.
	after, toolResults []stream.Index
	// extends is the call whose prompt this prompt begins with. prompt is the rest, with the step's
	// own text last.
	extends stream.Index
	prompt  []promptPart
}

// promptPart is a part of a prompt: the output of a step, or its own text.
type promptPart struct {
	step     stream.Index
	isOutput bool
}

// newPlan lays out the sessions of w. It is an error of w if two steps get the same id.
func newPlan(w *workflow) *plan {
	b := &planner{workflow: w, plan: &plan{}, currentCalls: make([][]stream.Index, len(w.Steps)),
		stepOfID: map[string]int{}}
	order, afterLoop := w.topologicalOrder(), w.afterLoop()
	for _, i := range order {
		if !w.inLoop[i] && !afterLoop[i] {
			b.addStep(i, 0)
		}
	}
	b.stepsBeforeLoop = len(b.steps)
	if w.Loop != nil {
		for k := range w.Loop.MaxIterations {
			if b.addIteration(order, k+1); b.err != nil {
				return nil
			}
		}
		b.maxIterations = int(w.Loop.MaxIterations)
		b.stepsPerIteration = (len(b.steps) - b.stepsBeforeLoop) / b.maxIterations
	}
	for _, i := range order {
		if afterLoop[i] {
			b.addStep(i, 0)
		}
	}
	b.planPrompts()
	return b.plan
}

// planner builds a plan step by step.
type planner struct {
	*workflow
	*plan
	// currentCalls holds the calls of each step in the current iteration, lastExits the calls that
	// ended the previous one.
	currentCalls [][]stream.Index
	lastExits    []stream.Index
	stepOfID     map[string]int
}

// addIteration adds one iteration of the loop.
func (b *planner) addIteration(order []int, iteration int64) {
	for _, i := range order {
		if b.inLoop[i] {
			b.addStep(i, iteration)
		}
	}
	b.lastExits = nil
	for i := range b.workflow.Steps {
		if b.isExit(i) {
			b.lastExits = append(b.lastExits, b.currentCalls[i]...)
		}
	}
}

// addStep adds the calls of step i.
func (b *planner) addStep(i int, iteration int64) {
	step := &b.workflow.Steps[i]
	var after, toolResults []stream.Index
	for _, j := range b.dependsOn[i] {
		toolResults = append(toolResults, b.currentCalls[j]...)
		if iteration <= 1 || b.inLoop[j] { // steps outside the loop completed before the second iteration
			after = append(after, b.currentCalls[j]...)
		}
	}
	switch {
	case iteration == 1 && len(b.dependsOn[i]) == 0:
		for _, j := range b.beforeLoop() {
			after = append(after, b.currentCalls[j]...)
		}
	case iteration > 1 && b.isEntry(i):
		after = b.lastExits
		toolResults = union(toolResults, b.lastExits)
	case iteration == 0 && b.waitsForLoop(i):
		after = union(after, b.lastExits)
	}
	toolResults = slices.DeleteFunc(toolResults, func(at stream.Index) bool { return !b.isTool(at) })
	slices.Sort(after)
	slices.Sort(toolResults)
	b.currentCalls[i] = nil
	firstCopy := stream.Index(len(b.steps))
	for n := range step.parallelCalls() {
		id := step.ID
		if iteration > 0 {
			id = fmt.Sprintf("%s-%d", id, iteration)
		}
		if step.FanOut != nil {
			id = fmt.Sprintf("%s.%d", id, n)
		}
		if j, taken := b.stepOfID[id]; taken {
			b.step(max(i, j)).fail("id", "calls of %q and %q would both have the id %q in a session", b.ids[min(i, j)],
				b.ids[max(i, j)], id)
		}
		b.stepOfID[id] = i
		b.currentCalls[i] = append(b.currentCalls[i], stream.Index(len(b.steps)))
		b.steps = append(b.steps, plannedStep{spec: i, id: id, iteration: iteration, firstCopy: firstCopy, after: after,
			toolResults: toolResults, extends: stream.NoIndex})
	}
}

func (b *planner) isTool(at stream.Index) bool { return b.workflow.Steps[b.steps[at].spec].isTool() }

// union returns a with the elements of more that are not in a.
func union(a, more []stream.Index) []stream.Index {
	a = slices.Clone(a)
	for _, at := range more {
		if !slices.Contains(a, at) {
			a = append(a, at)
		}
	}
	return a
}

// sessionPlan is the plan of a session with a given number of iterations.
type sessionPlan struct {
	*plan
	// loopEnd is the index after its last iteration, skipped the number of planned steps that it
	// leaves out.
	loopEnd, skipped int
}

func (p *plan) withIterations(iterations int) sessionPlan {
	return sessionPlan{p, p.stepsBeforeLoop + iterations*p.stepsPerIteration,
		(p.maxIterations - iterations) * p.stepsPerIteration}
}

// len is the number of steps of the session.
func (r sessionPlan) len() int { return len(r.steps) - r.skipped }

// at returns the step at a place of the session. References of steps after the loop are to the
// plan's last iteration: offset is what sessionIndex has to subtract from them.
func (r sessionPlan) at(place int) (step *plannedStep, offset int) {
	if place < r.loopEnd {
		return &r.steps[place], 0
	}
	return &r.steps[place+r.skipped], r.skipped
}

// sessionIndex converts an index in the plan to an index in the session.
func (r sessionPlan) sessionIndex(place stream.Index, offset int) stream.Index {
	if int(place) < r.stepsBeforeLoop {
		return place
	}
	return place - stream.Index(offset)
}
