// Blis-summarize reports the metrics of simulated runs, scores the runs, and explains why requests missed their
// latency targets. It also describes workloads.
//
//	blis-summarize [flags] [STREAM...]
//
// BLIS simulates clusters of LLM inference servers. A workload is a list of requests from blis-gen. A run is the
// record of a simulation by blis-sim: metrics, the outcome of each request, and decisions of policies (admission,
// priority, routing). A recording is the result of a benchmark of a real server, treated like a run. A STREAM is:
//
//	FILE, NAME=FILE    a run, a recording or, as the only stream, a workload; the output shows NAME
//	-, or no STREAM    stdin
//	FORMAT:FILE        a recording; by default, its FORMAT (blis-gen --list importers) is detected
//	FILE#NAME          one of several recordings in a file
//	FOLDER, X.parquet  the tables of a run, written by blis-sim -o FOLDER/ or -o X.parquet
//
// Metrics that a recording lacks, such as cache hits, are missing. --output-tokens N sets the output length of every
// completed request of recordings, for clients that miscounted it.
//
// The metrics of a run come from blis-sim. These flags compute them again, from the outcomes of selected requests
// (recorded by blis-sim --trace decisions or full):
//
//	--where 'ttft_ms > 200'    requests for which a CEL expression (https://cel.dev) is true
//	--from 30s, --to 5m        requests, also of a workload, that arrive in the time window [30s, 5m)
//
// --merge computes the metrics of a fleet of independent cells from the runs of all shards of one workload
// (blis-gen --shard), which must have the same configuration. Latencies, goodput and cost are those of all requests;
// metrics of replicas and explanations are in the summaries of the runs:
//
//	$ for k in 1 2; do blis-gen --shard $k/2 --requests 200 | blis-sim -o cell-$k.jsonl.zst; done
//	$ blis-summarize --merge cell-1.jsonl.zst cell-2.jsonl.zst
//
// # Fitness
//
// The fitness of a run is a number in [0, 1) that a policy search can maximize. Tables call it score. It is computed
// from a score expression in [0, 1) and from gates, which are conditions:
//
//	all gates hold    0.1 + 0.9*score
//	a gate fails      0.1*(1 - d), where d is the mean distance of all gates, at most 0.999. A distance
//	                  is 0 if the gate holds, and |a - b|/(|a| + |b|) if it compares a with b and fails
//	no score          0: a policy does not load, the run is truncated, or the score has no value
//
// Without --fitness, the score is m.goodput.ratio: the share of requests that met the SLO targets of their class. If
// no request has targets, it is the share of completed requests. --fitness is another score expression in CEL, or a
// file (*.yaml, *.json). Expressions can contain the following (an unknown name is an error that lists all):
//
//	m.ttft.p99          a metric of the run, in ms. --format json lists all below "metrics", such as
//	                    m.tpot.mean, m.itl.p90, m.queue.max, m.requests.rejected, m.cost.gpu_s,
//	                    m.sessions.attainment, m.tenants["t1"].e2e.p50, m.replicas[0].utilization
//	base.*, parent.*    the same metrics of the runs --baseline RUN and --parent RUN
//	p99_ttft_ms         m.ttft.p99 by its name in vllm bench serve; also mean_tpot_ms, ...
//	attained("batch")   m.cls["batch"].goodput.ratio
//	ratio(ref, x)       ref/(ref + x), where lower is better: 0.5 if x equals ref
//	gain(x, ref)        x/(x + ref), where higher is better: 0.5 if x equals ref
//	soft(x, limit, k)   1 up to the limit, then exp(-k*(x/limit - 1))
//	wmean(w, x, ...)    mean of the values x with the weights w; wgeo(w, x, ...) is the geometric mean
//	lex(x, y, ...)      orders by x, rounded down to 0.01, then by y: lex(0.519, 0.4) = 0.51 + 0.004
//	served(m.ttft.p99)  the percentile of the served requests alone; see below
//	worst(x, ...) (the minimum), clamp(x, lo, hi), min, max, abs, exp, log, sqrt, pow
//
// Serving less does not improve a score. Scores, gates and objectives read TTFT, TPOT and E2E of the requests whose
// class has a target for them, or of all if no class has one (m.targeted.ttft has these numbers where they differ from
// m.ttft). In percentiles, requests that were not served (rejected, timed out, failed, unfinished), and calls of a
// session that were not issued after one failed (m.requests.not_issued), count as infinite: a term is then 0, a gate
// fails, and an objective has no value. In means they count as long as the whole run. served(m.ttft.p99) is that of the
// served requests of all classes. A score can contain a latency only inside ratio or soft, which multiply it by the
// share of the requests that have it. There are warnings about terms that are easy to improve: m.queue does not contain
// delays before the queue, cost falls if less is served, and so on. Keep a gate on what is served, and one on
// retries: clients may send a rejected request again. A fitness file:
//
//	version: 1
//	slo: {interactive: {ttft_ms: 500, tpot_ms: 50}}   # replaces the workload's targets of this class
//	weights: {interactive: 2}   # of classes in m.goodput.ratio; default 1
//	gates:
//	  - {name: served, expr: m.requests.completed >= base.requests.completed}
//	  - {name: at once, expr: m.requests.retries <= base.requests.retries}
//	score: wmean(0.6, m.goodput.ratio, 0.4, ratio(base.ttft.p99, m.ttft.p99))
//	aggregate: worst   # combines scenarios: mean (default), geo, worst or cvar (mean of the worst)
//	cvar_share: 0.25   # share of the scenarios that cvar averages
//	objectives: {latency: -m.e2e.p99, cost: -m.cost.gpu_s}   # higher is better; they rank candidates
//	features: {hits: m.kv.prefix_hit_ratio}                  # only shown
//	holdout: [night]   # scenarios that are scored, but do not count
//
// A term is an argument of wmean, wgeo, worst or lex, or a summand. The output has a row for each term. The column
// "lost" is how much the fitness would rise if the term had its ideal value.
//
// A candidate is one configuration of blis-sim. Its runs on different workloads are its scenarios, named like the
// streams. Objectives and features are means over scenarios. Objectives rank candidates by Pareto front and crowding
// distance (NSGA-II). Of several --baseline or --parent, each run is compared with the one of its workload.
//
// # Rows of the output for a workload
//
//	rate, bursts    arrivals/s; CV of the interarrival times; Fano factor of the counts per minute
//	prefixes        the share of prompt tokens that an infinite prefix cache would hit
//	own history     the share of prompt tokens that an earlier call of the same session had
//	tokens          lengths of prompts and outputs, their correlation; also by class, tenant, model
//	sessions        model calls, tool calls, longest chain, parallel calls, think times, tool times
//	load            with -c FILE, a cluster file (-c "" is the built-in cluster): model calls/s, divided
//	                by the cluster's maximum; 1 is saturation (go doc ./pkg/capacity). Files that it names must
//	                be below its folder; --allow-paths lets them be anywhere
//
// # Formats
//
//	text               explains a run (the worst scenario of a candidate) to people and language models;
//	                   several candidates are shown as a table
//	table, markdown    the main numbers; several runs are shown side by side
//	csv                every number: a row for each metric, a column for each run
//	json               a document for programs (schemas/summary.schema.json), on the candidate of the
//	                   first run; "candidates" lists all. A missing metric is null
//
// Terms of the text, and flags that change it. --hints adds advice, with a command that simulates it where settings
// can express it; the JSON document has these as objects under hints. --try WORKLOAD simulates the first three, or
// as many as have 50,000 requests in total if that is more, and reports the measured gain of each.
//
//	lost              a request that missed its SLO targets; without targets, one with regret; without
//	                  regret, one with a TTFT above 5 times the median, or that did not complete
//	regret            estimated latency on the chosen replica minus the best (blis-sim --counterfactual)
//	pattern           a condition that many lost requests match, such as burst or long_prompt
//	lift              the share of lost requests among those that match, divided by that of the others;
//	                  a pattern with a low lift says how many requests would meet their targets without
//	                  the time that its condition took
//	--strategy NAME   issue_focused: the largest losses (default); decision_audit: decisions by rule;
//	                  counterfactual: regret; pattern_mining: all conditions
//	--component NAME  one component only (routing, admission), with definitions of its conditions
//	--focus PART,...  first the patterns with losses in these parts of the latency (queue, decode)
//	--max-tokens N    omits sections from the end to fit N tokens; --examples N: at most N decisions
//	--explain WHAT    one decision (dec-000913), one request (its id), the request at a
//	                  percentile of TTFT (p99), or a time window (11.8s:14.2s)
//
// # Report and timeline
//
// --html FILE also writes a report with figures of up to 8 runs, one file for browsers: latencies, load, replicas, the
// worst requests, decisions, cost and differences with confidence intervals (docs/report.md).
//
// --plot FIGURE prints one figure instead of the summary, such as the distribution of TTFT or the requests in the
// system over time, and --svg FILE also writes it as SVG (docs/report.md).
//
// --perfetto FILE also writes the run as a timeline for ui.perfetto.dev: requests in queues and batches, decisions,
// counters and, for a run with --trace full, steps (docs/timeline.md).
//
//	$ blis-gen --requests 500 | blis-sim -o run.jsonl.zst
//	$ blis-summarize run.jsonl.zst
//	$ blis-summarize --where 'input_tokens > 500' --from 2s --to 8s --format json run.jsonl.zst
//	$ blis-summarize --explain dec-000042 run.jsonl.zst
//	$ blis-summarize --html report.html run.jsonl.zst
//	$ blis-summarize --plot ttft --svg ttft.svg run.jsonl.zst
//	$ blis-summarize --perfetto trace.json.gz run.jsonl.zst
//	$ blis-summarize --component routing --focus queue --examples 2 --max-tokens 500 run.jsonl.zst
//	$ blis-gen --scenario retrieval | blis-summarize -c ""
//	$ blis-gen --requests 500 | blis-sim --set routing=random -o old.jsonl.zst
//	$ cat >fitness.yaml <<'END'
//	version: 1
//	gates:
//	  - {name: served, expr: m.requests.completed >= base.requests.completed}
//	  - {name: at once, expr: m.requests.retries <= base.requests.retries}
//	score: ratio(base.ttft.p99, m.ttft.p99)
//	END
//	$ blis-summarize --fitness fitness.yaml --baseline old.jsonl.zst run.jsonl.zst
//	$ blis-summarize --format csv new=run.jsonl.zst old=old.jsonl.zst
//
// -o FILE writes a file that appears only when it is complete. --strict turns warnings about the streams into errors.
// Exit codes: 0 ok; 1 invalid data (also a truncated run), or I/O failed; 2 a usage error; 130 or 143 interrupted;
// 141 stdout was closed. With --format json, invalid data also give a document with the fitness 0. If blis-gen or
// blis-sim cannot load a file, its stream has an error record. This is reported with the fitness 0 and exit code 0.
package main

import (
	_ "embed"
	"os"

	"blis/pkg/cli"
)

//go:embed main.go
var source string

func main() { os.Exit(cli.Summarize.Main(source)) }
