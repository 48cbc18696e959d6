package gen

import (
	"reflect"
	"slices"

	"blis/pkg/dist"
	"blis/pkg/stream"
)

// TypeDoc documents one object of a workload spec, for the reference page and the JSON schema.
type TypeDoc struct {
	// Type is the Go type of the object.
	Type reflect.Type
	// Title is a heading. An object without one is part of the section before.
	Title string
	// Path is the first place of the object in a spec, such as clients[].arrival; "" is the spec itself.
	Path string
	// Text introduces the object, in Markdown. Example is YAML: a field of a client, or of the spec, with its value.
	Text, Example string
	// Fields are the fields of the object, in the order of Type.
	Fields []FieldDoc
}

// FieldDoc documents one field of an object.
type FieldDoc struct {
	// Name is the name in files.
	Name string
	// Default is the value of a field that is left out, or required.
	Default string
	// Text is the meaning with unit and limits, in Markdown.
	Text string
}

// required is the Default of fields that have none.
const required = "required"

// SpecDocs documents workload specs: every object with every field, in the order of the reference page.
var SpecDocs = slices.Concat(clientDocs, sessionDocs)

// clientDocs documents the spec, its clients, and the parts that any client can have.
var clientDocs = []TypeDoc{
	docOf[Spec]("The spec", "",
		"The top level of a spec. It needs `version`, `clients`, and `requests` or `horizon`.", "",
		FieldDoc{"version", required, "Version of the spec language: `\"2\"`."},
		FieldDoc{"seed", "0", "Seed of all random draws. The same spec and seed produce the same bytes. " +
			"`--seed` overrides it."},
		FieldDoc{"category", "none", "Label without effect: `language`, `multimodal`, `reasoning` or `agentic`."},
		FieldDoc{"aggregate_rate", required, "Arrivals per second of all clients together, at most 1e9. " +
			"An arrival is a request or a session. Not needed if no client has a rate."},
		FieldDoc{"horizon", "none", "Time of the last possible arrival, in µs, inclusive. Sessions that have begun " +
			"continue after it; closed-loop users stop."},
		FieldDoc{"requests", "none", "Maximum number of arrivals; a session counts as one. Closed-loop users share " +
			"this number and require it. `--requests` overrides it. One of `requests` and `horizon` is required " +
			"unless all arrivals come from traces."},
		FieldDoc{"slo_classes", "none", "SLO classes that are not predefined, and targets of predefined ones."},
		FieldDoc{"clients", required, "The sources of requests, at least one."},
		FieldDoc{"load_profile", "none", "Changes the rate of all clients over time. " +
			"Arrivals from traces are not affected."},
		FieldDoc{"correlations", "none", "Correlations between draws within each client."},
	),
	docOf[Client]("Clients", "clients[]",
		"A client sends requests at a share of the aggregate rate. With one of the fields `multi_turn`, `agentic`, "+
			"`reasoning` and `closed_loop` it sends sessions. Without them it sends single requests. A "+
			"client draws "+
			"from its own random streams, so adding or changing other clients does not change its requests.", "",
		FieldDoc{"id", required, "Unique name of the client. Its requests or sessions are `ID/0`, `ID/1`, …"},
		FieldDoc{"tenant_id", "none", "Tenant of its requests."},
		FieldDoc{"slo_class", "none", "SLO class of its requests: a predefined class or one of `slo_classes`."},
		FieldDoc{"model", "the cluster's first model", "Model that its requests ask for."},
		FieldDoc{"rate_fraction", required, "Share of `aggregate_rate`, above 0 and at most 1. Fractions are not " +
			"normalized: a sum other than 1 causes a warning. Not needed for arrivals from a trace. In a closed loop " +
			"without `arrival` it is the share of `requests`, default 1."},
		FieldDoc{"arrival", required, "Arrival process of its requests or sessions. The first arrival is one gap " +
			"after 0. Optional in a closed loop: without it all users start at 0."},
		FieldDoc{"load_profile", "none", "Changes the client's rate over time. Its multiplier and that of the spec's " +
			"profile are multiplied."},
		FieldDoc{"input_distribution", required, "Prompt length in tokens, including the shared prefix. With " +
			"`multi_turn` it is the user's input per turn, with `reasoning` the question; both follow the prefix. " +
			"Not allowed with `agentic`, whose steps have their own."},
		FieldDoc{"output_distribution", required, "Output length in tokens. With `reasoning` it is the length of the " +
			"final answer. Not allowed with `agentic`."},
		FieldDoc{"prefix_spec", "none", "Prefixes that prompts share."},
		FieldDoc{"agentic", "none", "Sends agent sessions: a workflow of model calls and tool calls."},
		FieldDoc{"multi_turn", "none", "Sends conversations."},
		FieldDoc{"reasoning", "none", "Sends chains of thought."},
		FieldDoc{"closed_loop", "none", "Sends requests from a fixed number of users who wait for each response. " +
			"A client has at most one of `agentic`, `multi_turn`, `reasoning` and `closed_loop`."},
		FieldDoc{"multimodal", "none", "Adds tokens of images, audio and video to prompts. " +
			"Only for clients with single requests."},
		FieldDoc{"deadline", "none", "Time from arrival to abort, in µs. In sessions it applies to each model call."},
		FieldDoc{"predicted_output", "none", "Attaches a prediction of the output length to each request, " +
			"for policies that use it."},
		FieldDoc{"behavior", "none", "Makes the client bursty, abusive or adversarial."},
		FieldDoc{"archetype", "none", "Defaults of a typical tenant for fields that the client leaves out."},
	),
	docOf[dist.Spec]("Distributions", "clients[].input_distribution",
		"Lengths and durations are distributions of integers. Draws are clamped to `min` and `max` and rounded. "+
			"If many draws are clamped, the mean shifts. Lengths are in tokens and at least 1; durations "+
			"are in µs and at least 0.",
		"input_distribution: {type: lognormal, params: {mean: 1200, std_dev: 900, min: 50, max: 8192}}",
		FieldDoc{"type", required, "Family of the distribution."},
		FieldDoc{"params", "none", "Parameters of the family, by name. `mean`, `std_dev`, `value` and " +
			"`minimum` are in " +
			"tokens or µs; `alpha` is the tail index, above 1. All families accept `min` (default 1 token or " +
			"0 µs) and " +
			"`max`."},
		FieldDoc{"values", "none", "Values of an `empirical` distribution."},
		FieldDoc{"weights", "equal", "Relative frequencies of `values`, in the same order."},
		FieldDoc{"quantiles", "none", "Alternative form of an `empirical` distribution: pairs " +
			"`[probability, value]`, both rising, with linear interpolation in between."},
		FieldDoc{"components", "none", "Components of a `mixture`. `params` of the mixture may only have `min` " +
			"and `max`."},
	),
	docOf[dist.Component]("", "clients[].input_distribution.components[]",
		"A component of a mixture is a distribution with a weight.",
		`input_distribution:
  type: mixture
  components:
    - {weight: 0.8, type: lognormal, params: {mean: 500, std_dev: 300}}
    - {weight: 0.2, type: constant, params: {value: 8000}}`,
		FieldDoc{"weight", required, "Relative frequency of the component."},
	),
	docOf[dist.Arrival]("Arrival processes", "clients[].arrival",
		"The process determines the gaps between arrivals; their mean follows from the rate.",
		"arrival: {process: gamma, cv: 2}",
		FieldDoc{"process", required, "Name of the process."},
		FieldDoc{"cv", "none", "Coefficient of variation (standard deviation / mean) of the gaps, 0.01 to 100. " +
			"1 is like " +
			"Poisson, above 1 is bursty. Required for `gamma` and `weibull`; `bursty` needs either `cv` or `shape`."},
		FieldDoc{"shape", "none", "Tail index of the Pareto gaps of `bursty`, above 1. The CV is " +
			"1/√(shape·(shape − 2)), and infinite for a shape of at most 2."},
		FieldDoc{"jitter", "0", "Maximum delay of an arrival as a fraction of a gap, 0 to 1. Only for `periodic`."},
		FieldDoc{"interval_s", "none", "Time between spikes, in seconds. Required for `spikes`."},
		FieldDoc{"duration_s", "none", "Duration of a spike, in seconds: the last part of each interval. " +
			"Required for `spikes`."},
		FieldDoc{"multiplier", "none", "Rate in a spike relative to the rate outside, 1 to 1e6. " +
			"Required for `spikes`."},
		FieldDoc{"burst_size", "none", "Number of simultaneous arrivals. Required for `adversarial`."},
		FieldDoc{"file", "none", "File with arrival times, relative to the spec: one time in seconds per line, " +
			"or a CSV " +
			"table with a column `arrival_s`, `timestamp_ms` or `arrival_us`. Times must be in order. " +
			"Required for `trace`."},
	),
	docOf[dist.Profile]("Load profiles", "load_profile",
		"A load profile multiplies the rate over time. Outside its segments the multiplier is 1. It can be a field "+
			"of the spec, of a client, or of both.",
		`load_profile:
  type: step
  segments:
    - {start_time: 40000000, end_time: 80000000, multiplier: 3}`,
		FieldDoc{"type", required, "Shape of the profile."},
		FieldDoc{"segments", "none", "Time intervals with multipliers, in order. " +
			"Required for all types except `diurnal`."},
		FieldDoc{"recovery", "0", "Time in which the multiplier falls back to 1 after a `spike`, in µs."},
		FieldDoc{"period", "86400000000 (a day)", "Period of a `diurnal` wave, in µs."},
		FieldDoc{"amplitude", "none", "Amplitude of a `diurnal` wave, above 0 and at most 1: the multiplier " +
			"is between " +
			"1 − `amplitude` and 1 + `amplitude`. Required for `diurnal`."},
		FieldDoc{"peak_time", "period / 4", "Time of the maximum of a `diurnal` wave, in µs."},
	),
	docOf[dist.ProfileSegment]("", "load_profile.segments[]", "", "",
		FieldDoc{"start_time", "0", "Start of the segment, in µs."},
		FieldDoc{"end_time", "next segment", "End of the segment, in µs, exclusive. The last segment may be endless. " +
			"Required for `ramp` and `spike`."},
		FieldDoc{"multiplier", required, "Multiplier of the rate, 0 to 1e6. For `ramp` it is reached at the end."},
	),
	docOf[Class]("SLO classes", "slo_classes[]",
		"An SLO class has a tier, a priority and latency targets. The predefined classes have no targets. A "+
			"class with "+
			"the name of a predefined one inherits the fields that it leaves out.",
		`slo_classes:
  - name: interactive
    targets: {ttft_ms: 1000, tpot_ms: 50}`,
		FieldDoc{"name", required, "Name that `slo_class` of clients refers to."},
		FieldDoc{"tier", "predefined", "Treatment under overload: `critical`, `standard` or `sheddable`. " +
			"Required for a new class."},
		FieldDoc{"priority", "predefined, or 0", "Priority of its requests; higher is served first."},
		FieldDoc{"targets", "none", "Latency targets of every request."},
	),
	docOf[stream.Targets]("", "slo_classes[].targets", "", "",
		FieldDoc{"ttft_ms", "none", "Maximum time to first token, in ms."},
		FieldDoc{"tpot_ms", "none", "Maximum mean time per output token after the first, in ms."},
		FieldDoc{"e2e_ms", "none", "Maximum time from arrival to the last token, in ms."},
	),
	docOf[PrefixSpec]("Shared prefixes", "clients[].prefix_spec",
		"Prompts of the same prefix group begin with the same tokens, so they can hit a prefix cache. Single requests "+
			"and requests of closed-loop users each choose a group; other sessions choose one for all calls. A prompt "+
			"that is too short for the whole prefix keeps one token of its own.",
		`prefix_spec:
  prefix_groups: [{group_id: system-prompt}]
  prefix_length: {type: constant, params: {value: 500}}`,
		FieldDoc{"prefix_groups", "none", "The groups. Required unless `num_prefix_groups` is given."},
		FieldDoc{"num_prefix_groups", "none", "Number of equally popular groups `ID.0`, `ID.1`, …, where ID is the " +
			"client's; at most 1048576. Not together with `prefix_groups`."},
		FieldDoc{"prefix_length", required, "Length of a prefix in tokens, drawn once per group."},
		FieldDoc{"reuse_probability", "1", "Probability that a prompt begins with a group's prefix at all."},
	),
	docOf[PrefixGroup]("", "clients[].prefix_spec.prefix_groups[]", "", "",
		FieldDoc{"group_id", required, "Name of the group. Groups with the same name are the same prefix, " +
			"also in different clients."},
		FieldDoc{"popularity", "1", "Relative frequency of the group in its client."},
	),
}

// docOf documents the type T.
func docOf[T any](title, path, text, example string, fields ...FieldDoc) TypeDoc {
	return TypeDoc{reflect.TypeFor[T](), title, path, text, example, fields}
}
