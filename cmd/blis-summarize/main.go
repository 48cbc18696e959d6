// Blis-summarize says what runs of blis-sim amount to and what they are worth:
// latencies, throughput, goodput, fairness, cache hits, how the requests ended, a
// score. A workload it describes.
//
//	blis-summarize [flags] [RUN...]
//
// A run is a file, NAME=FILE, or stdin (-, or nothing). Several runs stand side by
// side. A file that a benchmark of a real server wrote, in any form that blis-gen
// --list importers names under recording, is summarized as the run that it recorded;
// FORMAT:FILE says in which form, FILE#NAME is one of several in it. What a recording does
// not say (who was admitted, cached, preempted) is absent.
//
// The metrics of a run are its own. --where keeps the outcomes for which a CEL expression is
// true, and --from and --to cut a steady window by arrival: then the metrics
// are computed again, from the outcomes, which the run must hold (blis-sim
// --trace decisions or full).
//
// # Fitness
//
// --fitness EXPRESSION or --fitness FILE (*.yaml, *.json) scores runs: always a number
// in [0, 1), the larger the better. Expressions are CEL over numbers:
//
//	m.ttft.p99 (mean, p50, p90, p95, max; tpot, itl, e2e, queue), m.requests.rejected,
//	m.goodput.ratio, m.throughput.rps, m.kv.prefix_hit_ratio, m.fairness.jain,
//	m.cost.gpu_s, m.cls["batch"]..., m.tenants["t1"]..., m.replicas[0].utilization: what
//	--format json has under metrics; a wrong name is an error that tells the right ones
//	base.*, parent.*: the same of --baseline RUN and --parent RUN
//	p99_ttft_ms, mean_tpot_ms, request_goodput: the names of vllm bench serve
//	ratio(base, x) = base/(base + x), where less is better: 0.5 at parity
//	gain(x, base) = x/(x + base), where more is better
//	soft(x, limit, k) = 1 up to the limit, then exp(-k*(x/limit - 1))
//	attained("class"): the share of its offered requests that met their targets
//	wmean(weight, x, ...), wgeo(weight, x, ...), worst(x, ...), lex(x, ...) (the first by
//	hundredths, the next within a hundredth of it), clamp(x, lo, hi), min, max, abs,
//	exp, log, sqrt, pow
//
// A time that never came (of a run that rejects everything) makes ratio and soft 0,
// and is refused elsewhere in a score. A time is of the requests that got that far: where
// only a share of those that were offered did (m.ttft.coverage), ratio and soft are that
// share of what they would be, so that shedding gains nothing. Gates, objectives and
// features see times as they are. The calls that a broken session did not come to make
// (m.requests.not_issued) were not offered, but m.goodput.ratio and coverages count them as
// missed; m.sessions.attainment divides by sessions.
//
//	version: 1
//	slo: {interactive: {ttft_ms: 500, tpot_ms: 50}}   # other targets than the workload's
//	gates:                                            # all must hold
//	  - {name: served, expr: m.requests.completed >= 0.95 * base.requests.completed}
//	score: |
//	  wmean(0.5, m.goodput.ratio,
//	        0.3, ratio(base.ttft.p99, m.ttft.p99),
//	        0.2, gain(m.throughput.output_tok_s, base.throughput.output_tok_s))
//	aggregate: worst          # of several scenarios: mean, geo, worst, cvar (of cvar_share)
//	objectives: {latency: -m.e2e.p99, cost: -m.cost.gpu_s}   # larger is better
//	features: {hits: m.kv.prefix_hit_ratio}
//	holdout: [night]          # scored, and counts for nothing
//
// Where all gates pass the fitness is 0.1 + 0.9 of the score, else 0.1 or less, by how
// far off the gates are; exactly 0 is only what does not load: a policy, a run that
// is cut short, a fitness that does not fit. Each term is shown with what it loses.
// Without --fitness the score is m.goodput.ratio or, without targets, the share of
// requests that completed.
//
// Runs with one configuration are scenarios of one candidate, named by NAME=FILE or by
// their files. Candidates are ranked by their objectives (Pareto fronts and crowding as in
// NSGA-II); objectives and features are means over scenarios. --baseline and
// --parent may be repeated: each run is compared with that of its workload.
//
// # Workloads
//
// Of a workload it says how many requests and sessions there are, their rate
// over time and how bursty they are (CV of the gaps, Fano factor of the counts a
// minute), how long prompts and answers are and whether one goes with the other,
// how much of the prompts was there before (what a cache that never forgets would
// find), how sessions are built and how much of their own history they send
// again, all by class, tenant and model too; --from and --to cut it. -c FILE adds
// the load on that cluster: the time that its replicas would be busy with full
// batches, over the time offered, of which 1 is saturation (go doc ./pkg/capacity);
// -c "" is the built-in cluster.
//
// # Formats
//
// --format text says of a run what was lost, where the time went and which decisions that
// traces to, the most valuable first: for people and for language models that are to
// change its policies. Requests that missed a target of their SLO class are lost (without
// targets, regret or late first tokens). Patterns are conditions that losing decisions
// meet, each from a fixed list (go doc ./pkg/attribution Conditions): n of N, and by how much
// more often requests lose that meet it. The text is cut to --max-tokens by leaving out
// sections from the end. --strategy says what is told (issue_focused, decision_audit,
// counterfactual, pattern_mining), --examples of how many decisions, --focus in which
// parts of the time losses come first (queue, decode), --component whose decisions it is
// about (routing, admission). It holds facts; --hints adds advice. --explain asks about
// one decision (dec-000913), one request, or a time (11.8s:14.2s).
//
// --format table is all numbers for people, markdown the same for reports, csv every
// number, json one document for programs (schemas/summary.schema.json): all its keys
// are always there, null where there is nothing to tell. What it says is of the
// candidate whose run is named first; candidates has all. -o FILE writes a file that
// appears only when it is complete. --strict makes errors of warnings.
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
// Exit codes: 0 ok, 1 the data or the input and output failed (a truncated run
// too), 2 the call was wrong, 130 interrupted, 141 the reader of stdout went
// away. A run that holds an error record, because a file of an earlier stage
// did not load, is summarized as that, and the code is 0.
package main

import (
	"os"

	"blis/pkg/cli"
)

func main() { os.Exit(cli.Summarize.Main()) }
