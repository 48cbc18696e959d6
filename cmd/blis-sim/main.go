// Blis-sim plays a workload on a simulated cluster of LLM inference servers and
// writes the run: what became of every request, and metrics over all.
//
//	blis-sim [flags] [WORKLOAD]
//
// WORKLOAD is a stream of blis-gen, or requests made by hand, one JSON object a
// line, sorted by arrival; without it, or with -, stdin is read. The cluster
// comes from -c FILE (YAML or JSON, strictly read), or is the built-in one.
// --set PATH=VALUE changes one value of it, --print-config writes all of it as
// JSON, with what follows from it, and --list names what it may name: policies,
// models, gpus, presets of engine versions, latencies. --hardware PATH adds GPUs
// and measured coefficients of your own.
//
// --seed seeds the simulation's own random streams, --jitter-seed that of the
// scatter of step times (latency.jitter) alone. --horizon 90s ends the run
// at that simulated time. --trace says how much the run holds: minimal (header,
// metrics, end), decisions (also outcomes and routing decisions; the default)
// or full (also every step of every replica). --itl adds the gaps between
// tokens to each outcome. --check holds the run to its laws while it runs:
// nothing lost, nothing early, no block of cache leaked; a broken law is a bug and
// ends the run. --strict makes errors of warnings about the workload.
//
// The stream goes to stdout, compressed with zstd; plain on a terminal, with
// --plain or with BLIS_PLAIN=1. -o FILE writes a file that appears only when it is
// complete: plain if its name ends in .jsonl, a table of the outcomes if it
// ends in .parquet.
//
// The main job, on built-in defaults:
//
//	$ blis-gen | blis-sim | blis-summarize
//
// A change to the cluster, and the run as a file:
//
//	$ blis-gen --requests 500 -o workload.jsonl.zst
//	$ blis-sim --set deployments.main.replicas=2 --check workload.jsonl.zst -o run.jsonl.zst
//	$ blis-sim workload.jsonl.zst -o run.parquet
//
// The configuration as a start for an own one:
//
//	$ blis-sim --print-config >cluster.json
//	$ blis-sim -c cluster.json --trace minimal workload.jsonl.zst -o run.jsonl.zst
//	$ blis-sim --list policies
//
// A model and a GPU are enough; the rest follows from them:
//
//	$ printf 'version: 1\ndeployments: [{id: main, model: Qwen/Qwen3-8B, gpu: H100}]\n' >small.yaml
//	$ blis-sim -c small.yaml --print-config | jq '.deployments[0].computed.kv_blocks'
//
// Exit codes: 0 ok, 1 the data or the input and output failed, 2 the call was
// wrong, 130 interrupted, 141 the reader of stdout went away. A cluster file
// that does not load writes a stream of one error record and ends with 1; an error
// record in the workload is passed on likewise.
package main

import (
	"os"

	"blis/pkg/cli"
)

func main() { os.Exit(cli.Sim.Main()) }
