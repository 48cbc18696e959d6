// Blis-calibrate fits the coefficients of a latency model to recordings of a real server, and
// reports their confidence intervals and the errors of a simulation on held-out data.
//
//	blis-calibrate [flags] RECORDING...
//
// A RECORDING is the output of a benchmark, a server or a profiler, in the formats of
// blis-gen --import recording:FILE or as a table of measured steps. The format is detected;
// FORMAT:FILE forces one, FILE#NAME selects runs, and - is stdin (after --, also -#NAME).
// Several recordings must be of one setup: that of the cluster file -c FILE, with the recorded
// engine settings and, if it has several deployments, --model; or --model, --gpu and --tp with
// default settings.
//
// What is fitted depends on what was recorded:
//
//	steps          beta, by regression; or a table, if steps are a grid and it has lower
//	               held-out errors
//	server spans   alpha from the time before the queue, beta from prefill and decode times
//	client times   alpha[0] and beta, with the simulator in the loop: the recording is replayed
//	               until simulated clients measure what the real ones did. alpha[1] and alpha[2]
//	               are 0, as clients do not distinguish them. beta[3] is physics, or 0 if contexts
//	               vary and that lowers the prediction error on held-out segments. alpha[3], the
//	               delay of tokens per decoding sequence, is present if it lowers that error
//
// Repeated prompts are replayed as such. Seconds in which the server stalled while it warmed up,
// at the start of a run, are excluded, with a warning. Batches of similar sizes say little about
// the slope beta[2]: it is combined with that of a roofline, weighted by their errors, with a
// warning if they disagree. Coefficients that are not identifiable are listed, with a benchmark
// that would identify them.
//
// --holdout 0.4 holds out the last 40 % of the time of each stage and reports errors on it;
// --holdout stage:NAME holds out a stage, --holdout FILE evaluates on another recording. Every
// second step is held out. Errors are never reported on fitted data.
//
// Confidence intervals (ci) have a level of 90 %, from a jackknife over segments of time. They
// contain the scatter of the data alone. The uncertainty of a coefficient also contains the prior
// and how far step times deviate from a line. Scores have a range instead of a number where the
// load is outside the fitted range, where a cap on sequences binds, and where steps were measured
// on GPUs alone, which adds a prior for the host's time.
//
// --evaluate COEFFICIENTS fits nothing and reports errors of these coefficients; --init
// COEFFICIENTS starts from an earlier fit. --output-tokens N sets the length of every output, if
// clients miscounted. --residuals FILE writes each held-out request as CSV.
//
// The coefficients go to stdout, or -o FILE, as YAML with the report as comments; --format json
// is the report. A cluster file uses them by
//
//	latency: {from: coefficients.yaml}
//
// and blis-sim --hardware coefficients.yaml for every deployment of that model, GPU and
// parallelism; both warn outside the recorded range.
//
// A run of blis-sim is a recording, too, with known coefficients: here, steps take 7200 us, and
// 18 us per prompt token and 34.5 us per sequence. From the first 60 % of the time, beta[0] and
// beta[1] are recovered within 2 %; beta[2] and the prior of beta[3] share the rest. The error of
// mean E2E is below 1 % on the last 40 % and on another workload:
//
//	$ blis-gen --scenario sanity --print-spec | sed 's/^aggregate_rate: .*/aggregate_rate: 25/' >w.yaml
//	$ blis-gen w.yaml --requests 800 -o w.jsonl.zst
//	$ blis-sim --set deployments.main.replicas=1 w.jsonl.zst -o run.jsonl.zst
//	$ blis-calibrate --model meta-llama/Llama-3.1-8B-Instruct --gpu H100 run.jsonl.zst -o c.yaml
//	$ blis-gen w.yaml --requests 400 --seed 7 | blis-sim --set deployments.main.replicas=1 -o other.jsonl.zst
//	$ blis-calibrate --model meta-llama/Llama-3.1-8B-Instruct --gpu H100 --evaluate c.yaml other.jsonl.zst
package main

import (
	"os"

	"blis/pkg/cli"
)

func main() { os.Exit(cli.Calibrate.Main()) }
