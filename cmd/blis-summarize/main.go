// Blis-summarize says what a run of blis-sim amounts to: latencies, throughput,
// goodput, fairness, cache hits, and how the requests ended. A workload it
// describes.
//
//	blis-summarize [flags] [STREAM]
//
// STREAM is one of blis-sim or blis-gen; without it, or with -, stdin is read. A
// file that a benchmark of a real server wrote, in any form that blis-gen --list
// importers names under recording, is summarized as the run that it recorded;
// FILE#NAME is one of several in it.
//
// The metrics of a run are its own. --where keeps the outcomes for which a CEL expression is
// true, and --from and --to cut a steady window by arrival: then the metrics
// are computed again, from the outcomes, which the run must hold (blis-sim
// --trace decisions or full).
//
// Of a workload it says how many requests and sessions there are, their rate
// over time and how bursty they are (CV of the gaps, Fano factor of the counts a
// minute), how long prompts and answers are and whether one goes with the other,
// how much of the prompts was there before (what a cache that never forgets would
// find), how sessions are built and how much of their own history they send
// again, all by class, tenant and model too; --from and --to cut it. -c FILE adds
// the load on that cluster: the time that its replicas would be busy with full
// batches, over the time offered, of which 1 is saturation (go doc ./pkg/load);
// -c "" is the built-in cluster.
//
// --format text says of a run what was lost, where the time went and which decisions that
// traces to, the most valuable first: for people and for language models that are to
// change its policies. Requests that missed a target of their SLO class are lost (without
// targets, regret or late first tokens). Patterns are conditions that losing decisions
// meet, each from a fixed list (go doc ./pkg/insight Conditions): n of N, and by how much
// more often requests lose that meet it. The text is cut to --max-tokens by leaving out
// sections from the end. --strategy says what is told (issue_focused, decision_audit,
// counterfactual, pattern_mining), --examples of how many decisions, --focus in which
// parts of the time losses come first (queue, decode), --component whose decisions it is
// about (routing, admission). It holds facts; --hints adds advice. --explain asks about
// one decision (dec-000913), one request, or a time (11.8s:14.2s).
//
// --format table is all numbers for people, --format json is one JSON document for programs.
// -o FILE writes a file that appears only when it is complete. --strict makes
// errors of warnings.
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
