// Blis-diff compares two runs of blis-sim on the same workload, request by request,
// and says what differs: the configuration, how requests ended, which decision was
// the first to differ and what both sides saw then, and all metrics, with
// intervals that say how much of a difference is noise.
//
//	blis-diff [flags] A B
//
// A and B are runs, compressed or not; one may be - for stdin, and both may be
// pipes. Differences are b - a.
//
// The interval of a difference is a paired block bootstrap: requests, in order of
// arrival, are cut into blocks that are long enough for what neighbours have in
// common; blocks are drawn with replacement a thousand times, the same for both
// sides; 95 % of the differences of the draws lie in it. A star marks those that do
// not hold 0. The result says how long the blocks are; of too few of them, and of
// requests that have more in common than blocks can hold, a warning tells. Maxima,
// percentiles of ITL and what only replicas know have no interval (go doc
// ./pkg/diff).
//
// Runs of different workloads are refused; --unpaired compares their metrics all
// the same, with wider intervals and nothing about single requests. Of runs written
// with --trace minimal only the metrics are compared. --where keeps the requests
// for which a CEL expression over outcomes is true in one of the two runs.
//
// --fail-if is a gate for scripts: a CEL expression over a.* and b.*, the metrics of
// both as blis-summarize --format json has them, and d.*: d.ttft.p99.abs is b - a,
// .rel that over a, .lo and .hi its interval. A gate that cannot be decided,
// because a run does not have a number, is an error.
//
//	$ blis-gen --requests 2000 --seed 3 -o w.jsonl.zst
//	$ blis-sim w.jsonl.zst -o a.jsonl.zst
//	$ blis-sim --set routing='{type: least-loaded}' w.jsonl.zst -o b.jsonl.zst
//	$ blis-diff a.jsonl.zst b.jsonl.zst || [ $? = 1 ]
//	$ blis-diff a.jsonl.zst b.jsonl.zst --fail-if 'd.ttft.p99.lo > 0 && d.ttft.p99.rel > 0.5'
//	$ blis-diff --where 'input_tokens > 1000' --format json a.jsonl.zst b.jsonl.zst | jq '.metrics["ttft.p99"]' || [ $? = 1 ]
//
// Exit codes: 0 the same, 1 they differ, 2 trouble: the call was wrong, or a stream
// cannot be read. With --fail-if: 1 if a gate is true, 0 if none is. 130
// interrupted, 141 the reader of stdout went away.
package main

import (
	"os"

	"blis/pkg/cli"
)

func main() { os.Exit(cli.Diff.Main()) }
