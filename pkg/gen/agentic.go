package gen

import (
	"maps"
	"slices"

	"blis/pkg/dist"
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

// unusedTools returns the names of the tools that no step calls, sorted.
func (a *Agentic) unusedTools() (unused []string) {
	for _, name := range slices.Sorted(maps.Keys(a.Tools)) {
		if !slices.ContainsFunc(a.Steps, func(s AgenticStep) bool { return s.Tool == name }) {
			unused = append(unused, name)
		}
	}
	return unused
}
