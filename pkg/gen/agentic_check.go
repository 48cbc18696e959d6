package gen

import (
	"maps"
	"slices"
	"strings"

	"blis/pkg/registry"
)

// workflow is an Agentic that is being checked, and what follows from it. Steps
// are known by their places in it.
type workflow struct {
	*Agentic
	// path is where it stands.
	path  string
	fault fault
	ids   []string
	// waits are the steps that each step depends on, less those that it finds in
	// the iteration before.
	waits [][]int
	// looped says of each step whether it is in the loop.
	looped []bool
}

// newWorkflow checks a, which stands at path: rule by rule, each for all steps.
func newWorkflow(a *Agentic, path string, fault fault) (*workflow, error) {
	w := &workflow{Agentic: a, path: path, fault: fault, looped: make([]bool, len(a.Steps))}
	for _, check := range []func() error{
		w.checkIDs, w.checkSteps, w.checkDependencies, w.checkLoop, w.checkContexts, w.checkCircles, w.checkDetours, w.checkRoot, w.checkSize,
	} {
		if err := check(); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// at is the path of a field of step i.
func (w *workflow) at(i int, field string) string {
	return elementPath(w.path+".steps", i) + "." + field
}

// checkIDs: every step has a name of its own.
func (w *workflow) checkIDs() error {
	if len(w.Steps) == 0 {
		return w.fault(w.path+".steps", "must hold at least one step")
	}
	if len(w.Steps) > maxSteps {
		return w.fault(w.path+".steps", "are %d, more than %d", len(w.Steps), maxSteps)
	}
	for i := range w.Steps {
		id := w.Steps[i].ID
		switch {
		case id == "":
			return w.fault(w.at(i, "id"), "must be given")
		case strings.Contains(id, "/"):
			return w.fault(w.at(i, "id"), "must have no /, which parts sessions from steps, is %q", id)
		case slices.Contains(w.ids, id):
			return w.fault(w.at(i, "id"), "%q is taken by an earlier step", id)
		}
		w.ids = append(w.ids, id)
	}
	return nil
}

// checkSteps: every step has what its type needs and nothing else.
func (w *workflow) checkSteps() error {
	for i := range w.Steps {
		s := &w.Steps[i]
		var err error
		switch s.Type {
		case llmCall:
			err = w.checkCall(i)
		case toolCall:
			err = w.checkToolCall(i)
		default:
			err = w.fault(w.at(i, "type"), "%v", registry.Unknown("type of step", s.Type, []string{llmCall, toolCall}))
		}
		if err != nil {
			return err
		}
		if s.FanOut != nil && (*s.FanOut < 2 || *s.FanOut > maxSteps) {
			return w.fault(w.at(i, "fan_out"), "must be between 2 and %d, is %d; without it the step is one call", maxSteps, *s.FanOut)
		}
		if s.ContextGrowth != "" && s.ContextGrowth != accumulate {
			return w.fault(w.at(i, "context_growth"), "%v", registry.Unknown("growth of context", s.ContextGrowth, []string{accumulate}))
		}
	}
	return nil
}

func (w *workflow) checkCall(i int) error {
	s := &w.Steps[i]
	switch {
	case s.Tool != "":
		return w.fault(w.at(i, "tool"), "is for a %s, and this is an %s", toolCall, llmCall)
	case s.InputDistribution == nil:
		return w.fault(w.at(i, "input_distribution"), "must be given for an %s", llmCall)
	case s.OutputDistribution == nil:
		return w.fault(w.at(i, "output_distribution"), "must be given for an %s", llmCall)
	}
	return nil
}

func (w *workflow) checkToolCall(i int) error {
	s := &w.Steps[i]
	const instead = "must not be given for a " + toolCall + ": "
	switch {
	case s.InputDistribution != nil:
		return w.fault(w.at(i, "input_distribution"), instead+"a tool has no prompt")
	case s.OutputDistribution != nil:
		return w.fault(w.at(i, "output_distribution"), instead+"what it returns is under tools, as output_tokens")
	case s.ContextGrowth != "":
		return w.fault(w.at(i, "context_growth"), instead+"a tool has no prompt")
	case s.Tool == "":
		return w.fault(w.at(i, "tool"), "must be given for a %s", toolCall)
	}
	if tools := slices.Sorted(maps.Keys(w.Tools)); !slices.Contains(tools, s.Tool) {
		if len(tools) == 0 {
			return w.fault(w.at(i, "tool"), "%q is not under tools, which are none", s.Tool)
		}
		return w.fault(w.at(i, "tool"), "%v", registry.Unknown("tool", s.Tool, tools))
	}
	return nil
}

// places turns a list of steps, which stands at path, into their places.
func (w *workflow) places(list []string, path string) ([]int, error) {
	var places []int
	for i, id := range list {
		at := slices.Index(w.ids, id)
		switch {
		case at < 0:
			return nil, w.fault(elementPath(path, i), "%v", registry.Unknown("step", id, w.ids))
		case slices.Contains(places, at):
			return nil, w.fault(elementPath(path, i), "%q stands there twice", id)
		}
		places = append(places, at)
	}
	return places, nil
}

// checkDependencies: steps depend on steps.
func (w *workflow) checkDependencies() error {
	w.waits = make([][]int, len(w.Steps))
	for i := range w.Steps {
		var err error
		if w.waits[i], err = w.places(w.Steps[i].DependsOn, w.at(i, "depends_on")); err != nil {
			return err
		}
	}
	return nil
}

// checkLoop: the loop has steps that hang together, and ends. What its first step
// depends on inside of it is from the iteration before.
func (w *workflow) checkLoop() error {
	if w.Loop == nil {
		return nil
	}
	path := w.path + ".loop"
	over, err := w.places(w.Loop.Over, path+".over")
	switch {
	case err != nil:
		return err
	case len(over) == 0:
		return w.fault(path+".over", "must name at least one step")
	case w.Loop.MaxIterations < 1 || w.Loop.MaxIterations > maxSteps:
		return w.fault(path+".max_iterations", "must be between 1 and %d, is %d", maxSteps, w.Loop.MaxIterations)
	}
	for _, i := range over {
		w.looped[i] = true
	}
	connected := map[int]bool{over[0]: true}
	for grown := true; grown; {
		grown = false
		for _, i := range over {
			for _, j := range w.waits[i] {
				if w.looped[j] && connected[i] != connected[j] {
					connected[i], connected[j], grown = true, true, true
				}
			}
		}
	}
	for n, i := range over {
		if !connected[i] {
			return w.fault(elementPath(path+".over", n), "the steps of a loop must hang together: no depends_on joins %q and %q", w.ids[i], w.ids[over[0]])
		}
	}
	first := over[0]
	w.waits[first] = slices.DeleteFunc(w.waits[first], func(i int) bool { return w.looped[i] })
	return nil
}

// checkContexts: only what repeats accumulates.
func (w *workflow) checkContexts() error {
	for i := range w.Steps {
		if w.Steps[i].ContextGrowth == accumulate && !w.looped[i] {
			return w.fault(w.at(i, "context_growth"), "accumulate is only for steps of a loop, and %q is not in loop.over", w.ids[i])
		}
	}
	return nil
}
