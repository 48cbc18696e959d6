package stream

var streams = []string{StreamWorkload, StreamRun, StreamRecording}

var headerObject = describe[Header](KindHeader, "The first record of a stream.",
	Field{Name: "kind", Doc: "Always header.", Required: true, OneOf: []string{KindHeader}},
	Field{Name: "stream", Doc: "What the stream is.", Required: true, OneOf: streams},
	Field{Name: "schema", Doc: "The version of the stream format.", Required: true, Min: Schema, Max: Schema},
	Field{Name: "tool", Doc: "The program that wrote the stream.", Required: true},
	Field{Name: "version", Doc: "The version of that program.", Required: true},
	Field{Name: "seed", Doc: "The seed that the stream was drawn from.", Required: true},
	Field{Name: "spec_digest", Doc: "The SHA-256 of the resolved workload spec, in hex."},
	Field{Name: "slo_classes", Doc: "The classes of service and their targets."},
	Field{Name: "run", Doc: "What the header of a run adds."},
	Field{Name: "recording", Doc: "What the header of a recording adds."},
)

var recordingObject = describe[RecordingHeader]("recording", "What the header of a recording adds: what is known of the server, and of how it was measured.",
	Field{Name: "clock", Doc: "Whose times they are.", Required: true, OneOf: []string{"client", "server"}},
	Field{Name: "arrivals", Doc: "Whether arrival_us is when requests came.", Required: true},
	Field{Name: "model", Doc: "The model served."},
	Field{Name: "gpu", Doc: "The GPU that it ran on."},
	Field{Name: "engine", Doc: "The engine and its version."},
	Field{Name: "tensor_parallel_size", Doc: "How many GPUs shared each layer.", Min: 1, Max: maxIndex},
	Field{Name: "replicas", Doc: "How many engines there were.", Min: 1, Max: maxIndex},
	Field{Name: "target_rps", Doc: "The rate that was wanted, in requests per second."},
)

var classObject = describe[SLOClass]("slo_class", "A class of requests with what it was promised.",
	Field{Name: "name", Doc: "The name that requests carry.", Required: true},
	Field{Name: "tier", Doc: "How the class is treated under load.", Required: true, OneOf: []string{"critical", "standard", "sheddable"}},
	Field{Name: "priority", Doc: "The priority of its requests; higher is sooner.", Required: true},
	Field{Name: "targets", Doc: "What was promised."},
)

var targetsObject = describe[Targets]("targets", "Upper bounds in ms; absent is none.",
	Field{Name: "ttft_ms", Doc: "Time to the first token."},
	Field{Name: "tpot_ms", Doc: "Mean time between tokens after the first."},
	Field{Name: "e2e_ms", Doc: "Time from arrival to the last token."},
)

var runObject = describe[RunHeader]("run", "What the header of a run adds.",
	Field{Name: "key", Doc: "Names the run, with its configuration and its workload.", Required: true},
	Field{Name: "trace", Doc: "How much the run tells.", Required: true, OneOf: TraceLevels},
	Field{Name: "horizon_us", Doc: "Where the run was to stop; absent, when all requests are final."},
	Field{Name: "itl", Doc: "Whether outcomes carry all gaps between tokens."},
	Field{Name: "clairvoyant", Doc: "Whether requests were routed by the true state of the replicas, not by the policy."},
	Field{Name: "counterfactual", Doc: "Which other choices were looked into."},
	Field{Name: "counterfactual_us", Doc: "How far beyond their decisions; absent, to the end of the run."},
	Field{Name: "workload", Doc: "What the run was fed.", Required: true},
	Field{Name: "parent", Doc: "The run that this one is a what-if of."},
	Field{Name: "config_digest", Doc: "The SHA-256 of the resolved configuration, in hex.", Required: true},
	Field{Name: "config", Doc: "The whole resolved configuration.", Required: true},
)

var keyObject = describe[SimulationKey]("simulation_key", "Names a run: with the same configuration and workload, equal keys give equal bytes.",
	Field{Name: "policy", Doc: "The SHA-256 of the resolved policies, in hex.", Required: true},
	Field{Name: "workload_seed", Doc: "The seed of the workload.", Required: true},
	Field{Name: "sim_seed", Doc: "The seed of the simulation.", Required: true},
	Field{Name: "jitter_seed", Doc: "The seed of the noise on step times.", Required: true},
)

var parentObject = describe[Parent]("parent", "A run, named by what a what-if of it changes.",
	Field{Name: "config_digest", Doc: "The SHA-256 of its resolved configuration, in hex.", Required: true},
	Field{Name: "policy", Doc: "The SHA-256 of its resolved policies, in hex.", Required: true},
)

var sourceObject = describe[Source]("source", "What a run was fed, in the words of the workload's header.",
	Field{Name: "tool", Doc: "The program that wrote the workload; absent for a hand-made one."},
	Field{Name: "seed", Doc: "The seed that it was drawn from.", Required: true},
	Field{Name: "spec_digest", Doc: "The SHA-256 of its resolved spec, in hex."},
)

var errorObject = describe[Fault](KindError, "An error that travels down the pipe in place of a product.",
	Field{Name: "kind", Doc: "Always error.", Required: true, OneOf: []string{KindError}},
	Field{Name: "tool", Doc: "The program that met the error.", Required: true},
	Field{Name: "file", Doc: "The file that is wrong."},
	Field{Name: "line", Doc: "The line in it, from 1.", Min: 1, Max: maxExact},
	Field{Name: "column", Doc: "The column in that line, from 1.", Min: 1, Max: maxExact},
	Field{Name: "message", Doc: "What is wrong and what is allowed.", Required: true},
)

var endObject = describe[End](KindEnd, "The last record of a stream; a stream without it is truncated.",
	Field{Name: "kind", Doc: "Always end.", Required: true, OneOf: []string{KindEnd}},
	Field{Name: "records", Doc: "How many records stand before this one.", Required: true, Max: maxExact},
	Field{Name: "digest", Doc: "The SHA-256 of their lines, each with its line feed, in hex.", Required: true},
	Field{Name: "requests", Doc: "How many requests a run was offered and how they ended."},
	Field{Name: "workload_digest", Doc: "The SHA-256 of the workload's lines as the run read them, in hex."},
)

var countsObject = describe[Counts]("counts", "How many requests ended in each state.",
	Field{Name: "offered", Doc: "The sum of the five states.", Required: true, Max: maxExact},
	Field{Name: "completed", Doc: "Requests that produced all their tokens.", Required: true, Max: maxExact},
	Field{Name: "rejected", Doc: "Requests that were refused.", Required: true, Max: maxExact},
	Field{Name: "timed_out", Doc: "Requests that met their deadline.", Required: true, Max: maxExact},
	Field{Name: "failed", Doc: "Requests whose replica was lost.", Required: true, Max: maxExact},
	Field{Name: "unfinished", Doc: "Requests that were still on their way at the horizon.", Required: true, Max: maxExact},
	Field{Name: "beyond_horizon", Doc: "Requests that arrive after the horizon and were not offered.", Required: true, Max: maxExact},
)
