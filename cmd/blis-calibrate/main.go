// Blis-calibrate fits the coefficients of a latency model to recordings of a real
// server, and says how far they are to be trusted.
//
//	blis-calibrate [flags] RECORDING...
//
// A RECORDING is what a benchmark, a server or a profiler wrote: the formats of
// blis-gen --import recording:FILE and tables of measured steps, told apart by what
// is in them; FORMAT:FILE forces one, FILE#NAME chooses runs, - is stdin (after --, also
// -#NAME). Several are of one setup: that of -c FILE, a cluster file (of its deployments
// the one of --model), with the engine's settings as they were; or of --model, --gpu and
// --tp, with what follows from them.
//
// What is fitted depends on what was recorded:
//
//	steps           beta, by a regression; a table, if the steps are a grid and it is better
//	server's spans  alpha from what is before the queue, beta from prefill and decode
//	client's times  alpha[0] and beta, by playing the recording until simulated clients
//	                see what the real ones saw; alpha[1] and alpha[2] are 0: clients
//	                can hardly tell them from beta[1] and alpha[0]. beta[3] is physics,
//	                or 0 where contexts differ and that foretells stretches of time
//	                that were held back better. alpha[3], by which tokens come later
//	                for each sequence that decodes, is there where it foretells them
//	                better
//
// Prompts that repeat are replayed as such. Seconds in which a server stalled while
// it warmed up, at the start of a run, are left out and told. A slope over batches of
// like sizes says little of others: it is weighed against that of a roofline, which
// gives way where data contradict it, with a warning. Coefficients that the data
// cannot tell apart are named, with a workload that would tell them.
//
// --holdout 0.4 keeps the last 40 % of the time of each stage from the fit and judges
// by them (0.5 the last half); --holdout stage:NAME judges by a stage, --holdout FILE
// by another recording. Errors are never of data that was fitted to. Intervals are
// of 90 %, from what stretches of time differ by: left out one by one, or, of steps and
// spans, resampled (--seed). Beside the data's own stand those about the coefficient in
// all: they count in that step times may lie off a line, and the prior, and may be wider
// or narrower; where a coefficient is not in the data's own, that is told. A simulation of
// loads that were not fitted to, or where a cap on sequences binds, has a band; so has one
// with steps of GPUs alone, to which a prior of the host's time is added. By how much TTFT
// still grows with the batch beside the model is told, and widens bands; so is where
// prompts that fill whole blocks of the cache come later, or sooner, than others.
//
// --check COEFFICIENTS fits nothing and says how wrong these are on the recordings;
// --refine COEFFICIENTS begins where an earlier fit ended. --output-tokens N says
// that every answer had N tokens, where clients miscounted. --residuals FILE has each
// judged request as CSV.
//
// The coefficients go to stdout, or -o FILE, as YAML with the report as comments;
// --format json is the report. A cluster file takes them by
//
//	latency: {from: coefficients.yaml}
//
// and blis-sim --hardware coefficients.yaml for every deployment of that model, GPU
// and parallelism; both warn outside of what was recorded.
//
// A run of blis-sim is a recording, too, of which is known what is to be found: these
// steps take 7200 us, and 18 a token of prompts and 34.5 a sequence. From the first 60 %
// of the time, beta[0] and beta[1] come out to 2 %; the rest, beta[2] and physics' beta[3]
// have between them. The mean E2E of the last 40 % is foretold to 1 %, and so is
// that of another workload:
//
//	$ blis-gen --scenario sanity --print-spec | sed 's/^aggregate_rate: .*/aggregate_rate: 25/' >w.yaml
//	$ blis-gen w.yaml --requests 800 -o w.jsonl.zst
//	$ blis-sim --set deployments.main.replicas=1 w.jsonl.zst -o run.jsonl.zst
//	$ blis-calibrate --model meta-llama/Llama-3.1-8B-Instruct --gpu H100 run.jsonl.zst -o c.yaml
//	$ blis-gen w.yaml --requests 400 --seed 7 | blis-sim --set deployments.main.replicas=1 -o other.jsonl.zst
//	$ blis-calibrate --model meta-llama/Llama-3.1-8B-Instruct --gpu H100 --check c.yaml other.jsonl.zst
package main

import (
	"os"

	"blis/pkg/cli"
)

func main() { os.Exit(cli.Calibrate.Main()) }
