// Blis-calibrate fits the coefficients of a latency model to recordings of a real server, and
// reports their confidence intervals and the errors of a simulation on held-out data.
//
//	blis-calibrate [flags] RECORDING...
//	blis-calibrate --link FILE
//
// A RECORDING is the output of a benchmark, a server or a profiler, in the formats of blis-gen
// --import recording:FILE or as a table of measured steps. The format is detected. FORMAT:FILE
// sets it, FILE#NAME selects runs, and - is stdin (after --, also -#NAME). All recordings must be
// of one setup. -c FILE is a cluster file with the recorded engine settings; if it has several
// deployments, add --model. Without it, give --model, --gpu and --tp; settings are then those that
// the recording states, and defaults. Files that the cluster file names must be below its folder; --allow-paths
// lets them be anywhere.
//
// recording:DIR is the output folder of a load generator: one file has its results, and others state the server. These
// are server.yaml (model, gpu, vllm_version and engine settings by their names), vLLM's --config as vllm*.yaml,
// the launch command in *.sh, launch* or command*, vLLM's *.log, the answers of its /version and /metrics as
// version.json and metrics.txt, nvidia-smi -L as nvidia-smi.txt, AIPerf's copies of metrics, and the files of some
// public recordings (meta.json, config.json, exp-config.yaml, experiments.csv). If they and
// the flags do not state the model, the GPU, vLLM's version and how the engine was started, blis-calibrate stops and
// asks for what is missing.
//
// What is fitted depends on what was recorded:
//
//	steps          beta, by regression; or a table, if steps form a grid and it has lower
//	               held-out errors
//	server spans   alpha from the time before the queue, beta from prefill and decode times
//	client times   alpha[0] and beta, with the simulator in the loop: the recording is replayed
//	               until simulated clients measure what the real ones did. alpha[1] and alpha[2]
//	               are 0: clients cannot distinguish them. beta[3] is a physical prior, or 0 if contexts
//	               vary and that lowers the prediction error on held-out segments. alpha[3], the
//	               delay of tokens per decoding sequence, is present if it lowers that error
//
// If there are tables of measured kernels of the model on the GPU, a fit with the simulator in the
// loop gives factors for the latency model operators instead of beta: step_us, sequence_us and
// context_us of decode steps as beta[0], beta[2] and beta[3], and prefill, which multiplies the
// kernels' time of a step's chunks. --latency linear fits beta nevertheless.
//
// Repeated prompts are replayed as such. A prefix that all prompts share must be stated, in a column
// shared_prefix_tokens of a table or by --shared-prefix N. If first tokens come much too early for
// the kernels, a fit searches for it, uses what it finds, and warns. If the kernels take about as
// long for prompts with a prefix as without it, a fit asks for it. Seconds in which the server
// stalled to warm up, at the start of a run, are excluded, with a warning. Batches of similar sizes
// barely constrain the slope beta[2]. It is combined with the slope of a roofline model, and of
// measured kernels if there are any, weighted by their errors, as far as the fitted data are not missed
// by more than 5 % more.
// Coefficients that are not identifiable are listed, with a benchmark that would identify them.
//
// --holdout 0.4 holds out the last 40 % of the time of each stage and reports errors on it;
// --holdout stage:NAME holds out a stage, --holdout FILE evaluates on another recording. Of a
// table of steps, every second step is held out. Errors are never reported on fitted data.
//
// Confidence intervals (ci) have a level of 90 % and come from a jackknife over time segments.
// They cover only the scatter of the data. The uncertainty of a coefficient is where a fit of another
// workload of the same server would be in 90 % of cases: it also covers the prior, the deviation
// of step times from a line, and how much fits of two workloads of one server differ. The last was
// measured on other servers, in units of how far a fit misses its own data.
//
// Each simulated metric has a range that contains the measured value in 90 % of cases: at fitted loads
// by the errors of fits to other servers there, and by the uncertainty of prefill. It is wider if the
// load is outside the fitted range, if a limit on sequences binds, or if steps were measured on GPUs
// only (this adds a prior for the host time). scripts/interval-coverage counts both.
//
// --evaluate COEFFICIENTS fits nothing and reports errors of these coefficients; --init
// COEFFICIENTS starts from an earlier fit. --output-tokens N sets the length of every output, for
// clients that miscounted it. Without it, if some counts contradict the times of requests and the others
// are nearly equal, each request is taken to have the median of those, with a warning. --residuals FILE writes
// each held-out request as CSV.
//
// --link FILE fits a link to measured transfers instead, such as those of KV blocks between servers
// or to the memory of a host: FILE is a table with the columns bytes and ms, one transfer a line. A
// transfer takes latency_us + bytes / (1000 · gb_per_s) µs. Both are written with intervals of 90 %,
// and with the median error of every second transfer, held out. They are values of transfer and of
// kv_tiers in a cluster file.
//
// The coefficients go to stdout, or -o FILE, as YAML with the report as comments; --format json
// is the report. A cluster file uses them with
//
//	latency: {from: coefficients.yaml}
//
// With blis-sim --hardware coefficients.yaml, every deployment of that model, GPU and parallelism
// uses them. Both warn outside the recorded range.
//
// A blis-sim run is a recording, too, with known coefficients. Here, a step takes 7200 us, plus
// 18 us per prompt token and 34.5 us per sequence. From the first 60 % of the time, beta[0] and
// beta[1] are recovered within 2 %; beta[2] and the prior of beta[3] share the rest. The error of
// mean E2E is below 1 % on the last 40 % and on another workload:
//
//	$ blis-gen --scenario sanity --print-spec | sed 's/^aggregate_rate: .*/aggregate_rate: 25/' >w.yaml
//	$ blis-gen w.yaml --requests 800 -o w.jsonl.zst
//	$ blis-sim --set deployments.main.replicas=1 w.jsonl.zst -o run.jsonl.zst
//	$ blis-calibrate --model meta-llama/Llama-3.1-8B-Instruct --gpu H100 --latency linear run.jsonl.zst -o c.yaml
//	$ blis-gen w.yaml --requests 400 --seed 7 | blis-sim --set deployments.main.replicas=1 -o other.jsonl.zst
//	$ blis-calibrate --model meta-llama/Llama-3.1-8B-Instruct --gpu H100 --evaluate c.yaml other.jsonl.zst
package main

import (
	_ "embed"
	"os"

	"blis/pkg/cli"
)

//go:embed main.go
var source string

func main() { os.Exit(cli.Calibrate.Main(source)) }
