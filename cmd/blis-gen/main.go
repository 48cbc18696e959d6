// Blis-gen generates a workload for blis-sim: a stream of requests and sessions, sorted by arrival time.
//
//	blis-gen [flags] [SPEC]
//
// The workload comes from one of three sources:
//
//   - SPEC is a YAML or JSON file that describes clients: their shares of the rate, arrival processes, length
//     distributions and shared prefixes. A client sends single requests, conversations, chains of thought or agent
//     workflows, or is a set of closed-loop users. schemas/spec.md is the reference. Files of arrival times that it
//     names must be below its folder; --allow-paths lets them be anywhere.
//   - --scenario NAME is a built-in spec; without any source, chat is used.
//   - --import FORMAT:FILE converts a public trace, compressed or not. Several traces are merged by time.
//     recording:FILE replays a recording of a real server in any format that blis-calibrate reads, and
//     recording:FILE#NAME selects one of its runs. If prompt lengths repeat periodically, the repeated prompts are
//     replayed as identical.
//
// --list scenarios and --list importers show the names, and --print-spec prints the resulting spec, as a template.
//
// These flags override the spec:
//
//   - --seed N sets the seed. The same spec and seed produce the same bytes.
//   - --requests N sets the number of requests. A session counts as one, and closed-loop users share N. A longer
//     workload begins with the requests of a shorter one.
//   - --rate R sets aggregate_rate, the mean arrivals per second. --time-scale X multiplies the arrival times.
//   - --set PATH=VALUE sets any other value, such as --set clients.web.input_distribution.params.mean=800. It may be
//     repeated.
//
// These flags change an import:
//
//   - --limit N stops after N requests or sessions.
//   - --time-scale X multiplies the arrival times, and --rate R scales them to a mean rate. If arrivals have no times,
//     --rate spaces them.
//   - --repeat N repeats the trace, and --sample P keeps a random share of its arrivals.
//   - --block-size N sets the number of tokens per hash id.
//   - --output-tokens N sets the output length of every request, for clients that miscounted it.
//   - --shared-prefix N lets all prompts of a recording begin with the same N tokens, such as a system prompt.
//
// --slo CLASS:ttft=500ms,tpot=50ms sets the targets of an SLO class of any source. Requests without a class get the
// first one. It may be repeated.
//
// --where CEL keeps the requests for which an expression is true; a session is kept or dropped by its first call.
//
// --shard K/N writes part K of N of any source, for a fleet of N independent cells. A session or, with --shard-by
// tenant, a tenant is in one part, which its hash decides. The parts together are the workload; blis-summarize --merge
// adds their runs.
//
// The stream goes to stdout, compressed with zstd (in a pipe: stored as zstd data). It is plain text on a terminal,
// with --plain or with BLIS_PLAIN=1. -o FILE writes a file that appears only when it is complete; it is plain text if
// its name ends in .jsonl.
//
// Three requests as plain text:
//
//	$ blis-gen --requests 3 --plain
//
// A built-in scenario as a template:
//
//	$ blis-gen --scenario rag --print-spec >spec.yaml
//	$ blis-gen --seed 2 --requests 100 spec.yaml -o workload.jsonl.zst
//
// Agents that think and make two parallel searches, three times, and then answer:
//
//	$ blis-gen --plain - <<'END'
//	version: "2"
//	aggregate_rate: 2 # sessions per second
//	requests: 5
//	clients:
//	  - id: agent
//	    rate_fraction: 1
//	    arrival: {process: poisson}
//	    agentic:
//	      loop: {over: [think, search], max_iterations: 3}
//	      steps:
//	        - id: think
//	          type: llm_call
//	          context_growth: accumulate
//	          input_distribution: {type: constant, params: {value: 400}}
//	          output_distribution: {type: exponential, params: {mean: 60}}
//	        - {id: search, type: tool_call, tool: web, fan_out: 2, depends_on: [think]}
//	        - id: answer
//	          type: llm_call
//	          depends_on: [search]
//	          input_distribution: {type: constant, params: {value: 800}}
//	          output_distribution: {type: exponential, params: {mean: 250}}
//	      tools:
//	        web:
//	          latency: {type: exponential, params: {mean: 800000}}
//	          output_tokens: {type: constant, params: {value: 300}}
//	END
//
// --export CLIENT writes the requests for a real load generator instead: aiperf, guidellm, mooncake (hash ids of
// blocks of 16 tokens, or of --block-size for mooncake, 512 by default), vllm-bench (prompts as text, without arrival
// times) or inference-perf (lengths and arrival times). Two prompts share a block in the file if they share all its
// tokens and those before it. Sessions cannot be exported, because their model calls wait for earlier ones:
//
//	$ blis-gen --scenario documents --requests 100 --export aiperf -o aiperf.jsonl
//
// The built-in scenarios and the trace formats:
//
//	$ blis-gen --list scenarios
//	$ blis-gen --list importers
//
// Exit codes: 0 success, 1 data or I/O error, 2 usage error, 130 or 143 interrupted, 141 stdout was closed. An
// invalid spec produces a stream with a single error record and exit code 1.
package main

import (
	_ "embed"
	"os"

	"blis/pkg/cli"
)

//go:embed main.go
var source string

func main() { os.Exit(cli.Gen.Main(source)) }
