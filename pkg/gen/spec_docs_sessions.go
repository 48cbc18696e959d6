package gen

// sessionDocs documents the blocks of clients, which make sessions or change requests.
var sessionDocs = []TypeDoc{
	docOf[MultiTurn]("Conversations", "clients[].multi_turn",
		"Each session is a conversation of turns. The prompt of a turn contains the client's prefix (the "+
			"system prompt), "+
			"earlier turns, and the user's new input, whose length is the client's `input_distribution`. A "+
			"turn starts "+
			"when the response to the previous one is complete and the think time has passed.",
		`multi_turn:
  avg_turns: 4
  think_time: {type: exponential, params: {mean: 30000000}}`,
		FieldDoc{"avg_turns", "none", "Mean number of turns, 1 to 10000, with a geometric distribution. " +
			"Required unless `turn_distribution` is given."},
		FieldDoc{"turn_distribution", "none", "Distribution of the number of turns, at most 10000. " +
			"`avg_turns` must agree with its mean if both are given."},
		FieldDoc{"context_growth", "`linear`", "How much of the earlier turns a prompt contains. With `sublinear` " +
			"the n earlier " +
			"turns take 1/√n of their tokens."},
		FieldDoc{"max_context_tokens", "none", "Maximum prompt length, in tokens. It drops whole turns, " +
			"oldest first, and " +
			"always keeps the system prompt and the new input. Required for `bounded`, not allowed otherwise."},
		FieldDoc{"think_time", "0", "Time from a response to the user's next turn, in µs."},
	),
	docOf[Agentic]("Agent workflows", "clients[].agentic",
		"Each session is one run of a workflow: a directed acyclic graph of model calls and tool calls, "+
			"optionally with "+
			"a loop. The workflow begins with a single step. The prompt of a model call consists of:\n\n"+
			"1. the client's prefix, if there is one;\n"+
			"2. the history: by default, the results of the tools that the call depends on directly; with "+
			"`context_growth: accumulate`, the text, outputs and tool results of all steps that it depends on, "+
			"directly or indirectly;\n"+
			"3. the step's own text.\n\n"+
			"A call that accumulates therefore extends the prompt of an earlier call and can hit the prefix cache.",
		`agentic:
  loop: {over: [think, search], max_iterations: 3}
  steps:
    - id: think
      type: llm_call
      context_growth: accumulate
      input_distribution: {type: constant, params: {value: 400}}
      output_distribution: {type: exponential, params: {mean: 60}}
    - {id: search, type: tool_call, tool: web, fan_out: 2, depends_on: [think]}
    - id: answer
      type: llm_call
      depends_on: [search]
      input_distribution: {type: constant, params: {value: 800}}
      output_distribution: {type: exponential, params: {mean: 250}}
  tools:
    web:
      latency: {type: exponential, params: {mean: 800000}}
      output_tokens: {type: constant, params: {value: 300}}`,
		FieldDoc{"workflow", "none", "Label of the sessions."},
		FieldDoc{"steps", required, "Steps of the workflow. A session has at most 10000 steps, all iterations and " +
			"fan-outs included."},
		FieldDoc{"loop", "none", "Steps that repeat."},
		FieldDoc{"tools", "none", "The tools that steps call, by name."},
	),
	docOf[AgenticStep]("", "clients[].agentic.steps[]", "", "",
		FieldDoc{"id", required, "Unique name of the step. Calls in a session have the id `ID`, in a loop `ID-1`, " +
			"`ID-2`, …, and with a fan-out `ID.0`, `ID.1`, …"},
		FieldDoc{"type", required, "`llm_call` for a model call, `tool_call` for a tool call."},
		FieldDoc{"tool", "none", "Name of the tool. Required for a `tool_call`."},
		FieldDoc{"depends_on", "none", "Ids of the steps that must complete first. A workflow begins with " +
			"exactly one " +
			"step without dependencies, or with the first steps of the loop."},
		FieldDoc{"fan_out", "a single call", "Number of parallel calls, 2 to 10000. All have the same prompt " +
			"and their " +
			"own outputs; steps that depend on the step wait for all of them."},
		FieldDoc{"context_growth", "none", "`accumulate` makes the prompt contain the whole history. Only for model " +
			"calls in the loop."},
		FieldDoc{"input_distribution", "none", "Length of the step's own text, in tokens. It includes the prefix " +
			"unless the prompt extends that of another call. Required for an `llm_call`."},
		FieldDoc{"output_distribution", "none", "Output length, in tokens. Required for an `llm_call`."},
	),
	docOf[AgenticLoop]("", "clients[].agentic.loop",
		"An iteration starts when all steps of the previous one have completed. Steps outside the loop that depend on "+
			"loop steps run after the last iteration.", "",
		FieldDoc{"over", required, "Ids of the steps that repeat, which must be connected by `depends_on`. Only the " +
			"first one may depend on later ones. It then depends on their previous iteration."},
		FieldDoc{"max_iterations", required, "Maximum number of iterations, 1 to 10000."},
		FieldDoc{"iterations", "`max_iterations`", "Distribution of the number of iterations per session, capped at " +
			"`max_iterations`."},
	),
	docOf[AgenticTool]("", "clients[].agentic.tools.*", "Tools run outside the cluster.", "",
		FieldDoc{"latency", required, "Duration of a tool call, in µs."},
		FieldDoc{"output_tokens", "none", "Length of the tool's result in tokens, which becomes part of the " +
			"prompts of " +
			"later calls."},
	),
	docOf[Reasoning]("Chains of thought", "clients[].reasoning",
		"Each session is a chain of model calls without pauses. The first prompt is the client's prefix and "+
			"a question "+
			"of `input_distribution`; each later prompt is the previous one and its output. The last call "+
			"generates the "+
			"answer of `output_distribution`.",
		`reasoning:
  chain_length: {type: uniform, params: {min: 2, max: 6}}
  tokens_per_step: {type: lognormal, params: {mean: 400, std_dev: 200}}`,
		FieldDoc{"chain_length", required, "Number of calls before the answer, at most 9999."},
		FieldDoc{"tokens_per_step", required, "Output length of each of these calls, in tokens."},
	),
	docOf[ClosedLoop]("Closed loops", "clients[].closed_loop",
		"A fixed number of users each send a request, wait for the response and the think time, and send the "+
			"next one. "+
			"They share the client's part of `requests` evenly and stop at the `horizon`. The rate depends on the "+
			"response times.",
		`closed_loop:
  concurrency: 32
  think_time: {type: exponential, params: {mean: 2000000}}`,
		FieldDoc{"concurrency", required, "Number of users, at most 1048576."},
		FieldDoc{"think_time", "0", "Time from a response to the user's next request, in µs."},
	),
	docOf[Multimodal]("Multimodal prompts", "clients[].multimodal",
		"Media add prompt tokens after the text. No other prompt shares these tokens. At least one kind is required.",
		`multimodal:
  image_tokens: {type: constant, params: {value: 576}}
  images_per_request: {type: uniform, params: {min: 0, max: 4}}`,
		FieldDoc{"image_tokens", "none", "Tokens per image."},
		FieldDoc{"images_per_request", "1", "Number of images per request, at most 10000."},
		FieldDoc{"audio_tokens", "none", "Tokens per audio clip."},
		FieldDoc{"audios_per_request", "1", "Number of audio clips per request, at most 10000."},
		FieldDoc{"video_tokens", "none", "Tokens per video."},
		FieldDoc{"videos_per_request", "1", "Number of videos per request, at most 10000."},
	),
	docOf[Prediction]("Predicted output lengths", "clients[].predicted_output",
		"The prediction is the true output length times `bias` times a lognormal factor with mean 1.",
		"predicted_output: {error: 0.5}",
		FieldDoc{"error", "0", "Coefficient of variation of the factor, 0 to 100. 0 predicts exactly."},
		FieldDoc{"bias", "1", "Systematic error, above 0 and at most 1000: 2 predicts twice the length."},
	),
	docOf[Behavior]("Behavior", "clients[].behavior",
		"Behavior makes a client deviate from its rate and lengths.",
		`behavior:
  type: bursty
  burst:
    burst_probability: 0.5
    burst_size: {type: uniform, params: {min: 20, max: 40}}
    burst_interval: {type: exponential, params: {mean: 30000000}}`,
		FieldDoc{"type", required, "Kind of behavior."},
		FieldDoc{"burst", "defaults below", "Bursts of a `bursty` or `adversarial` client."},
		FieldDoc{"abuse", "everything below", "What an `abusive` client does."},
	),
	docOf[Burst]("", "clients[].behavior.burst",
		"A burst is a number of simultaneous arrivals in addition to the client's rate, with ids `ID/burst/0`, … "+
			"Bursts do not change the client's other requests. Load profiles apply to them too.", "",
		FieldDoc{"burst_probability", "`burst_propensity` of the archetype, or 1",
			"Probability of a burst after each interval, above 0 and at most 1."},
		FieldDoc{"burst_size", "the arrivals of 10 s at the client's rate, at least 2",
			"Number of arrivals in a burst. Required with arrivals from a trace."},
		FieldDoc{"burst_interval", "exponential, mean 60 s", "Time between possible bursts, in µs. For adversarial " +
			"clients the default is exactly 60 s, so that their bursts coincide."},
	),
	docOf[Abuse]("", "clients[].behavior.abuse", "Without this field an abusive client does all three.", "",
		FieldDoc{"oversized_prompts", "false", "Prompts are 8 times as long."},
		FieldDoc{"rapid_fire", "false", "The rate is 5 times as high."},
		FieldDoc{"resource_exhaustion", "false", "Outputs are 8 times as long, and prompts share no prefix."},
	),
	docOf[Archetype]("Archetypes", "clients[].archetype",
		"An archetype supplies defaults of a typical tenant. Fields of the client take precedence.",
		"archetype: {typical_prompt_size: large, burst_propensity: 0.2}",
		FieldDoc{"typical_prompt_size", "none", "Default of `input_distribution`: lognormal with this mean and a " +
			"coefficient of variation of 0.75."},
		FieldDoc{"prefix_reuse_affinity", "none", "Default of `reuse_probability`, 0 to 1. Requires a `prefix_spec`."},
		FieldDoc{"burst_propensity", "0", "Default of `burst_probability`, 0 to 1. Above 0 it makes a client without " +
			"`behavior` bursty."},
		FieldDoc{"session_length", "none", "Maximum duration of a session, in µs. Steps after it do not start. " +
			"Only for clients that send sessions."},
	),
	docOf[Correlations]("Correlations", "correlations",
		"By default all draws are independent. Correlations apply within each client; clients stay "+
			"independent of each "+
			"other, even within a tenant.",
		"correlations: {intra_tenant_prefix_correlation: 0.5}",
		FieldDoc{"intra_tenant_prefix_correlation", "0",
			"Probability, 0 to 1, that a prompt repeats the prefix group " +
				"of the client's previous prompt. The popularity of groups stays the same."},
		FieldDoc{"burst_size_correlation", "0", "Correlation, 0 to 1, between the prompt length and being in a burst " +
			"(Gaussian copula). Above 0, prompts are longer in bursts and shorter outside, and their overall " +
			"distribution stays the same. Clients without bursts are not affected."},
		FieldDoc{"session_model", "none", "Changes the lengths in the course of conversations, " +
			"for all clients with `multi_turn`."},
		FieldDoc{"closed_loop", "none", "Gives all clients with single requests a closed loop."},
	),
	docOf[SessionModel]("", "correlations.session_model", "", "",
		FieldDoc{"prompt_growth_rate", "1", "Factor by which the user's input grows per turn, " +
			"above 0 and at most 100."},
		FieldDoc{"decode_variation", "0", "Coefficient of variation, 0 to 100, of a lognormal factor with mean 1 by " +
			"which output lengths change from turn to turn. The factors of successive turns multiply."},
	),
	docOf[TenantLoop]("", "correlations.closed_loop",
		"Every tenant must have a single client, and that client gets a closed loop.", "",
		FieldDoc{"enabled", "false", "Whether the loop is used."},
		FieldDoc{"concurrency_per_tenant", required, "Number of users per tenant, at most 1048576."},
		FieldDoc{"think_time", "0", "Time from a response to the user's next request, in µs."},
	),
}
