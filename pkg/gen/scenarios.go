package gen

import (
	"embed"

	"blis/pkg/registry"
)

//go:embed scenarios/*.yaml
var scenarioFiles embed.FS

// Scenarios are the built-in specs, by the file that holds each. The first one
// is used where a call names no source.
var Scenarios = registry.Table[string]{
	{Name: "chat", Doc: "conversations with an assistant and with a support desk, and a job beside them", Value: "scenarios/chat.yaml"},
	{Name: "rag", Doc: "summaries of retrieved passages and whole documents, in batches", Value: "scenarios/rag.yaml"},
	{Name: "retrieval", Doc: "long prompts that begin with a popular document, short answers", Value: "scenarios/retrieval.yaml"},
	{Name: "code", Doc: "long contexts of code, short answers", Value: "scenarios/code.yaml"},
	{Name: "reasoning", Doc: "short questions, thousands of tokens of thought", Value: "scenarios/reasoning.yaml"},
	{Name: "deep-research", Doc: "many turns of searching and reading, long contexts, a tool between turns", Value: "scenarios/deep-research.yaml"},
	{Name: "synthetic-data", Doc: "short seeds behind long instructions, long answers", Value: "scenarios/synthetic-data.yaml"},
	{Name: "bursty-traffic", Doc: "six clients of production, each with a burstiness and lengths of its own", Value: "scenarios/bursty-traffic.yaml"},
	{Name: "mixed-slo", Doc: "three promises: voice, office work, and an archive that can wait", Value: "scenarios/mixed-slo.yaml"},
	{Name: "load-step", Doc: "load of 40, 120 and 60 %, each for 40 s", Value: "scenarios/load-step.yaml"},
	{Name: "load-spike", Doc: "three times the load for ten seconds, and a recovery", Value: "scenarios/load-spike.yaml"},
	{Name: "diurnal-cycle", Doc: "days of 80 s: people by day, jobs by night", Value: "scenarios/diurnal-cycle.yaml"},
	{Name: "abusive-tenant", Doc: "one tenant of three sends five times its part, all of it eight times as long", Value: "scenarios/abusive-tenant.yaml"},
	{Name: "unfair-tenants", Doc: "six tenants with one promise, the first of which sends two thirds", Value: "scenarios/unfair-tenants.yaml"},
	{Name: "prefix-heavy", Doc: "512 equally popular prefixes of 256 tokens", Value: "scenarios/prefix-heavy.yaml"},
	{Name: "documents", Doc: "questions about 240 documents of 8,000 tokens: more than one cache holds, less than four", Value: "scenarios/documents.yaml"},
	{Name: "react-agent", Doc: "agents that reason, search the web and look at what came back, then answer", Value: "scenarios/react-agent.yaml"},
	{Name: "mcts", Doc: "a search in a tree: three rounds of four candidates, their tests and a judge", Value: "scenarios/mcts.yaml"},
	{Name: "fork-join", Doc: "a plan, three tools at once, and an answer from all of them", Value: "scenarios/fork-join.yaml"},
	{Name: "agent-chain", Doc: "four agents in line, with tools from 20 ms to seconds between them", Value: "scenarios/agent-chain.yaml"},
	{Name: "coding-agent", Doc: "agents that write code, whose contexts grow to tens of thousands of tokens", Value: "scenarios/coding-agent.yaml"},
	{Name: "sanity", Doc: "Poisson arrivals of one class at 80 % of what the default cluster can serve", Value: "scenarios/sanity.yaml"},
}

// load returns the spec's text, and its name for errors.
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
