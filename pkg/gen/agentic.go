package gen

import (
	"maps"
	"slices"
	"strings"

	"blis/pkg/dist"
	"blis/pkg/registry"
)

// Agentic is the workflow of an agent: a DAG of model calls and tool calls. Each session of the
// client is one run through the workflow.
//
// The prompt of a model call begins with the client's prefix, if there is one. Then comes the
// history, in the order of the session's steps, and last the step's own text. With context_growth
// accumulate the history is the text, the output and the tool results of all ancestors of the call.
// Otherwise it is only the results of the tools that the call depends on directly. A call that
// accumulates therefore extends the prompt of an earlier call and hits the prefix cache.
type Agentic struct {
	Workflow string                 `yaml:"workflow" json:"workflow,omitempty"`
	Steps    []AgenticStep          `yaml:"steps" json:"steps"`
	Loop     *AgenticLoop           `yaml:"loop" json:"loop,omitempty"`
	Tools    map[string]AgenticTool `yaml:"tools" json:"tools,omitempty"`
}

// AgenticStep is one step of a workflow: a model call or a tool call.
type AgenticStep struct {
	ID                 string     `yaml:"id" json:"id"`
	Type               string     `yaml:"type" json:"type"`
	Tool               string     `yaml:"tool" json:"tool,omitempty"`
	DependsOn          []string   `yaml:"depends_on" json:"depends_on,omitempty"`
	FanOut             *int64     `yaml:"fan_out" json:"fan_out,omitempty"`
	ContextGrowth      string     `yaml:"context_growth" json:"context_growth,omitempty"`
	InputDistribution  *dist.Spec `yaml:"input_distribution" json:"input_distribution,omitempty"`
	OutputDistribution *dist.Spec `yaml:"output_distribution" json:"output_distribution,omitempty"`
}

// AgenticLoop says which steps repeat. An iteration starts when the exits of the previous one have
// completed: the loop steps that no other loop step depends on. Steps outside the loop that depend
// on loop steps follow its last iteration.
type AgenticLoop struct {
	Over          []string   `yaml:"over" json:"over"`
	MaxIterations int64      `yaml:"max_iterations" json:"max_iterations"`
	Iterations    *dist.Spec `yaml:"iterations" json:"iterations,omitempty"`
}

// AgenticTool is a tool outside the cluster.
type AgenticTool struct {
	Latency      dist.Spec  `yaml:"latency" json:"latency"`
	OutputTokens *dist.Spec `yaml:"output_tokens" json:"output_tokens,omitempty"`
}

// The step types, and the only value of context_growth.
const (
	llmCall    = "llm_call"
	toolCall   = "tool_call"
	accumulate = "accumulate"
)

func (s *AgenticStep) isTool() bool { return s.Type == toolCall }

// parallelCalls is the number of calls that the step makes at once.
func (s *AgenticStep) parallelCalls() int64 {
	if s.FanOut == nil {
		return 1
	}
	return *s.FanOut
}

// workflow is an Agentic under validation, with derived data. Steps are identified by their index.
type workflow struct {
	*Agentic
	field
	ids []string
	// dependsOn holds the dependencies of each step, without those on the previous iteration.
	dependsOn [][]int
	// inLoop says for each step whether it is in the loop.
	inLoop []bool
}

// newWorkflow validates a. It checks one rule after the other, each for all steps, up to the first
// error.
func newWorkflow(a *Agentic, at field) *workflow {
	w := &workflow{Agentic: a, field: at, inLoop: make([]bool, len(a.Steps)), dependsOn: make([][]int, len(a.Steps))}
	for _, check := range []func(){
		w.checkIDs, w.checkSteps, w.checkDependencies, w.checkLoop, w.checkContexts, w.checkCycles, w.checkLoopOrder,
		w.checkRoot, w.checkSize,
	} {
		if w.err == nil {
			check()
		}
	}
	return w
}

// step is the field of step i.
func (w *workflow) step(i int) field { return w.at("steps").element(i) }

// checkIDs checks that every step has a unique id.
func (w *workflow) checkIDs() {
	if len(w.Steps) == 0 {
		w.fail("steps", "must hold at least one step")
	}
	if len(w.Steps) > maxSteps {
		w.fail("steps", "must be at most %d, are %d", maxSteps, len(w.Steps))
		return
	}
	for i := range w.Steps {
		id := w.Steps[i].ID
		switch {
		case id == "":
			w.step(i).fail("id", "must be given")
		case strings.Contains(id, "/"):
			w.step(i).fail("id", "must not contain /, which separates session and step, is %q", id)
		case slices.Contains(w.ids, id):
			w.step(i).fail("id", "%q is taken by an earlier step", id)
		}
		w.ids = append(w.ids, id)
	}
}

// checkSteps checks that every step has the fields that its type needs and no others.
func (w *workflow) checkSteps() {
	for i := range w.Steps {
		s, at := &w.Steps[i], w.step(i)
		switch s.Type {
		case llmCall:
			s.checkCall(at)
		case toolCall:
			w.checkToolCall(s, at)
		default:
			at.fail("type", "%v", registry.Unknown("step type", s.Type, []string{llmCall, toolCall}))
		}
		if s.FanOut != nil && (*s.FanOut < 2 || *s.FanOut > maxSteps) {
			at.fail("fan_out", "must be between 2 and %d, is %d; leave it out for a single call", maxSteps, *s.FanOut)
		}
		if s.ContextGrowth != "" && s.ContextGrowth != accumulate {
			at.fail("context_growth", "%v", registry.Unknown("context growth", s.ContextGrowth, []string{accumulate}))
		}
	}
}

func (s *AgenticStep) checkCall(at field) {
	switch {
	case s.Tool != "":
		at.fail("tool", "is only for a %s; this step is an %s", toolCall, llmCall)
	case s.InputDistribution == nil:
		at.fail("input_distribution", "must be given for an %s", llmCall)
	case s.OutputDistribution == nil:
		at.fail("output_distribution", "must be given for an %s", llmCall)
	}
}

func (w *workflow) checkToolCall(s *AgenticStep, at field) {
	const prefix = "must not be given for a " + toolCall + ": "
	tools := slices.Sorted(maps.Keys(w.Tools))
	switch {
	case s.InputDistribution != nil:
		at.fail("input_distribution", prefix+"a tool has no prompt")
	case s.OutputDistribution != nil:
		at.fail("output_distribution", prefix+"the length of its result is output_tokens under tools")
	case s.ContextGrowth != "":
		at.fail("context_growth", prefix+"a tool has no prompt")
	case s.Tool == "":
		at.fail("tool", "must be given for a %s", toolCall)
	case len(tools) == 0:
		at.fail("tool", "%q is not defined: tools is empty", s.Tool)
	case !slices.Contains(tools, s.Tool):
		at.fail("tool", "%v", registry.Unknown("tool", s.Tool, tools))
	}
}

// indices converts a list of step ids to indices.
func (w *workflow) indices(list []string, at field) (indices []int) {
	for i, id := range list {
		index := slices.Index(w.ids, id)
		switch {
		case index < 0:
			at.element(i).fail("", "%v", registry.Unknown("step", id, w.ids))
		case slices.Contains(indices, index):
			at.element(i).fail("", "%q is listed twice", id)
		}
		indices = append(indices, index)
	}
	return indices
}

// checkDependencies checks that steps depend on existing steps.
func (w *workflow) checkDependencies() {
	for i := range w.Steps {
		w.dependsOn[i] = w.indices(w.Steps[i].DependsOn, w.step(i).at("depends_on"))
	}
}

// checkLoop checks that the loop is connected and bounded. A dependency of its first step on
// another loop step means the previous iteration and is removed from dependsOn.
func (w *workflow) checkLoop() {
	if w.Loop == nil {
		return
	}
	loop := w.at("loop")
	over := w.indices(w.Loop.Over, loop.at("over"))
	if len(over) == 0 {
		loop.fail("over", "must name at least one step")
	}
	between(loop, "max_iterations", w.Loop.MaxIterations, 1, maxSteps)
	if w.err != nil {
		return
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
			loop.at("over").element(n).fail("",
				"the steps of a loop must be connected by depends_on: %q is not connected to %q", w.ids[i],
				w.ids[over[0]])
		}
	}
	first := over[0]
	w.dependsOn[first] = slices.DeleteFunc(w.dependsOn[first], func(i int) bool { return w.inLoop[i] })
}

// checkContexts checks that only loop steps accumulate.
func (w *workflow) checkContexts() {
	for i := range w.Steps {
		if w.Steps[i].ContextGrowth == accumulate && !w.inLoop[i] {
			w.step(i).fail("context_growth", "accumulate is only for loop steps, and %q is not in loop.over", w.ids[i])
		}
	}
}
