// Blis-gen writes a workload: a stream of requests and sessions, sorted by
// arrival, for blis-sim.
//
//	blis-gen [flags] [SPEC]
//
// The workload comes from one of three sources. SPEC is a file, YAML or JSON,
// that describes clients: their shares of the rate, arrival processes,
// distributions of lengths, shared prefixes, and whether they send single
// requests, conversations, chains of thought, agents at work or users who wait
// for answers; schemas/spec.md has every field. --scenario NAME is one of the
// built-in specs; it is also what a call without any source uses. --import
// FORMAT:FILE turns a public trace into a workload, compressed or not; several
// are merged in the order of time. recording:FILE replays what a real server was
// seen to do, in the form of any benchmark that is known, which is found out by
// the content; recording:FILE#NAME takes one of several runs in it. Prompts whose
// lengths repeat with a period are taken as the same prompts again. --list
// scenarios and --list importers name what there is, and --print-spec writes the
// spec that a call would use, as a start for an own one.
//
// --seed and --requests override the spec: the same spec and seed give the same
// bytes, and a longer workload begins with the shorter one; a session counts as one
// request, but for users of a closed loop, who share them. --limit cuts
// an import after so many requests or sessions, --time-scale stretches its
// time, --rate rescales it to a mean rate (and spaces sessions of which nothing
// says when they begin), --loop repeats it, --sample keeps a part of it,
// --block-size says how many tokens a hash id of the trace stands for,
// --output-tokens how many every request has where a client miscounted them, and
// --where keeps the requests, and the sessions by their first call, for which a
// CEL expression is true.
//
// The stream goes to stdout, compressed with zstd; plain on a terminal, with
// --plain or with BLIS_PLAIN=1. -o FILE writes a file that appears only when it is
// complete, plain if its name ends in .jsonl.
//
// Three requests, to be read by people:
//
//	$ blis-gen --requests 3 --plain
//
// A built-in scenario as a start for an own spec:
//
//	$ blis-gen --scenario rag --print-spec >spec.yaml
//	$ blis-gen --seed 2 --requests 100 spec.yaml -o workload.jsonl.zst
//
// Agents that think, search twice at once and think again, three times over, and
// then answer:
//
//	$ blis-gen --plain - <<'END'
//	version: "2"
//	aggregate_rate: 2 # sessions a second
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
//	        web: {latency: {type: exponential, params: {mean: 800000}}, output_tokens: {type: constant, params: {value: 300}}}
//	END
//
// What there is:
//
//	$ blis-gen --list scenarios
//	$ blis-gen --list importers
//
// Exit codes: 0 ok, 1 the data or the output failed, 2 the call was wrong, 130
// interrupted, 141 the reader of stdout went away. A spec that does not load
// writes a stream of one error record and ends with 1.
package main

import (
	"os"

	"blis/pkg/cli"
)

func main() { os.Exit(cli.Gen.Main()) }
