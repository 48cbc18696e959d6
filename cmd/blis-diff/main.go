// Blis-diff compares two runs of blis-sim on the same workload, request by request,
// and says what differs: the configuration, how requests ended, which decision was
// the first to differ and what both sides saw then, and all metrics, with
// intervals that say how much of a difference is noise. Or it compares a run with a
// recording of a real server, or says whether several runs are ranked as the
// recordings of them are.
//
//	blis-diff [flags] A B
//	blis-diff --rank [flags] RUN RECORDING RUN RECORDING...
//
// A stream is a file, or - for stdin (one of them), compressed or not; both may be
// pipes. A recording is in any form that blis-gen --import reads (FORMAT:FILE says
// in which, FILE#NAME chooses one of several runs, after -- also -#NAME). Differences
// are b - a.
//
// # Two runs
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
// for which a CEL expression over outcomes is true in one of the two runs. --strict
// makes errors of warnings about the streams.
//
//	$ blis-gen --requests 2000 --seed 3 -o w.jsonl.zst
//	$ blis-sim w.jsonl.zst -o a.jsonl.zst
//	$ blis-sim --set routing='{type: least-loaded}' w.jsonl.zst -o b.jsonl.zst
//	$ blis-diff a.jsonl.zst b.jsonl.zst || [ $? = 1 ]
//	$ blis-diff --where 'input_tokens > 1000' --format json a.jsonl.zst b.jsonl.zst >d.json || [ $? = 1 ]
//
// --fail-if is a gate for scripts: a CEL expression over a.* and b.*, the metrics of
// both as blis-summarize --format json has them, and d.*: d.ttft.p99.abs is b - a,
// .rel that over a, .lo and .hi its interval. A gate that cannot be decided,
// because a run does not have a number, is an error.
//
//	$ blis-diff a.jsonl.zst b.jsonl.zst --fail-if 'd.ttft.p99.lo > 0 && d.ttft.p99.rel > 0.5'
//
// # A run and a recording
//
// Requests are paired by id, as in a run of a workload that blis-gen made of the
// recording, else by order of arrival where there are as many and nine of ten are as
// long; else --unpaired is needed. Of a part of a recording only the requests that are
// in both are compared, and a warning says so. Of each time (TTFT, TPOT, ITL, E2E,
// queue) it shows what was measured and simulated, by how many % the simulation is off,
// the interval of the difference, and of single requests bias, mean error, correlation
// and the distance of the distributions; also by the recording's stages and by class.
// Where output tokens were counted wrong, which a warning tells, --output-tokens N says
// how many all requests asked for.
//
//	$ cat >server.csv <<'END'
//	arrival_s,input_tokens,output_tokens,ttft_s,e2e_s
//	0.0,500,80,0.020,0.700
//	0.1,900,40,0.040,0.460
//	END
//	$ blis-gen --import recording:server.csv | blis-sim -o run.jsonl.zst
//	$ blis-diff run.jsonl.zst server.csv || [ $? = 1 ]
//
// --rank compares how runs rank, by the metric --by (ttft.p99, e2e.mean,
// goodput.ratio), with how what was measured does: Spearman's and Kendall's
// correlation, how many pairs are ordered right, the mean gap, and the regret: how
// much worse than the best the one was measured that simulates best. Of a run and a
// recording the run is the simulation, wherever it stands; of two runs the first is.
// What is no pair, of the same requests, is refused here, too.
//
// Exit codes: 0 the same (or --rank has ranked), 1 they differ, 2 trouble: the call
// was wrong, or a stream cannot be read. With --fail-if: 1 if a gate is true, 0 if
// none is. 130 interrupted, 141 the reader of stdout went away.
package main

import (
	"os"

	"blis/pkg/cli"
)

func main() { os.Exit(cli.Diff.Main()) }
