package gen

import (
	"slices"
	"strings"
)

// maxSteps bounds the steps of one session, maxWaits how many others they wait
// for altogether: a session is one record.
const (
	maxSteps = 10_000
	maxWaits = 100_000
)

// checkCircles: no step waits for itself.
func (w *workflow) checkCircles() error {
	// done steps lead into no circle; way is the one being followed.
	done := make([]bool, len(w.Steps))
	var way []int
	var follow func(i int) error
	follow = func(i int) error {
		if from := slices.Index(way, i); from >= 0 {
			return w.circle(way[from:])
		}
		if done[i] {
			return nil
		}
		way = append(way, i)
		for _, j := range w.waits[i] {
			if err := follow(j); err != nil {
				return err
			}
		}
		way = way[:len(way)-1]
		done[i] = true
		return nil
	}
	for i := range w.Steps {
		if err := follow(i); err != nil {
			return err
		}
	}
	return nil
}

// circle is the fault that steps wait for each other, each for the next.
func (w *workflow) circle(steps []int) error {
	var names []string
	hint := ""
	for _, i := range steps {
		names = append(names, w.ids[i])
		if w.looped[i] {
			hint = "; of the steps of a loop, only the first of loop.over may depend on the others"
		}
	}
	names = append(names, names[0])
	return w.fault(w.at(steps[0], "depends_on"), "steps wait for each other in a circle (%s)%s", strings.Join(names, " for "), hint)
}

// behindLoop says of each step whether it is outside the loop and comes after it.
func (w *workflow) behindLoop() []bool {
	behind := make([]bool, len(w.Steps))
	for _, i := range w.sorted() {
		behind[i] = !w.looped[i] && slices.ContainsFunc(w.waits[i], func(j int) bool { return w.looped[j] || behind[j] })
	}
	return behind
}

// checkDetours: no step of the loop waits for one that comes after the loop.
func (w *workflow) checkDetours() error {
	behind := w.behindLoop()
	for i := range w.Steps {
		for _, j := range w.waits[i] {
			if w.looped[i] && behind[j] {
				return w.fault(w.at(i, "depends_on"), "%q comes after the loop, because it depends on a step of it; so %q in the loop cannot wait for it (put it into loop.over)", w.ids[j], w.ids[i])
			}
		}
	}
	return nil
}

// sorted returns the steps in an order in which each comes after those that it
// waits for: as they stand where that is such an order.
func (w *workflow) sorted() []int {
	var order []int
	placed := make([]bool, len(w.Steps))
	for len(order) < len(w.Steps) {
		for i := range w.Steps {
			if !placed[i] && !slices.ContainsFunc(w.waits[i], func(j int) bool { return !placed[j] }) {
				order, placed[i] = append(order, i), true
				break
			}
		}
	}
	return order
}

// isEntry reports whether an iteration begins with step i.
func (w *workflow) isEntry(i int) bool {
	return w.looped[i] && !slices.ContainsFunc(w.waits[i], func(j int) bool { return w.looped[j] })
}

// isExit reports whether an iteration ends with step i: no other of the loop waits
// for it.
func (w *workflow) isExit(i int) bool {
	if !w.looped[i] {
		return false
	}
	for j := range w.Steps {
		if w.looped[j] && slices.Contains(w.waits[j], i) {
			return false
		}
	}
	return true
}

// beforeLoop are the steps that the first steps of the loop wait for. One of these
// that waits for none waits for all of them.
func (w *workflow) beforeLoop() (before []int) {
	for i := range w.Steps {
		if !w.isEntry(i) {
			continue
		}
		for _, j := range w.waits[i] {
			if !slices.Contains(before, j) {
				before = append(before, j)
			}
		}
	}
	slices.Sort(before)
	return before
}

// checkRoot: a session begins with one step, or with the first ones of the loop.
func (w *workflow) checkRoot() error {
	first := -1
	loopFirst := w.Loop != nil && len(w.beforeLoop()) == 0
	for i := range w.Steps {
		if len(w.waits[i]) > 0 || w.looped[i] && !loopFirst {
			continue
		}
		if first >= 0 && !(w.looped[i] && w.looped[first]) {
			return w.fault(w.at(i, "depends_on"), "must be given for %q or for %q: a session begins with one step", w.ids[i], w.ids[first])
		}
		first = i
	}
	return nil
}

// waitsForLoop reports whether step i begins when an iteration has ended: the next
// one, or what comes after the last.
func (w *workflow) waitsForLoop(i int) bool {
	return w.isEntry(i) || !w.looped[i] && slices.ContainsFunc(w.waits[i], func(j int) bool { return w.looped[j] })
}

// checkSize: a session with all its iterations is no monster.
func (w *workflow) checkSize() error {
	times := make([]int64, len(w.Steps)) // calls of each step in a session
	steps, exits := int64(0), int64(0)
	for i := range w.Steps {
		times[i] = w.Steps[i].copies()
		if w.isExit(i) {
			exits += times[i]
		}
		if w.looped[i] {
			times[i] *= w.Loop.MaxIterations
		}
		steps += times[i]
	}
	if steps > maxSteps {
		return w.fault(w.path+".steps", "are %d with all iterations and fan-outs, more than %d in one session", steps, maxSteps)
	}
	waits := int64(0)
	for i := range w.Steps {
		one := int64(0)
		if w.waitsForLoop(i) {
			one = exits
		}
		for _, j := range w.waits[i] {
			one += w.Steps[j].copies()
		}
		waits += times[i] * one
	}
	if waits > maxWaits {
		return w.fault(w.path+".steps", "wait for %d others altogether, more than %d in one session; let a single step join those that fan out", waits, maxWaits)
	}
	return nil
}
