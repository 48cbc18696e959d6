package gen

import (
	"maps"
	"slices"

	"blis/pkg/dist"
)

// Agentic is the workflow of an agent: a DAG of calls of models and of tools,
// all of which are one session. Every session of the client is one run through
// it.
//
// What a call of a model is sent begins with the client's prefix, if it has one.
// Then comes what happened before, in the order of the session's steps, and at
// last what the step itself says. What happened before is, with context_growth
// accumulate, all that the steps said, generated and returned which the call
// waits for, directly or not; without it only what the tools returned which it
// waits for directly. So a call that accumulates goes on where an earlier one
// ended, and finds its prompt and its answer in a cache; another starts afresh.
//
// InputDistribution of a step is the length of what the step itself says, the
// prefix included where the prompt goes on from no other.
type Agentic struct {
	// Workflow is a name for people.
	Workflow string `yaml:"workflow" json:"workflow,omitempty"`
	// Steps are the calls, Loop says which of them repeat; absent, none.
	Steps []AgenticStep `yaml:"steps" json:"steps"`
	Loop  *AgenticLoop  `yaml:"loop" json:"loop,omitempty"`
	// Tools are those that steps call, by name.
	Tools map[string]AgenticTool `yaml:"tools" json:"tools,omitempty"`
}

// AgenticStep is one step of a workflow: a call of the model or of a tool.
type AgenticStep struct {
	// ID names the step. Its calls in a session are ID, in a loop ID-1, ID-2, …, and
	// side by side ID.0, ID.1, ….
	ID string `yaml:"id" json:"id"`
	// Type is llm_call or tool_call.
	Type string `yaml:"type" json:"type"`
	// Tool is the tool of a tool_call, one of the workflow's tools.
	Tool string `yaml:"tool" json:"tool,omitempty"`
	// DependsOn are the steps that must have completed. One step has none: with it
	// the session begins.
	DependsOn []string `yaml:"depends_on" json:"depends_on,omitempty"`
	// FanOut is how many calls are made in parallel, from 2; absent, one. All are
	// sent the same prompt and answer for themselves; who depends on the step waits
	// for all of them.
	FanOut *int64 `yaml:"fan_out" json:"fan_out,omitempty"`
	// ContextGrowth is accumulate or absent; only steps of the loop accumulate.
	ContextGrowth string `yaml:"context_growth" json:"context_growth,omitempty"`
	// InputDistribution is of what the step itself says, OutputDistribution of the
	// answer, in tokens. An llm_call has both, a tool_call none.
	InputDistribution  *dist.Spec `yaml:"input_distribution" json:"input_distribution,omitempty"`
	OutputDistribution *dist.Spec `yaml:"output_distribution" json:"output_distribution,omitempty"`
}

// AgenticLoop says which steps repeat. An iteration begins when the last steps of
// the one before have completed: those of the loop that no other of it depends
// on. Steps outside that depend on steps of the loop come after its last
// iteration.
type AgenticLoop struct {
	// Over are the steps that repeat. The first of them may depend on others of
	// them, in the iteration before.
	Over []string `yaml:"over" json:"over"`
	// MaxIterations is how often they happen at most; without Iterations, always.
	MaxIterations int64 `yaml:"max_iterations" json:"max_iterations"`
	// Iterations is the distribution of how often, drawn for each session and cut
	// to 1 and MaxIterations.
	Iterations *dist.Spec `yaml:"iterations" json:"iterations,omitempty"`
}

// AgenticTool is a tool outside of the cluster.
type AgenticTool struct {
	// Latency is how long a call takes, in µs.
	Latency dist.Spec `yaml:"latency" json:"latency"`
	// OutputTokens is the length of what it returns, which goes into the prompts of
	// the calls that depend on it; absent, it returns nothing.
	OutputTokens *dist.Spec `yaml:"output_tokens" json:"output_tokens,omitempty"`
}

// Types of step, and the one way in which a context grows.
const (
	llmCall    = "llm_call"
	toolCall   = "tool_call"
	accumulate = "accumulate"
)

func (s *AgenticStep) isTool() bool { return s.Type == toolCall }

// copies is how many calls the step makes at a time.
func (s *AgenticStep) copies() int64 {
	if s.FanOut == nil {
		return 1
	}
	return *s.FanOut
}

// idleTools are the tools that no step calls, in order.
func (a *Agentic) idleTools() (idle []string) {
	for _, name := range slices.Sorted(maps.Keys(a.Tools)) {
		if !slices.ContainsFunc(a.Steps, func(s AgenticStep) bool { return s.Tool == name }) {
			idle = append(idle, name)
		}
	}
	return idle
}
