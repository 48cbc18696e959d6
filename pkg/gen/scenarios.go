package gen

import (
	"embed"

	"blis/pkg/registry"
)

//go:embed scenarios/*.yaml
var scenarioFiles embed.FS

// Scenarios are the built-in specs with their files. The first one is the default.
var Scenarios = registry.Table[string]{
	{Name: "chat", Doc: "conversations with an assistant and a support desk, plus a scheduled job",
		Value: "scenarios/chat.yaml"},
	{Name: "rag", Doc: "batch summaries of retrieved passages and whole documents", Value: "scenarios/rag.yaml"},
	{Name: "retrieval", Doc: "long prompts that begin with a popular document, short outputs",
		Value: "scenarios/retrieval.yaml"},
	{Name: "code", Doc: "long code contexts, short outputs", Value: "scenarios/code.yaml"},
	{Name: "reasoning", Doc: "short questions, thousands of reasoning tokens", Value: "scenarios/reasoning.yaml"},
	{Name: "deep-research", Doc: "many turns with long contexts and a tool call between turns",
		Value: "scenarios/deep-research.yaml"},
	{Name: "synthetic-data", Doc: "short seeds after long instructions, long outputs",
		Value: "scenarios/synthetic-data.yaml"},
	{Name: "bursty-traffic", Doc: "six production clients, each with its own burstiness and lengths",
		Value: "scenarios/bursty-traffic.yaml"},
	{Name: "mixed-slo", Doc: "three SLO classes: voice (tight), office (standard), archive (sheddable)",
		Value: "scenarios/mixed-slo.yaml"},
	{Name: "load-step", Doc: "40, 120 and 60 % of capacity, 40 s each", Value: "scenarios/load-step.yaml"},
	{Name: "load-spike", Doc: "three times the load for 10 s, then a recovery", Value: "scenarios/load-spike.yaml"},
	{Name: "diurnal-cycle", Doc: "80 s days: interactive users by day, batch jobs by night",
		Value: "scenarios/diurnal-cycle.yaml"},
	{Name: "abusive-tenant", Doc: "one of three tenants sends 5 times its share with lengths 8 times as long",
		Value: "scenarios/abusive-tenant.yaml"},
	{Name: "unfair-tenants", Doc: "six tenants with the same SLO; one sends two thirds of the load",
		Value: "scenarios/unfair-tenants.yaml"},
	{Name: "prefix-heavy", Doc: "512 equally popular prefixes of 256 tokens", Value: "scenarios/prefix-heavy.yaml"},
	{Name: "documents", Doc: "questions about 240 documents of 8,000 tokens: more than one replica's cache, less " +
		"than four", Value: "scenarios/documents.yaml"},
	{Name: "react-agent", Doc: "ReAct agents that reason, search the web, observe the results, then answer",
		Value: "scenarios/react-agent.yaml"},
	{Name: "mcts", Doc: "tree search: three rounds of four candidates, their tests and an evaluation",
		Value: "scenarios/mcts.yaml"},
	{Name: "fork-join", Doc: "a plan, three parallel tool calls, and an answer from all results",
		Value: "scenarios/fork-join.yaml"},
	{Name: "agent-chain", Doc: "a chain of four agents with tool calls of 20 ms to seconds in between",
		Value: "scenarios/agent-chain.yaml"},
	{Name: "coding-agent", Doc: "coding agents whose contexts grow to tens of thousands of tokens",
		Value: "scenarios/coding-agent.yaml"},
	{Name: "sanity", Doc: "Poisson arrivals of one class at 80 % of what the default cluster can serve",
		Value: "scenarios/sanity.yaml"},
}

// load returns the text of the spec, and its name for errors.
func (s Scenario) load() (name string, text []byte, err error) {
	if s == "" {
		s = Scenario(Scenarios[0].Name)
	}
	file, err := Scenarios.Get("scenario", string(s))
	if err != nil {
		return "", nil, err
	}
	text, err = scenarioFiles.ReadFile(file)
	return "scenario " + string(s), text, err
}
