package gen

import (
	"slices"
	"strings"
)

// maxSteps bounds the steps of a session and maxDependencies their dependencies: a session is one
// record.
const (
	maxSteps        = 10_000
	maxDependencies = 100_000
)

// checkCycles checks that no step waits for itself.
func (w *workflow) checkCycles() {
	// Steps that are done lead to no cycle; chain holds the dependencies being followed.
	done := make([]bool, len(w.Steps))
	var chain []int
	var visit func(i int)
	visit = func(i int) {
		if start := slices.Index(chain, i); start >= 0 {
			w.failCycle(chain[start:])
		}
		if done[i] || w.err != nil {
			return
		}
		chain = append(chain, i)
		for _, j := range w.dependsOn[i] {
			visit(j)
		}
		chain = chain[:len(chain)-1]
		done[i] = true
	}
	for i := range w.Steps {
		visit(i)
	}
}

// failCycle reports steps that wait for each other.
func (w *workflow) failCycle(steps []int) {
	var names []string
	hint := ""
	for _, i := range steps {
		names = append(names, w.ids[i])
		if w.inLoop[i] {
			hint = "; in a loop only the first step of loop.over may depend on the previous iteration"
		}
	}
	names = append(names, names[0])
	w.step(steps[0]).fail("depends_on", "steps depend on each other in a cycle (%s)%s",
		strings.Join(names, " -> "), hint)
}

// afterLoop says for each step whether it is outside the loop and comes after it.
func (w *workflow) afterLoop() []bool {
	after := make([]bool, len(w.Steps))
	for _, i := range w.topologicalOrder() {
		after[i] = !w.inLoop[i] && slices.ContainsFunc(w.dependsOn[i],
			func(j int) bool { return w.inLoop[j] || after[j] })
	}
	return after
}

// checkLoopOrder checks that no loop step waits for a step that comes after the loop.
func (w *workflow) checkLoopOrder() {
	after := w.afterLoop()
	for i := range w.Steps {
		for _, j := range w.dependsOn[i] {
			if w.inLoop[i] && after[j] {
				w.step(i).fail("depends_on", "%q runs after the loop because it depends on a loop step; loop step %q "+
					"cannot depend on it (add it to loop.over)", w.ids[j], w.ids[i])
			}
		}
	}
}

// topologicalOrder returns the steps ordered such that each comes after its dependencies. It keeps
// the order of the spec where that is possible.
func (w *workflow) topologicalOrder() []int {
	var order []int
	placed := make([]bool, len(w.Steps))
	for len(order) < len(w.Steps) {
		for i := range w.Steps {
			if !placed[i] && !slices.ContainsFunc(w.dependsOn[i], func(j int) bool { return !placed[j] }) {
				order, placed[i] = append(order, i), true
				break
			}
		}
	}
	return order
}

// dependsOnLoop reports whether step i depends directly on a loop step.
func (w *workflow) dependsOnLoop(i int) bool {
	return slices.ContainsFunc(w.dependsOn[i], func(j int) bool { return w.inLoop[j] })
}

// isEntry reports whether an iteration begins with step i.
func (w *workflow) isEntry(i int) bool { return w.inLoop[i] && !w.dependsOnLoop(i) }

// isExit reports whether an iteration ends with step i: no other loop step depends on it.
func (w *workflow) isExit(i int) bool {
	for j := range w.Steps {
		if !w.inLoop[i] || w.inLoop[j] && slices.Contains(w.dependsOn[j], i) {
			return false
		}
	}
	return true
}

// beforeLoop returns the steps that the entries of the loop depend on. An entry without
// dependencies waits for all of them.
func (w *workflow) beforeLoop() (before []int) {
	for i := range w.Steps {
		if w.isEntry(i) {
			before = append(before, w.dependsOn[i]...)
		}
	}
	slices.Sort(before)
	return slices.Compact(before)
}

// checkRoot checks that a session begins with a single step, or with the entries of the loop.
func (w *workflow) checkRoot() {
	first := -1
	loopFirst := w.Loop != nil && len(w.beforeLoop()) == 0
	for i := range w.Steps {
		if len(w.dependsOn[i]) > 0 || w.inLoop[i] && !loopFirst {
			continue
		}
		if first >= 0 && !(w.inLoop[i] && w.inLoop[first]) {
			w.step(i).fail("depends_on", "must be given for %q or %q: a session begins with a single step", w.ids[i],
				w.ids[first])
		}
		first = i
	}
}

// waitsForLoop reports whether step i starts when an iteration has ended: the first of the next
// one, or a step after the loop.
func (w *workflow) waitsForLoop(i int) bool { return w.inLoop[i] != w.dependsOnLoop(i) }

// checkSize bounds the steps and dependencies of a session with all its iterations.
func (w *workflow) checkSize() {
	calls := make([]int64, len(w.Steps)) // of each step in a session
	steps, exits := int64(0), int64(0)
	for i := range w.Steps {
		calls[i] = w.Steps[i].parallelCalls()
		if w.isExit(i) {
			exits += calls[i]
		}
		if w.inLoop[i] {
			calls[i] *= w.Loop.MaxIterations
		}
		steps += calls[i]
	}
	if steps > maxSteps {
		w.fail("steps", "must be at most %d per session with all iterations and fan-outs, are %d", maxSteps, steps)
	}
	dependencies := int64(0)
	for i := range w.Steps {
		perCall := int64(0)
		if w.waitsForLoop(i) {
			perCall = exits
		}
		for _, j := range w.dependsOn[i] {
			perCall += w.Steps[j].parallelCalls()
		}
		dependencies += calls[i] * perCall
	}
	if dependencies > maxDependencies {
		w.fail("steps", "have %d dependencies per session, more than %d; join a fan-out in a single step",
			dependencies, maxDependencies)
	}
}
