// Blis-summarize computes the metrics of runs of blis-sim, scores them, and explains what was lost and
// why. It also describes workloads.
//
//	blis-summarize [flags] [RUN...]
//
// A run is a file, NAME=FILE, or stdin (-, or no argument). Several runs are shown side by side. A file
// that a benchmark of a real server wrote, in any form that blis-gen --list importers lists under
// recording, is summarized as a run. FORMAT:FILE gives the form, FILE#NAME selects one of several
// recordings in a file. What a recording does not contain (admissions, cache hits, preemptions) is
// missing.
//
// The metrics come from the run. --where keeps the outcomes for which a CEL expression is true, and
// --from and --to cut a time window by arrival. The metrics are then recomputed from the outcomes, which
// the run must contain (blis-sim --trace decisions or full).
//
// # Fitness
//
// --fitness EXPRESSION or --fitness FILE (*.yaml, *.json) scores runs. A score is a number in [0, 1),
// higher is better. Expressions are CEL over numbers:
//
//	m.ttft.p99 (mean, p50, p90, p95, max; tpot, itl, e2e, queue), m.requests.rejected,
//	m.goodput.ratio, m.throughput.rps, m.kv.prefix_hit_ratio, m.fairness.jain,
//	m.cost.gpu_s, m.cls["batch"]..., m.tenants["t1"]..., m.replicas[0].utilization: all
//	metrics of --format json; a wrong name is an error that lists the right ones
//	base.*, parent.*: the same metrics of --baseline RUN and --parent RUN
//	p99_ttft_ms, mean_tpot_ms, request_goodput: the names of vllm bench serve
//	ratio(base, x) = base/(base + x), lower is better: 0.5 at parity
//	gain(x, base) = x/(x + base), higher is better: 0.5 at parity
//	soft(x, limit, k) = 1 up to the limit, then exp(-k*(x/limit - 1))
//	attained("class"): the share of its offered requests that met their targets
//	wmean(weight, x, ...), wgeo(weight, x, ...), worst(x, ...), lex(x, ...) (the first in
//	hundredths, ties broken by the next), clamp(x, lo, hi), min, max, abs, exp, log,
//	sqrt, pow
//
// Rejecting requests does not improve a score. A missing time (of a run that rejects everything) makes
// ratio and soft 0, and is an error elsewhere in a score. Where only a share of the offered requests has
// a time (m.ttft.coverage), ratio and soft are multiplied by that share. Gates, objectives and features
// read times unchanged. Calls that a broken session did not issue (m.requests.not_issued) are not offered,
// but m.goodput.ratio and coverages count them as missed; m.sessions.attainment is the share of sessions.
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
// If all gates pass, the fitness is 0.1 + 0.9 times the score. If one fails, it is at most 0.1, lower with
// the distance of the gates from passing. It is exactly 0 only if something does not load: a policy, a
// truncated run, a fitness that does not fit the run. Each term is shown with what it loses. Without
// --fitness the score is m.goodput.ratio or, without targets, the share of completed requests.
//
// Runs with the same configuration are scenarios of one candidate, named by NAME=FILE or by their files.
// Candidates are ranked by their objectives (Pareto fronts and crowding as in NSGA-II); objectives and
// features are means over scenarios. --baseline and --parent may be repeated: each run is compared with
// the one that has its workload.
//
// # Workloads
//
// For a workload it reports the numbers of requests and sessions, their rate over time, their burstiness
// (CV of interarrival times, Fano factor of the counts per minute), the lengths of prompts and outputs
// and their correlation, the share of prompts that an infinite prefix cache would hold, and how sessions
// are built and how much of their own history they send again, all by class, tenant and model too. --from
// and --to cut it. -c FILE adds the load on that cluster: the time that its replicas would be busy with
// full batches, over the duration; 1 is saturation (go doc ./pkg/capacity). -c "" is the built-in
// cluster.
//
// # Formats
//
// --format text explains a run, for people and for language models that are to improve its policies: what
// was lost, where the time went and which decisions caused it, the most valuable facts first. The loss is
// the requests that missed a target of their SLO class; without targets it is regret or late first
// tokens. Patterns are conditions from a fixed list (go doc -u ./pkg/attribution conditions) that losing
// decisions match, each with its counts and its lift: how much more often matching requests lose. The
// text is cut to --max-tokens by leaving out sections from the end. --strategy selects its contents
// (issue_focused, decision_audit, counterfactual, pattern_mining), --examples the number of decisions,
// --focus the parts of the time whose losses come first (queue, decode), --component the decisions that
// it is about (routing, admission). It contains facts; --hints adds advice. --explain describes one
// decision (dec-000913), one request, or a time window (11.8s:14.2s).
//
// --format table prints all numbers for people, markdown the same for reports, csv every number, json one
// document for programs (schemas/summary.schema.json). All keys of the document are always present, null
// where there is no value. It is about the candidate whose run is named first; the key candidates has
// all. -o FILE writes a file that appears only when it is complete. --strict turns warnings into errors.
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
// interrupted; 141 stdout was closed. A run with an error record, because a file of an earlier stage did
// not load, is summarized as a failure with code 0.
package main

import (
	"os"

	"blis/pkg/cli"
)

func main() { os.Exit(cli.Summarize.Main()) }
