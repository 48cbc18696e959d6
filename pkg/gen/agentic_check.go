package gen

import (
	"maps"
	"slices"
	"strings"

	"blis/pkg/registry"
)

// workflow is an Agentic under validation, with derived data. Steps are identified by their index.
type workflow struct {
	*Agentic
	// path is the position of the workflow in the spec.
	path   string
	errorf errorFunc
	ids    []string
	// dependsOn holds the dependencies of each step, without those on the previous iteration.
	dependsOn [][]int
	// inLoop says for each step whether it is in the loop.
	inLoop []bool
}

// newWorkflow validates a, which is at path in the spec. It checks one rule after the other, each
// for all steps.
func newWorkflow(a *Agentic, path string, errorf errorFunc) (*workflow, error) {
	w := &workflow{Agentic: a, path: path, errorf: errorf, inLoop: make([]bool, len(a.Steps))}
	for _, check := range []func() error{
		w.checkIDs, w.checkSteps, w.checkDependencies, w.checkLoop, w.checkContexts, w.checkCycles, w.checkLoopOrder,
		w.checkRoot, w.checkSize,
	} {
		if err := check(); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// fieldPath is the path of a field of step i.
func (w *workflow) fieldPath(i int, field string) string {
	return elementPath(w.path+".steps", i) + "." + field
}

// checkIDs checks that every step has a unique id.
func (w *workflow) checkIDs() error {
	if len(w.Steps) == 0 {
		return w.errorf(w.path+".steps", "must hold at least one step")
	}
	if len(w.Steps) > maxSteps {
		return w.errorf(w.path+".steps", "must be at most %d, are %d", maxSteps, len(w.Steps))
	}
	for i := range w.Steps {
		id := w.Steps[i].ID
		switch {
		case id == "":
			return w.errorf(w.fieldPath(i, "id"), "must be given")
		case strings.Contains(id, "/"):
			return w.errorf(w.fieldPath(i, "id"), "must not contain /, which separates session and step, is %q", id)
		case slices.Contains(w.ids, id):
			return w.errorf(w.fieldPath(i, "id"), "%q is taken by an earlier step", id)
		}
		w.ids = append(w.ids, id)
	}
	return nil
}

// checkSteps checks that every step has the fields that its type needs and no others.
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
			err = w.errorf(w.fieldPath(i, "type"), "%v", registry.Unknown("step type", s.Type,
				[]string{llmCall, toolCall}))
		}
		if err != nil {
			return err
		}
		if s.FanOut != nil && (*s.FanOut < 2 || *s.FanOut > maxSteps) {
			return w.errorf(w.fieldPath(i, "fan_out"),
				"must be between 2 and %d, is %d; leave it out for a single call", maxSteps, *s.FanOut)
		}
		if s.ContextGrowth != "" && s.ContextGrowth != accumulate {
			return w.errorf(w.fieldPath(i, "context_growth"), "%v", registry.Unknown("context growth", s.ContextGrowth,
				[]string{accumulate}))
		}
	}
	return nil
}

func (w *workflow) checkCall(i int) error {
	s := &w.Steps[i]
	switch {
	case s.Tool != "":
		return w.errorf(w.fieldPath(i, "tool"), "is only for a %s; this step is an %s", toolCall, llmCall)
	case s.InputDistribution == nil:
		return w.errorf(w.fieldPath(i, "input_distribution"), "must be given for an %s", llmCall)
	case s.OutputDistribution == nil:
		return w.errorf(w.fieldPath(i, "output_distribution"), "must be given for an %s", llmCall)
	}
	return nil
}

func (w *workflow) checkToolCall(i int) error {
	s := &w.Steps[i]
	const prefix = "must not be given for a " + toolCall + ": "
	switch {
	case s.InputDistribution != nil:
		return w.errorf(w.fieldPath(i, "input_distribution"), prefix+"a tool has no prompt")
	case s.OutputDistribution != nil:
		return w.errorf(w.fieldPath(i, "output_distribution"),
			prefix+"the length of its result is output_tokens under tools")
	case s.ContextGrowth != "":
		return w.errorf(w.fieldPath(i, "context_growth"), prefix+"a tool has no prompt")
	case s.Tool == "":
		return w.errorf(w.fieldPath(i, "tool"), "must be given for a %s", toolCall)
	}
	if tools := slices.Sorted(maps.Keys(w.Tools)); !slices.Contains(tools, s.Tool) {
		if len(tools) == 0 {
			return w.errorf(w.fieldPath(i, "tool"), "%q is not defined: tools is empty", s.Tool)
		}
		return w.errorf(w.fieldPath(i, "tool"), "%v", registry.Unknown("tool", s.Tool, tools))
	}
	return nil
}

// indices converts a list of step ids, which is at path, to indices.
func (w *workflow) indices(list []string, path string) ([]int, error) {
	var indices []int
	for i, id := range list {
		index := slices.Index(w.ids, id)
		switch {
		case index < 0:
			return nil, w.errorf(elementPath(path, i), "%v", registry.Unknown("step", id, w.ids))
		case slices.Contains(indices, index):
			return nil, w.errorf(elementPath(path, i), "%q is listed twice", id)
		}
		indices = append(indices, index)
	}
	return indices, nil
}

// checkDependencies checks that steps depend on existing steps.
func (w *workflow) checkDependencies() error {
	w.dependsOn = make([][]int, len(w.Steps))
	for i := range w.Steps {
		var err error
		if w.dependsOn[i], err = w.indices(w.Steps[i].DependsOn, w.fieldPath(i, "depends_on")); err != nil {
			return err
		}
	}
	return nil
}

// checkLoop checks that the loop is connected and bounded. A dependency of its first step on
// another loop step means the previous iteration and is removed from dependsOn.
func (w *workflow) checkLoop() error {
	if w.Loop == nil {
		return nil
	}
	path := w.path + ".loop"
	over, err := w.indices(w.Loop.Over, path+".over")
	switch {
	case err != nil:
		return err
	case len(over) == 0:
		return w.errorf(path+".over", "must name at least one step")
	case w.Loop.MaxIterations < 1 || w.Loop.MaxIterations > maxSteps:
		return w.errorf(path+".max_iterations", "must be between 1 and %d, is %d", maxSteps, w.Loop.MaxIterations)
	}
	for _, i := range over {
		w.inLoop[i] = true
	}
	connected := map[int]bool{over[0]: true}
	for grown := true; grown; {
		grown = false
		for _, i := range over {
			for _, j := range w.dependsOn[i] {
				if w.inLoop[j] && connected[i] != connected[j] {
					connected[i], connected[j], grown = true, true, true
				}
			}
		}
	}
	for n, i := range over {
		if !connected[i] {
			return w.errorf(elementPath(path+".over", n),
				"the steps of a loop must be connected by depends_on: %q is not connected to %q", w.ids[i],
				w.ids[over[0]])
		}
	}
	first := over[0]
	w.dependsOn[first] = slices.DeleteFunc(w.dependsOn[first], func(i int) bool { return w.inLoop[i] })
	return nil
}

// checkContexts checks that only loop steps accumulate.
func (w *workflow) checkContexts() error {
	for i := range w.Steps {
		if w.Steps[i].ContextGrowth == accumulate && !w.inLoop[i] {
			return w.errorf(w.fieldPath(i, "context_growth"),
				"accumulate is only for loop steps, and %q is not in loop.over", w.ids[i])
		}
	}
	return nil
}
