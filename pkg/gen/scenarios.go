package gen

import (
	"cmp"
	"embed"

	"blis/pkg/registry"
)

//go:embed scenarios/*.yaml
var scenarioFiles embed.FS

// Scenarios are the built-in specs. The first one is the default.
var Scenarios = registry.Table[struct{}]{
	{Name: "chat", Doc: "conversations with an assistant and a support desk, plus a scheduled job"},
	{Name: "rag", Doc: "batch summaries of retrieved passages and whole documents"},
	{Name: "retrieval", Doc: "long prompts that begin with a popular document, short outputs"},
	{Name: "code", Doc: "long code contexts, short outputs"},
	{Name: "reasoning", Doc: "short questions, thousands of reasoning tokens"},
	{Name: "deep-research", Doc: "many turns with long contexts and a tool call between turns"},
	{Name: "synthetic-data", Doc: "short seeds after long instructions, long outputs"},
	{Name: "production-clients", Doc: "six clients of a real service, each with its own burstiness and lengths"},
	{Name: "mixed-slo", Doc: "three SLO classes: voice (tight), office (standard), archive (sheddable)"},
	{Name: "load-step", Doc: "40, 120 and 60 % of capacity, 40 s each"},
	{Name: "load-spike", Doc: "three times the load for 10 s, then a recovery"},
	{Name: "bursty-traffic", Doc: "a Poisson baseline with spikes of 10 times its rate every 60 s"},
	{Name: "diurnal-cycle", Doc: "24 hours whose rate is a sine wave with a peak of 10 times its trough"},
	{Name: "day-and-night", Doc: "80 s days: interactive users by day, batch jobs by night"},
	{Name: "abusive-tenant", Doc: "one of three tenants sends 5 times its share with lengths 8 times as long"},
	{Name: "unfair-tenants", Doc: "90 % bulk requests of low priority, 10 % real-time requests of high priority"},
	{Name: "unequal-tenants", Doc: "six tenants with the same SLO; one sends two thirds of the load"},
	{Name: "prefix-heavy", Doc: "512 equally popular prefixes of 256 tokens"},
	{Name: "documents", Doc: "questions about 240 documents of 8,000 tokens: more than one replica's cache, less " +
		"than four"},
	{Name: "react-agent", Doc: "ReAct agents that reason, search the web, observe the results, then answer"},
	{Name: "mcts", Doc: "tree search: three rounds of four candidates, their tests and an evaluation"},
	{Name: "fork-join", Doc: "a plan, three parallel tool calls, and an answer from all results"},
	{Name: "agent-chain", Doc: "a chain of four agents with tool calls of 20 ms to seconds in between"},
	{Name: "coding-agent", Doc: "coding agents whose contexts grow to tens of thousands of tokens"},
	{Name: "sanity", Doc: "Poisson arrivals of one class at 80 % of what the default cluster can serve"},
}

// load returns the text of the spec, and its name for errors.
func (s Scenario) load() (name string, text []byte, err error) {
	s = cmp.Or(s, Scenario(Scenarios[0].Name))
	if _, err := Scenarios.Get("scenario", string(s)); err != nil {
		return "", nil, err
	}
	text, err = scenarioFiles.ReadFile("scenarios/" + string(s) + ".yaml")
	return "scenario " + string(s), text, err
}
