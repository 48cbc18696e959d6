package gen

import (
	"embed"

	"blis/pkg/named"
)

//go:embed scenarios/*.yaml
var scenarioFiles embed.FS

// Scenarios are the built-in specs, by the file that holds each. The first one
// is used where a call names no source.
var Scenarios = named.Table[string]{
	{Name: "chat", Doc: "three tenants with a system prompt each: interactive, standard and batch traffic", Value: "scenarios/chat.yaml"},
	{Name: "rag", Doc: "long prompts that begin with a popular document, short answers", Value: "scenarios/rag.yaml"},
	{Name: "prefix-heavy", Doc: "512 equally popular prefixes of 256 tokens", Value: "scenarios/prefix-heavy.yaml"},
	{Name: "documents", Doc: "questions about 240 documents of 8,000 tokens: more than one cache holds, less than four", Value: "scenarios/documents.yaml"},
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
