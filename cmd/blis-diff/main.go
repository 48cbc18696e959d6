// Blis-diff compares two runs of blis-sim on the same workload, request by request. It
// reports the settings, final states and metrics that differ, with confidence intervals,
// and the first decision that differs, with the signals of both sides. It also compares a
// run with a recording of a real server, and checks whether several runs rank in the order
// of their recordings.
//
//	blis-diff [flags] A B
//	blis-diff --rank [flags] RUN RECORDING RUN RECORDING...
//
// A stream is a file or pipe, compressed or not, or - for stdin (only one of them). A
// recording has any format that blis-gen --import reads. FORMAT:FILE sets the format. recording:DIR is the
// output folder of a load generator.
// FILE#NAME selects one of several runs; for stdin, write -#NAME after --. Differences are
// b - a.
//
// # Two runs
//
// The 95 % confidence interval of a difference comes from a paired block bootstrap.
// Requests are divided into blocks in order of arrival, long enough to contain the
// correlation of neighboring requests. Each of 1000 bootstrap samples draws blocks with
// replacement, the same for both sides. A star marks an interval that excludes 0. The
// result reports the block length. A warning appears if there are too few blocks, or if
// requests are correlated over more than a block. Maxima, percentiles of ITL and metrics
// of replicas have no interval (go doc ./pkg/diff).
//
// Runs of different workloads are rejected. --unpaired compares their metrics as
// independent samples, with wider intervals and without single requests. For runs written
// with --trace minimal, only the metrics are compared. --where selects the requests for
// which a CEL expression over outcomes is true on either side. --strict turns warnings
// about the streams into errors.
//
//	$ blis-gen --requests 2000 --seed 3 -o w.jsonl.zst
//	$ blis-sim w.jsonl.zst -o a.jsonl.zst
//	$ blis-sim --set routing=least-loaded w.jsonl.zst -o b.jsonl.zst
//	$ blis-diff a.jsonl.zst b.jsonl.zst || [ $? = 1 ]
//	$ blis-diff --where 'input_tokens > 1000' --format json a.jsonl.zst b.jsonl.zst >d.json || [ $? = 1 ]
//
// --fail-if is a gate for scripts: a CEL expression over the metrics of both runs, named
// as in blis-summarize --format json, and over their differences:
//
//	a.ttft.p99                  the metric of the first run
//	b.ttft.p99                  the metric of the second run
//	d.ttft.p99.diff             b - a
//	d.ttft.p99.relative_diff    (b - a)/a
//	d.ttft.p99.ci.lo, .ci.hi    the confidence interval of b - a
//
// A gate that depends on a missing number is an error.
//
//	$ blis-diff a.jsonl.zst b.jsonl.zst --fail-if 'd.ttft.p99.ci.lo > 0 && d.ttft.p99.relative_diff > 0.5'
//
// # A run and a recording
//
// Requests are paired by id if the workload was imported from the recording. Otherwise
// they are paired by order of arrival and input length, if at least 90 % of the lengths agree
// and at most 10 % of the requests are missing; else --unpaired is needed. If the recording is
// incomplete, only the common requests are compared, with a warning. For TTFT, TPOT, ITL,
// E2E and queue time the result has the measured and simulated values, the error in %, and
// the interval of the difference, which covers the noise of these requests, and not how much
// larger the error of another workload may be. For single requests it has the bias, the mean absolute
// percentage error, the correlation, and the distance of the distributions. Tables by the
// recording's load stages and by class follow. If a warning says that output tokens are
// miscounted, --output-tokens N sets the number that every request asked for.
//
//	$ cat >server.csv <<'END'
//	arrival_s,input_tokens,output_tokens,ttft_s,e2e_s
//	0.0,500,80,0.020,0.700
//	0.1,900,40,0.040,0.460
//	END
//	$ blis-gen --import recording:server.csv | blis-sim -o run.jsonl.zst
//	$ blis-diff run.jsonl.zst server.csv || [ $? = 1 ]
//
// --rank compares the simulated order of runs with their measured order, by the metric
// --rank-by (ttft.p99, e2e.mean, goodput.ratio). It reports Spearman's and Kendall's rank
// correlation, the number of concordant pairs, the mean gap, and the regret: how far, as
// measured, the run that is best in simulation is from the best one. In a pair of a run
// and a recording, the run is the simulation, in either order. In a pair of two runs, the
// first is. The two streams of a pair must have the same requests.
//
// Exit codes: 0 the same (or --rank succeeded), 1 they differ, 2 a usage error or an
// unreadable stream. With --fail-if: 1 if a gate is true, else 0. 130 or 143 interrupted, 141
// stdout was closed.
package main

import (
	_ "embed"
	"os"

	"blis/pkg/cli"
)

//go:embed main.go
var source string

func main() { os.Exit(cli.Diff.Main(source)) }
