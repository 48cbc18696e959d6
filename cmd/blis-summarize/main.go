// Blis-summarize computes the metrics of blis-sim runs, scores the runs, and explains what was lost and why.
// It also describes workloads.
//
//	blis-summarize [flags] [RUN...]
//
// A run is a file, NAME=FILE, or stdin (-, or no argument). Several runs are shown side by side. The result
// of a benchmark of a real server (a recording) is summarized as a run, too. blis-gen --list importers shows
// its formats. FORMAT:FILE sets the format. FILE#NAME selects one of several recordings in a file. Metrics
// that are not recorded (admissions, cache hits, preemptions) are missing.
//
// The metrics come from the run. --where keeps the outcomes for which a CEL expression is true. --from and
// --to keep the requests that arrive in a time window. Each of these recomputes the metrics from the
// outcomes, so the run must contain outcomes (blis-sim --trace decisions or full).
//
// # Fitness
//
// --fitness EXPRESSION or --fitness FILE (*.yaml, *.json) scores runs. A score is a number in [0, 1); higher
// is better. Expressions are in CEL, over numbers:
//
//	m.ttft.p99 (mean, p50, p90, p95, max; tpot, itl, e2e, queue), m.requests.rejected,
//	m.goodput.ratio, m.throughput.rps, m.kv.prefix_hit_ratio, m.fairness.jain,
//	m.cost.gpu_s, m.cls["batch"]..., m.tenants["t1"]..., m.replicas[0].utilization: all
//	metrics of --format json; an unknown name is an error that lists the valid ones
//	base.*, parent.*: the same metrics of --baseline RUN and --parent RUN
//	p99_ttft_ms, mean_tpot_ms, request_goodput: metrics as named by vllm bench serve
//	ratio(base, x) = base/(base + x), lower is better: 0.5 at parity
//	gain(x, base) = x/(x + base), higher is better: 0.5 at parity
//	soft(x, limit, k) = 1 up to the limit, then exp(-k*(x/limit - 1))
//	attained("class"): the share of the class's offered requests that met their targets
//	wmean(weight, x, ...), wgeo(weight, x, ...), worst(x, ...), lex(x, ...) (the first in
//	hundredths, ties broken by the next), clamp(x, lo, hi), min, max, abs, exp, log,
//	sqrt, pow
//
// Rejecting requests does not improve a score: ratio and soft are multiplied by the share of offered
// requests that have the latency (m.ttft.coverage). If no request has it, ratio and soft are 0; elsewhere in
// a score, a missing latency is an error. Gates, objectives and features use latencies unchanged. Calls that
// a broken session never issued (m.requests.not_issued) are not offered, but m.goodput.ratio and coverages
// count them as missed. m.sessions.attainment is the share of sessions that met their targets.
//
//	version: 1
//	slo: {interactive: {ttft_ms: 500, tpot_ms: 50}}   # override the workload's targets
//	gates:                                            # all must hold
//	  - {name: served, expr: m.requests.completed >= 0.95 * base.requests.completed}
//	score: |
//	  wmean(0.5, m.goodput.ratio,
//	        0.3, ratio(base.ttft.p99, m.ttft.p99),
//	        0.2, gain(m.throughput.output_tok_s, base.throughput.output_tok_s))
//	aggregate: worst          # of several scenarios: mean, geo, worst, cvar (of cvar_share)
//	objectives: {latency: -m.e2e.p99, cost: -m.cost.gpu_s}   # higher is better
//	features: {hits: m.kv.prefix_hit_ratio}
//	holdout: [night]          # scored, but does not count
//
// If all gates pass, the fitness is 0.1 + 0.9 times the score. If one fails, it is at most 0.1; it is lower
// the farther the gates are from passing. It is exactly 0 only if something does not load: a policy, a
// truncated run, a fitness that does not fit the run. The output shows how much each term loses. Without
// --fitness, the score is m.goodput.ratio or, without targets, the share of completed requests.
//
// Runs with the same configuration are scenarios of one candidate, named by NAME=FILE or by their files.
// Candidates are ranked by their objectives (Pareto fronts and crowding distance, as in NSGA-II). Objectives
// and features are means over scenarios. --baseline and --parent may be repeated: each run is compared with
// the one that has the same workload.
//
// # Workloads
//
// For a workload, the output has the numbers of requests and sessions, their rate over time, their
// burstiness (CV of interarrival times, Fano factor of the counts per minute), the lengths of prompts and
// outputs and their correlation, the share of prompt tokens that an infinite prefix cache would hit, the
// structure of sessions, and how much of its own history a session resends. All of it is also broken down by
// class, tenant and model. --from and --to select a time window. -c FILE adds the load on that cluster: how
// long full batches would keep its replicas busy, divided by the duration. 1 is saturation (go doc
// ./pkg/capacity). -c "" is the built-in cluster.
//
// # Formats
//
// --format text explains a run to people, and to language models that improve its policies: what was lost,
// where the time went, and which decisions caused it. The most important facts come first. The loss is the
// requests that missed a target of their SLO class; without targets, it is regret or late first tokens.
// Patterns are conditions from a fixed list (go doc -u ./pkg/attribution conditions) that lost requests
// match. Each has its counts and its lift: how much more often matching requests are lost than others. To
// fit in --max-tokens, the text omits sections from the end. --strategy selects its content (issue_focused,
// decision_audit, counterfactual, pattern_mining), --examples the number of decisions, --focus the parts of
// the latency whose losses come first (queue, decode), and --component the component to describe (routing,
// admission). The text states facts; --hints adds advice. --explain describes one decision (dec-000913), one
// request, or a time window (11.8s:14.2s).
//
// --format table prints all numbers for people, markdown the same for reports, csv every number, and json
// one document for programs (schemas/summary.schema.json). All keys of the document are always present; a
// missing value is null. The document describes the candidate of the first run; the key candidates has all.
// -o FILE writes a file that appears only when it is complete. --strict turns warnings into errors.
//
//	$ blis-gen --requests 500 | blis-sim -o run.jsonl.zst
//	$ blis-summarize run.jsonl.zst
//	$ blis-summarize --where 'input_tokens > 500' --format json run.jsonl.zst
//	$ blis-summarize --from 2s --to 8s run.jsonl.zst
//	$ blis-summarize --strategy decision_audit --examples 2 --hints run.jsonl.zst
//	$ blis-summarize --explain dec-000042 run.jsonl.zst
//	$ blis-summarize --explain 2s:4s run.jsonl.zst
//	$ blis-summarize --component routing --focus queue,prefill --max-tokens 1500 run.jsonl.zst
//	$ blis-gen --scenario retrieval | blis-summarize -c ""
//	$ blis-gen --requests 500 | blis-sim --set routing='{type: random}' -o old.jsonl.zst
//	$ blis-summarize --fitness 'ratio(base.ttft.p99, m.ttft.p99)' --baseline old.jsonl.zst run.jsonl.zst
//	$ blis-summarize --format csv new=run.jsonl.zst old=old.jsonl.zst
//
// Exit codes: 0 ok; 1 an error of data, input or output (also a truncated run); 2 a usage error; 130
// interrupted; 141 stdout was closed. If a tool earlier in the pipeline could not load a file, the run has
// an error record. Such a run is summarized as a failure, with code 0.
package main

import (
	"os"

	"blis/pkg/cli"
)

func main() { os.Exit(cli.Summarize.Main()) }
