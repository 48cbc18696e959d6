package gen

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"blis/pkg/strictyaml"
)

// designWorkflow returns a workflow of the design. Files that hold only an agentic block are
// wrapped in a client.
func designWorkflow(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../../testdata/spec/" + name + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasPrefix(string(text), "version") {
		return string(text)
	}
	return agentSpec("", strings.ReplaceAll("\n"+string(text), "\n", "\n    "))
}

// agentSpec is a spec with one client, a, and further fields.
func agentSpec(head, fields string) string {
	return "version: \"2\"\nseed: 7\naggregate_rate: 1\nhorizon: 20000000\n" + head +
		"clients:\n  - id: a\n    rate_fraction: 1\n    arrival: {process: poisson}\n" +
		strings.TrimPrefix(fields, "\n") + "\n"
}

// goodAgent uses every feature; each case of TestInvalidWorkflows breaks one.
const goodAgent = `version: "2"
seed: 1
aggregate_rate: 10
requests: 5
clients:
  - id: a
    rate_fraction: 1
    arrival: {process: poisson}
    agentic:
      workflow: w
      loop: {over: [think, act, look], max_iterations: 3, iterations: {type: uniform, params: {min: 1, max: 3}}}
      steps:
        - id: plan
          type: llm_call
          input_distribution: {type: constant, params: {value: 100}}
          output_distribution: {type: constant, params: {value: 10}}
        - id: think
          type: llm_call
          depends_on: [plan, look]
          context_growth: accumulate
          input_distribution: {type: constant, params: {value: 100}}
          output_distribution: {type: constant, params: {value: 10}}
        - id: act
          type: tool_call
          tool: search
          fan_out: 2
          depends_on: [think]
        - id: look
          type: llm_call
          depends_on: [act]
          input_distribution: {type: constant, params: {value: 100}}
          output_distribution: {type: constant, params: {value: 10}}
        - id: say
          type: llm_call
          depends_on: [look]
          input_distribution: {type: constant, params: {value: 100}}
          output_distribution: {type: constant, params: {value: 10}}
      tools:
        search: {latency: {type: constant, params: {value: 1000}}, output_tokens: {type: constant, params: {value: 50}}}
        mail: {latency: {type: constant, params: {value: 1000}}}
`

func TestGoodAgentLoads(t *testing.T) {
	if n := len(generateSessions(t, goodAgent, Options{Spec: "-"})); n != 5 {
		t.Errorf("%d sessions", n)
	}
}

// A tool that no step calls is reported as a likely mistake.
func TestUnusedToolsWarn(t *testing.T) {
	var warnings []string
	if _, err := generate(goodAgent, Options{Spec: "-",
		Warn: func(msg string) { warnings = append(warnings, msg) }}); err != nil {
		t.Fatal(err)
	}
	if want := `no step of client "a" calls its tool "mail"`; len(warnings) != 1 || warnings[0] != want {
		t.Errorf("%q, want %q", warnings, want)
	}
}

// Every validation rule has a message with a position.
func TestInvalidWorkflows(t *testing.T) {
	const lengths = "          input_distribution: {type: constant, params: {value: 100}}\n          " +
		"output_distribution: {type: constant, params: {value: 10}}\n"
	const steps = "clients[0].agentic.steps"
	for _, c := range []struct{ old, new, want string }{
		// 1: no cycles except those of the loop.
		{"depends_on: [think]", "depends_on: [think, look]", `stdin:27:23: ` + steps +
			`[2].depends_on: steps depend on each other in a cycle (act -> look -> act); in a loop only the first ` +
			`step of loop.over may depend on the previous iteration`},
		{"- id: plan\n          type: llm_call\n", "- id: plan\n          type: llm_call\n          depends_on: " +
			"[plan]\n", `stdin:15:23: ` + steps + `[0].depends_on: steps depend on each other in a cycle ` +
			`(plan -> plan)`},
		{"- id: plan\n          type: llm_call\n", "- id: plan\n          type: llm_call\n          depends_on: " +
			"[say]\n", `in a cycle (plan -> say -> look -> act -> think -> plan)`},
		// 2: a single root.
		{"          depends_on: [look]\n", "", steps +
			`[4].depends_on is not in the file: must be given for "say" or "plan": a session begins with a ` +
			`single step`},
		{"depends_on: [plan, look]", "depends_on: [look]", steps +
			`[1].depends_on: must be given for "think" or "plan"`},
		// 3: tools exist.
		{"tool: search\n", "tool: serch\n", `stdin:25:17: ` + steps +
			`[2].tool: unknown tool "serch"; did you mean "search"? (have mail, search)`},
		{"          tool: search\n", "", steps + `[2].tool is not in the file: must be given for a tool_call`},
		// 4: fan-outs make at least two calls.
		{"fan_out: 2", "fan_out: 1", `stdin:26:20: ` + steps +
			`[2].fan_out: must be between 2 and 10000, is 1; leave it out for a single call`},
		{"fan_out: 2", "fan_out: 0", `fan_out: must be between 2`},
		{"fan_out: 2", "fan_out: 10001", `fan_out: must be between 2`},
		// 5: loops are connected.
		{"over: [think, act, look]", "over: [think, act, say]",
			`stdin:11:33: clients[0].agentic.loop.over[2]: the steps of a loop must be connected by depends_on: ` +
				`"say" is not connected to "think"`},
		// 6: model calls have lengths.
		{lengths, "", steps + `[0].input_distribution is not in the file: must be given for an llm_call`},
		{"          output_distribution: {type: constant, params: {value: 10}}\n", "", steps +
			`[0].output_distribution is not in the file: must be given for an llm_call`},
		// 7: tool calls have none.
		{"fan_out: 2\n", "fan_out: 2\n          input_distribution: {type: constant, params: {value: 9}}\n",
			`stdin:27:31: ` + steps + `[2].input_distribution: must not be given for a tool_call: a tool has ` +
				`no prompt`},
		{"fan_out: 2\n", "fan_out: 2\n          output_distribution: {type: constant, params: {value: 9}}\n", steps +
			`[2].output_distribution: must not be given for a tool_call: the length of its result is output_tokens ` +
			`under tools`},
		// 8: only loop steps accumulate.
		{"depends_on: [look]\n", "depends_on: [look]\n          context_growth: accumulate\n", `stdin:36:27: ` + steps +
			`[4].context_growth: accumulate is only for loop steps, and "say" is not in loop.over`},
		// 9: one kind of traffic per client.
		{"    agentic:\n", "    reasoning: {chain_length: {type: constant, params: {value: 2}}, tokens_per_step: " +
			"{type: constant, params: {value: 2}}}\n    agentic:\n",
			`stdin:9:16: clients[0].reasoning: cannot be combined with agentic: a client has one kind of traffic`},
		{"    agentic:\n", "    multimodal: {image_tokens: {type: constant, params: {value: 2}}}\n    agentic:\n",
			`stdin:9:17: clients[0].multimodal: cannot be combined with agentic`},
		{"    agentic:\n", "    multi_turn: {avg_turns: 2}\n    agentic:\n",
			`clients[0].multi_turn: cannot be combined with agentic`},
		{"    agentic:\n", "    closed_loop: {concurrency: 2}\n    agentic:\n",
			`clients[0].closed_loop: cannot be combined with agentic`},
		{"    agentic:\n", "    input_distribution: {type: constant, params: {value: 2}}\n    agentic:\n",
			`clients[0].input_distribution: cannot be combined with agentic: each step has its own lengths`},
		{"    agentic:\n", "    behavior: {type: abusive}\n    agentic:\n",
			`clients[0].behavior: cannot be combined with agentic`},
		// Other rules.
		{"depends_on: [act]", "depends_on: [atc]", `stdin:30:24: ` + steps +
			`[3].depends_on[0]: unknown step "atc"; did you mean "act"? (have plan, think, act, look, say)`},
		{"depends_on: [act]", "depends_on: [act, act]", steps + `[3].depends_on[1]: "act" is listed twice`},
		{"- id: look", "- id: think", `stdin:28:15: ` + steps + `[3].id: "think" is taken by an earlier step`},
		{"- id: look", `- id: ""`, steps + `[3].id: must be given`},
		{"- id: look", `- id: a/b`, steps + `[3].id: must not contain /`},
		{"- id: say", `- id: look-2`, steps + `[4].id: calls of "look" and "look-2" would both have the id "look-2" ` +
			`in a session`},
		{"type: tool_call", "type: tool", steps +
			`[2].type: unknown step type "tool"; did you mean "tool_call"? (have llm_call, tool_call)`},
		{"type: tool_call", "type: toolcall", `did you mean "tool_call"?`},
		{"depends_on: [act]", "depends_on: [act]\n          tool: search", steps +
			`[3].tool: is only for a tool_call; this step is an llm_call`},
		{"tool: search\n", "tool: search\n          context_growth: accumulate\n", steps +
			`[2].context_growth: must not be given for a tool_call`},
		{"context_growth: accumulate", "context_growth: linear", `unknown context growth "linear" (have accumulate)`},
		{"over: [think, act, look]", "over: []", `clients[0].agentic.loop.over: must name at least one step`},
		{"over: [think, act, look]", "over: [think, act, lock]",
			`clients[0].agentic.loop.over[2]: unknown step "lock"; did you mean "look"?`},
		{"over: [think, act, look]", "over: [think, act, act]",
			`clients[0].agentic.loop.over[2]: "act" is listed twice`},
		{"over: [think, act, look]", "over: [think, look]", `stdin:30:23: ` + steps +
			`[3].depends_on: "act" runs after the loop because it depends on a loop step; loop step "look" cannot ` +
			`depend on it (add it to loop.over)`},
		{"max_iterations: 3", "max_iterations: 0", `stdin:11:56: clients[0].agentic.loop.max_iterations: must be ` +
			`between 1 and 10000, is 0`},
		{", max_iterations: 3", "", `clients[0].agentic.loop.max_iterations is not in the file: must be between 1`},
		{"max_iterations: 3", "max_iterations: 2500", steps +
			`: must be at most 10000 per session with all iterations and fan-outs, are 10002`},
		{"{type: uniform, params: {min: 1, max: 3}}", "{type: uniform, params: {min: 0, max: 3}}",
			`clients[0].agentic.loop.iterations.params.min: must be between 1`},
		{"latency: {type: constant, params: {value: 1000}}, ", "",
			`clients[0].agentic.tools.search.latency is not in the file: must be given: how long a call takes, in µs`},
		{"latency: {type: constant, params: {value: 1000}}, ", "latency: {type: constant, params: {value: -1}}, ",
			`clients[0].agentic.tools.search.latency.params.value: must be between 0`},
		{"output_tokens: {type: constant, params: {value: 50}}", "output_tokens: {type: constant, params: {value: 0}}",
			`clients[0].agentic.tools.search.output_tokens.params.value: must be between 1`},
		{"input_distribution: {type: constant", "input_distribution: {type: const", steps +
			`[0].input_distribution.type: unknown distribution "const"`},
		{"workflow: w", "workflows: w", `stdin:10:7: unknown field "workflows"; did you mean "workflow"?`},
	} {
		spec := strings.Replace(goodAgent, c.old, c.new, 1)
		if spec == goodAgent {
			t.Fatalf("no %q in the good spec", c.old)
		}
		checkRejected(t, spec, c.want)
	}
}

// checkRejected checks that the spec is an error with the given text and that nothing is written.
func checkRejected(t *testing.T, spec, want string) {
	t.Helper()
	stream, err := generate(spec, Options{Spec: "-"})
	var bad *strictyaml.Error
	if !errors.As(err, &bad) || !strings.Contains(err.Error(), want) {
		t.Errorf("%v; want %s", err, want)
	}
	if stream != "" {
		t.Errorf("wrote %q", stream)
	}
}

// callStep is a model call with dependencies, as YAML on one line.
func callStep(id string, more ...string) string {
	return fmt.Sprintf("{id: %s, type: llm_call, input_distribution: {type: constant, params: {value: 10}}, "+
		"output_distribution: {type: constant, params: {value: 5}}%s}", id, strings.Join(more, ""))
}

// agent is a spec with one workflow.
func agent(loop string, steps ...string) string {
	return agentSpec("", "    agentic:\n      "+loop+"\n      steps: ["+strings.Join(steps, ", ")+"]\n")
}

// Unusual workflow shapes are accepted or rejected as documented.
func TestWorkflowShapes(t *testing.T) {
	after := func(ids string) string { return ", depends_on: [" + ids + "]" }
	for _, c := range []struct{ name, spec, want string }{
		{"a loop that begins by itself, with two steps", agent("loop: {over: [x, y, z], max_iterations: 2}",
			callStep("x"), callStep("y"), callStep("z", after("x, y"))), ""},
		{"a loop written as a cycle", agent("loop: {over: [x, y], max_iterations: 2}", callStep("x", after("y")),
			callStep("y", after("x"))), ""},
		{"a loop of one step", agent("loop: {over: [x], max_iterations: 2}", callStep("x")), ""},
		{"a loop step that waits for itself", agent("loop: {over: [x], max_iterations: 2}", callStep("x", after("x"))),
			""},
		{"a path out of the loop and back", agent("loop: {over: [x, y], max_iterations: 2}", callStep("x"),
			callStep("out", after("x")), callStep("y", after("x, out"))),
			`steps[2].depends_on: "out" runs after the loop because it depends on a loop step; loop step "y" cannot ` +
				`depend on it`},
		{"a root besides the loop", agent("loop: {over: [x, y], max_iterations: 2}", callStep("p"), callStep("x"),
			callStep("y", after("x, p"))),
			`steps[1].depends_on is not in the file: must be given for "x" or "p"`},
		{"an entry without a dependency besides one with", agent("loop: {over: [x, y, z], max_iterations: 2}",
			callStep("p"), callStep("x", after("p")), callStep("y"), callStep("z", after("x, y"))), ""},
		{"no steps", agentSpec("", "    agentic: {steps: []}"), `agentic.steps: must hold at least one step`},
		{"a fan-out after a fan-out", agent("", callStep("a"), callStep("b", after("a"), ", fan_out: 400"),
			callStep("c", after("b"), ", fan_out: 400")),
			`steps: have 160400 dependencies per session, more than 100000; join a fan-out in a single step`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.want != "" {
				checkRejected(t, c.spec, c.want)
			} else if len(generateSessions(t, c.spec, Options{Spec: "-"})) == 0 {
				t.Error("no sessions")
			}
		})
	}
}
