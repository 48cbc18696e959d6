// Blis-sim plays a workload on a simulated cluster of LLM inference servers and
// writes the run: what became of every request, and metrics over all.
//
//	blis-sim [flags] [WORKLOAD]
//
// WORKLOAD is a stream of blis-gen, or requests made by hand, one JSON object a
// line, sorted by arrival; without it, or with -, stdin is read. The cluster
// comes from -c FILE (YAML or JSON, strictly read), or is the built-in one.
// -p FILE is a bundle of policies in the place of its own; --set PATH=VALUE
// changes one value, --set @FILE those of a flat JSON object (a policy's type comes
// before its parameters, wherever it stands); what has no effect, and is not as by
// default, is a warning. --print-config writes all of it as JSON, with what follows
// from it. --list names what files may name: policies, signals that their
// expressions see, models, gpus, anomalies, presets of engine versions, latencies; --format
// json of policies is their search space. --hardware PATH adds GPUs and measured
// coefficients of your own.
//
// --seed seeds the simulation's own random streams, --jitter-seed that of the
// scatter of step times (latency.jitter) alone. --horizon 90s ends the run
// at that simulated time. --trace says how much the run holds: minimal (header,
// metrics, end), decisions (also outcomes, decisions and anomalies; the default)
// or full (also every step of every replica, preemptions, all candidates, and snapshots,
// which stand where they are known to matter and so after records of later times).
// Stages that have nothing to decide write no decision: admission that is always-admit,
// priority that is constant, a router without flow control; schedulers and preemption
// policies never do. --itl adds the gaps between
// tokens to each outcome. --check holds the run to its laws while it runs:
// nothing lost, nothing early, no block of cache leaked; a broken law is a bug and
// ends the run. --strict makes errors of warnings about the workload.
//
// The stream goes to stdout, compressed with zstd; plain on a terminal, with
// --plain or with BLIS_PLAIN=1. -o FILE writes a file that appears only when it is
// complete: plain if its name ends in .jsonl, a table of the outcomes if it
// ends in .parquet, a folder of the tables of outcomes and of decisions if it ends
// in a slash (schemas/tables.md says what columns they have).
//
// The main job, on built-in defaults:
//
//	$ blis-gen | blis-sim | blis-summarize
//
// A change to the cluster, and the run as a file:
//
//	$ blis-gen --requests 500 -o workload.jsonl.zst
//	$ blis-sim --set deployments.main.replicas=2 --check workload.jsonl.zst -o run.jsonl.zst
//	$ blis-sim workload.jsonl.zst -o run.parquet
//
// The configuration as a start for an own one:
//
//	$ blis-sim --print-config >cluster.json
//	$ blis-sim -c cluster.json --trace minimal workload.jsonl.zst -o run.jsonl.zst
//	$ blis-sim --list policies
//
// A bundle of policies. CEL expressions see the signals of their place: those of
// the request (req), its tenant, the cluster, the best of the candidates (best)
// and, in scores and filters, of one candidate (replica):
//
//	$ cat >bundle.yaml <<'END'
//	admission:
//	  type: chain                     # the first that does not admit decides
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
// An expression that fails or yields no number decides nothing: least-loaded,
// admit or 0 do, and the metrics count it. The digest of the policies, without
// parent, generation and mutations that a bundle may carry, is in the run's key.
//
// What routers see of replicas is as it is, but for statistics. control_plane.snapshots
// in the cluster file says otherwise, of each field or by default of all: immediate,
// periodic 50ms, or on-demand 50ms (read when somebody looks, if it is older).
// What the router sent itself (replica.inflight) is never old. Prefixes it knows by a
// shadow of each cache, of shadow_blocks, which does not know what was evicted
// unless shadow_evictions is true, and then shadow_lag_us later.
// control_plane.flow_control {order: fifo | priority | deadline, fairness: none |
// round-robin, capacity, ttl_us, saturation} is a queue in front of routing while
// the replicas are saturated; without it there is none:
//
//	$ blis-sim --set 'control_plane.snapshots.default=periodic 1s' --set 'control_plane.flow_control={order: priority}' workload.jsonl.zst | blis-summarize
//
// What a decision cost is told in ms of the requests' own time, not in a policy's
// score. --counterfactual 3 estimates at each routing decision, by the true state of
// the replicas, what the three best would have made of the request: hindsight_ms is
// what the choice lost against the best one, avoidable_ms what it lost against the
// one that the same estimator prefers if it knows no more than the policy. exact:20
// plays the run again from the 20 decisions that lost most by estimate, with the
// three best other replicas each and the opposite verdict of admission, and says what
// that changes for the request and for all: targets met, ms. Where admission refused
// requests (or put them off until they timed out) up to half of the 20 are such
// decisions, of those that would have been served soonest by estimate: what is lost is
// the request, which has no ms. Under always-admit nobody decides to admit, and there is
// no opposite. Ids name decisions;
// --counterfactual-horizon bounds how far they are played. --clairvoyant sends each
// request to where it ends first by the true state and the true length of its answer,
// whatever the policy says: a run to compare with, as scripts/headroom does.
//
//	$ blis-sim --counterfactual exact:2 --plain workload.jsonl.zst | jq 'select(.kind == "regret" and .method == "exact")'
//
// What should not happen, on the true state of the replicas, is told as episodes: a
// record anomaly says what, where, from when to when, how severe it was (0 to 1) and
// which requests it met; --list anomalies says what counts as one. The metrics count
// them, 0 where none was found. A run with --trace minimal does not look for them.
//
//	$ blis-sim --set routing.type=always-busiest --plain workload.jsonl.zst | jq 'select(.kind == "anomaly") | [.type, .severity, .text]'
//
// A run can be played again. --replay RUN takes everything from the header of that run
// (the configuration as it was resolved, seeds, trace level, horizon, counterfactuals),
// compares the header field by field and all other records byte for byte (other spaces
// in the header are a warning: its digest is another one), and ends with 1 at the first
// difference: the line, the field, both values, and whether the workload is another one
// or the run was changed since. A run of another version is replayed with a warning.
// With --set or -p it is a what-if: a run of its own, with the other
// settings of the first one but for --counterfactual, whose header names its parent.
// What nobody stated and follows from the model, the GPU, the parallelism or the preset
// of the engine (derived in the configuration: step times, max_model_len, defaults)
// follows from the new ones where these are others, as in a call without --replay.
//
//	$ blis-sim workload.jsonl.zst -o run.jsonl.zst
//	$ blis-sim --replay run.jsonl.zst workload.jsonl.zst
//	$ blis-sim --replay run.jsonl.zst --set routing.type=random workload.jsonl.zst | blis-summarize
//
// A model and a GPU are enough; the rest follows from them:
//
//	$ printf 'version: 1\ndeployments: [{id: main, model: Qwen/Qwen3-8B, gpu: H100}]\n' >small.yaml
//	$ blis-sim -c small.yaml --print-config | jq '.deployments[0].computed.kv_blocks'
//
// Exit codes: 0 ok, 1 the data or the input and output failed, 2 the call was
// wrong, 130 interrupted, 141 the reader of stdout went away. A cluster file
// that does not load writes a stream of one error record and ends with 1; an error
// record in the workload is passed on likewise.
package main

import (
	"os"

	"blis/pkg/cli"
)

func main() { os.Exit(cli.Sim.Main()) }
