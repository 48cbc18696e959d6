// Blis-sim simulates a cluster of LLM inference servers on a workload and writes the
// run: the outcome of each request, and metrics.
//
//	blis-sim [flags] [WORKLOAD]
//	blis-sim --sweep GRID [flags] [WORKLOAD...]
//
// WORKLOAD is a stream from blis-gen, or handwritten requests: one JSON object per line,
// sorted by arrival. Without it, or with -, stdin is read. -c FILE describes the cluster
// (YAML or JSON, unknown fields are errors); without it the built-in cluster is used. -p
// FILE is a policy bundle that replaces the policies of the cluster file, or an EndpointPickerConfig of
// llm-d's router, which replaces admission, routing and flow control. --set PATH=VALUE
// overrides one value, and --set @FILE all values in a flat JSON object. A policy's type
// is set before its parameters, whatever their order. A setting that has no effect but
// differs from its default causes a warning. --print-config writes the resolved
// configuration as JSON, including derived values. --export TARGET prints it for real routers and servers: an
// EndpointPickerConfig (llm-d), command lines of vllm serve (vllm) or the flags of Dynamo's router (dynamo). A
// setting that the target does not have is an error (docs/routers.md). With --replay RUN, both are about the
// configuration of RUN. --list shows the names that files may
// use: policies, signals of policy expressions, models, gpus, anomalies, autoscalers, presets of engine
// versions and latencies. --list policies --format json is the search space, and with
// --space engine that of the engine settings of the cluster. --hardware
// PATH adds your own GPUs and measured coefficients. --operators DIR computes step times from
// the measured kernels in a folder aiconfigurator_core/systems (pip install
// aiconfigurator-core), except where the cluster file names other step times. Files that the
// cluster file names must be below its folder; --allow-paths lets them be anywhere.
//
// --seed seeds the simulation's random streams. --jitter-seed seeds the noise of step
// times (latency.jitter) separately. --horizon 90s ends the run at that simulated time.
// --trace selects the records: minimal (header, metrics, end), decisions (the default;
// also outcomes, decisions and anomalies) or full (also every step of every replica,
// preemptions, all candidates, and snapshots). A snapshot is written when it is first
// used, so it may follow records of later times. Stages that have no choice write no
// decisions: always-admit, constant priority, and flow control that is off. Schedulers and
// preemption policies never write any. --series 1s records the state of
// each deployment at the end of each second. --itl adds all inter-token latencies to each
// outcome. --check verifies invariants during the run, for example that no request is lost
// and no cache block leaks. A violation is a bug in the simulator and ends the run.
// --strict turns warnings about the workload into errors.
//
// The stream goes to stdout, compressed with zstd (in a pipe: stored as zstd data). It is plain
// text on a terminal, with --plain or with BLIS_PLAIN=1. -o FILE writes a file, which appears only when it is
// complete. Its name selects the format: .jsonl is plain text, .jsonl.zst or no suffix is
// compressed, .parquet and .csv are tables of the outcomes, and a name that ends in a slash is a
// folder with Parquet tables of outcomes, decisions, steps, sessions, anomalies and metrics
// (docs/tables.md). Another suffix is an error.
//
// The main job, with built-in defaults:
//
//	$ blis-gen | blis-sim | blis-summarize
//
// A change to the cluster, and the run as a file:
//
//	$ blis-gen --requests 500 -o workload.jsonl.zst
//	$ blis-sim --set deployments.main.replicas=2 --check workload.jsonl.zst -o run.jsonl.zst
//	$ blis-sim workload.jsonl.zst -o run.parquet
//
// The configuration as a starting point for your own:
//
//	$ blis-sim --print-config >cluster.json
//	$ blis-sim -c cluster.json --trace minimal workload.jsonl.zst -o run.jsonl.zst
//	$ blis-sim --list policies
//
// A policy bundle. CEL expressions see the signals of their stage: the request (req), its
// tenant, the cluster, the best candidate (best) and, in scores and filters, one candidate
// (replica):
//
//	$ cat >bundle.yaml <<'END'
//	admission:
//	  type: chain                     # the first policy that does not admit decides
//	  of:
//	    - {type: token-bucket, params: {unit: input_tokens, capacity: 400000, refill_per_s: 200000, per_tenant: true}}
//	    - {type: expression, admit: 'req.tier != "sheddable" || cluster.saturation < 1 ? "admit" : "delay"', params: {delay_ms: 200}}
//	priority: {type: slo-based}
//	scheduler: {type: priority-fcfs}
//	routing:
//	  type: tree
//	  root:
//	    if: req.input_tokens > 4000
//	    then: {use: {type: prefix-affinity, params: {min_match: 0.3}}}
//	    else: {use: {type: expression, filter: replica.kv_util < 0.9, score: replica.prefix_match - 0.05 * replica.inflight}}
//	END
//	$ blis-sim -p bundle.yaml --plain workload.jsonl.zst | jq 'select(.kind == "metrics") | .control.rules'
//	$ blis-sim --list policies --format json | jq '.[] | select(.name == "prefix-affinity") | .params'
//
// Expressions may use rand() and, in admission, priority and routing, variables that they update
// after each decision (state; see docs/concepts.md).
//
// If an expression fails or does not yield a number, the fallback is least-loaded, admit
// or priority 0. The metrics count these fallbacks. If several replicas have the best
// score, one of them is drawn; the parameter tie of a routing policy can be random, first
// (the lowest index) or least-inflight. The run's key contains a digest of the
// policies, without the fields parent, generation and mutations that a bundle may have.
//
// By default, routers see the current state of replicas, except for statistics.
// control_plane.snapshots in the cluster file sets how each field (or default, for all) is
// refreshed: immediate, periodic 50ms, or on-demand 50ms (read when a policy needs it and
// the last value is older). The router's own count of requests in flight
// (replica.inflight) is always current. Prefix matches come from the router's own index of
// each cache, which holds shadow_blocks blocks. It learns of evictions only if
// shadow_evictions is true, after shadow_lag_us. control_plane.flow_control {order: fifo |
// priority | deadline, fairness: none | round-robin, capacity, ttl_us, saturation} queues
// requests before routing while the replicas are saturated. What it has sent counts as
// queued at once. Without it, requests are routed immediately:
//
//	$ blis-sim --set 'control_plane.snapshots.default=periodic 1s' --set 'control_plane.flow_control={order: priority}' workload.jsonl.zst | blis-summarize
//
// The regret of a decision is measured in ms of request latency, not in a policy's score.
// At each routing decision, --counterfactual 3 estimates the latency of the request on
// every candidate, from the true state of the replicas. The regret record lists the three
// with the lowest latency, and the choice. hindsight_ms is the latency of the choice minus that of the
// best candidate. avoidable_ms is the latency of the choice minus that of the candidate
// that the same estimator prefers with only the policy's information. exact:20
// re-simulates the 20 decisions with the highest estimated regret, each with the three
// best other replicas and with the opposite admission verdict. It reports the change in
// met SLO targets and ms, for the request ("own") and for all requests. The latter is
// "insensitive" if it is not larger than in eight controls, in which nothing is overruled but
// one later request has one output token more ("sensitivity"). The metrics say how well the
// estimates rank alternatives (regret.reliability). Each request keeps the random numbers
// that it had in the run. If admission rejected
// requests, or delayed them until they timed out, up to half of the 20 are such
// decisions: those whose requests could have been served soonest, by estimate. Their
// regret is the lost request, without ms. always-admit makes no decisions, so it has no
// opposite. Decision ids select decisions explicitly. --counterfactual-horizon limits the
// simulated time after each decision. scaling:20 simulates the whole run again for 20 changes of the number of
// replicas, each one look of the auto-scaler earlier, one later, and not at this look. scaling_regret records have the
// change in met SLO targets, ms and GPU seconds.
//
// --clairvoyant latency and --clairvoyant targets are reference runs: they route with
// knowledge of all arrivals and output lengths, for the lowest mean E2E latency of all
// requests, or for the most met SLO targets. They choose among ten rules (the policy
// itself, shortest E2E, fewest requests, most cached tokens, least delay for others, …),
// first one for the whole run, then another one in each of 24 windows of arrivals where a
// simulation of the rest of the run shows that all requests together gain. So such a run
// is not worse than the policy; it is not the optimum. Its metrics have a bound that no
// router can beat: each request alone, with all tokens cached that its prompt shares with
// another one. Such a run takes about 30 to 40 times as long. scripts/headroom compares
// routers with both.
//
//	$ blis-sim --clairvoyant latency --plain workload.jsonl.zst | jq 'select(.kind == "metrics") | .e2e.mean, .bound.e2e_mean_ms'
//
//	$ blis-sim --counterfactual exact:2 --plain workload.jsonl.zst | jq 'select(.kind == "regret" and .method == "exact")'
//
// Anomalies are detected from the true state of the replicas and reported as episodes. An
// anomaly record has the type, the place, start and end, the severity (0 to 1) and the
// affected requests; --list anomalies defines the types. The metrics count the anomalies
// of every type, including 0. --trace minimal does not detect them.
//
//	$ blis-sim --set routing.type=always-busiest --plain workload.jsonl.zst | jq 'select(.kind == "anomaly") | [.type, .severity, .text]'
//
// --replay RUN repeats a run. It takes everything from the header of RUN: the resolved
// configuration, seeds, trace level, horizon and counterfactuals. It compares the header
// field by field and all other records byte for byte. If only the formatting of the header
// differs, the changed digest is a warning. The first difference ends the replay with exit
// code 1. The message has the line, the field and both values, and says whether the
// workload differs or the run was modified. A run of another version is replayed with a
// warning. With --set or -p, the replay is a what-if: a new run with these settings and,
// except for --counterfactual, all other settings of RUN. Its header names RUN as its
// parent. Derived values (those that are not set but computed from the model, GPU,
// parallelism or engine preset: step times, max_model_len, defaults) are recomputed from
// the new settings, as in a run without --replay.
//
//	$ blis-sim workload.jsonl.zst -o run.jsonl.zst
//	$ blis-sim --replay run.jsonl.zst workload.jsonl.zst
//	$ blis-sim --replay run.jsonl.zst --set routing.type=random workload.jsonl.zst | blis-summarize
//
// --sweep FILE simulates many configurations in one process, on all cores: all combinations of the
// settings, policies, workloads and seeds in a grid file. --sweep - reads them from stdin, a JSON
// object a line. Each run is the same as a single run of blis-sim with its settings. The output is one
// JSON line a run, with the metrics and, with --fitness FILE or an expression, the score; -o x.csv and
// -o x.parquet are tables with a column for each number. A run that fails is a result with its error;
// the exit code is 1 if all fail. --results DIR keeps each result, so that a sweep that was interrupted
// continues where it was; --keep-runs keeps the runs there, too. --early-stop ends a run once a gate of
// the fitness cannot hold any more, with score 0. --shard K/N is one part of N (docs/sweeps.md). With --export
// TARGET and --fitness, the output is instead the best configurations by mean score,
// --top 5 of them, each with its metrics and its text for the target:
//
//	$ printf 'version: 1\nset: {deployments.main.replicas: [2, 3], routing.type: [least-loaded, weighted]}\nseeds: [0, 1]\n' >grid.yaml
//	$ blis-sim --sweep grid.yaml --trace minimal --results results workload.jsonl.zst -o results.csv
//
// --plan FILE finds the cheapest fleet that serves the workload within limits. The file has the prices of GPUs, other
// settings to try and conditions on the metrics; that everything is served is always one. For each GPU and
// combination of settings the smallest number of replicas is searched. The output is a text, or a document with
// --format json: the answer, the condition that fails with a replica less, the answers for 10 % less and more
// load and for coefficients at the ends of their intervals, the knee (the highest load that the answer serves), a
// curve over the load, and the Pareto front of cost and met targets.
// --results DIR keeps the results of the simulations (docs/planning.md):
//
//	$ printf 'version: 1\ngpus: {H100-SXM-80GB: 2.5}\nset: {deployments.main.engine.max_num_seqs: [64, 256]}\nrequire: [m.ttft.p99 < 500]\n' >plan.yaml
//	$ blis-sim --plan plan.yaml workload.jsonl.zst
//
// A model and a GPU are enough; the rest is derived:
//
//	$ printf 'version: 1\ndeployments: [{id: main, model: Qwen/Qwen3-8B, gpu: H100}]\n' >small.yaml
//	$ blis-sim -c small.yaml --print-config | jq '.deployments[0].computed.kv_blocks'
//
// Exit codes: 0 success, 1 data or I/O error, 2 usage error, 130 or 143 interrupted, 141 stdout
// was closed. If the cluster file does not load, the stream is a single error record and
// the exit code is 1. An error record in the workload is forwarded in the same way.
package main

import (
	_ "embed"
	"os"

	"blis/pkg/cli"
)

//go:embed main.go
var source string

func main() { os.Exit(cli.Sim.Main(source)) }
