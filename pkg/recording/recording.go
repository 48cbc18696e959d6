// Package recording reads measurements of real servers: benchmark results, server traces and tables
// of step times. It converts them to outcomes, for comparison with simulations, and to requests, to
// replay them in a simulation.
package recording

import (
	"fmt"
	"slices"
	"strings"

	"blis/pkg/stream"
)

// Clocks: where the times of a run were measured.
const (
	// clientClock is a load generator's clock: arrivals are when it sent, tokens when it received.
	// Enqueued and scheduled are unknown.
	clientClock = "client"
	// ServerClock is the server's clock: queue and prefill are known.
	ServerClock = "server"
)

// Recording is the content of a file: runs or steps.
type Recording struct {
	// Path is the file name for messages; Format is the name in Formats.
	Path, Format string
	// Digest is the SHA-256 of the decompressed file, in hex.
	Digest string
	Runs   []*Run
	Steps  []Step
	// Folder is what the folder states about the server, if the recording is of a folder.
	Folder *Folder
	// Warnings report suspicious content.
	Warnings []string
}

// add adds a run with its requests.
func (r *Recording) add(run *Run, requests []request) error {
	r.Runs = append(r.Runs, run)
	return run.setOutcomes(requests, r.Path)
}

// Run is one benchmark of one server setup. Unknown parts of the setup are "" or 0.
type Run struct {
	// Name distinguishes the runs of a file: "qps=3 replicas=2". It is "" for a single run.
	Name string
	// Model, GPU and Engine are the file's own names.
	Model, GPU, Engine       string
	TensorParallel, Replicas int
	// Settings are those of the engine that the file states, by their names in a cluster file:
	// max_num_seqs=128.
	Settings []string
	// TargetRPS is the target rate of the benchmark, in requests per second.
	TargetRPS float64
	// Clock is clientClock or ServerClock.
	Clock string
	// Arrivals says whether ArrivalUS is the arrival time. If it is false and no outcome has
	// ScheduledUS, every request has its own clock that starts at 0 when it is sent. If outcomes
	// have ScheduledUS, arrivals are the start of prefill, the earliest known time.
	Arrivals bool
	// Outcomes are all requests in order of arrival, with unique ids. Times are µs since the first
	// arrival, stream.Never if not measured:
	//
	//	ArrivalUS     client: sent; server: received by the frontend
	//	EnqueuedUS    server: entered the engine's queue
	//	ScheduledUS   server: first in a batch (start of prefill)
	//	FirstTokenUS  client: received; server: produced (end of prefill)
	//	CompletedUS   client: last token received; server: last token produced
	//
	// FirstTokenUS may be missing for a completed request that was not streamed. OutputTokens is 0
	// for a completed request whose tokens were not counted. A failed request has the state failed
	// and a reason; its lengths may be 0 for unknown.
	Outcomes []stream.Outcome
	// Stages are intervals with their own rates, if the file names them, in order.
	Stages   []Stage
	Warnings []string
	// sharedPrefix is the number of tokens with which all prompts begin.
	sharedPrefix int64
	// info holds further properties of requests by id, if the file has them.
	info map[string]requestInfo
}

// warnf adds a warning.
func (r *Run) warnf(format string, args ...any) {
	r.Warnings = append(r.Warnings, fmt.Sprintf(format, args...))
}

// nameRuns names runs by the words that distinguish them. For each run there is a list of words; a
// word is used if it varies between runs, and no more words than needed. Runs that are still equal
// are numbered.
func nameRuns(runs []*Run, words [][]string) {
	if len(runs) < 2 {
		return
	}
	for k := range words[0] {
		if !slices.ContainsFunc(words, func(w []string) bool { return w[k] != words[0][k] }) {
			continue
		}
		known := map[string]bool{}
		for i, run := range runs {
			run.Name = strings.TrimSpace(run.Name + " " + strings.ReplaceAll(words[i][k], " ", "_"))
			known[run.Name] = true
		}
		if len(known) == len(runs) && k > 0 {
			return
		}
	}
	known := map[string]int{}
	for _, run := range runs {
		known[run.Name]++
	}
	if len(known) < len(runs) {
		for i, run := range runs {
			run.Name = strings.TrimSpace(fmt.Sprintf("%s run=%d", run.Name, i+1))
		}
	}
}

// Stage is the part of a run with arrivals in [FromUS, ToUS).
type Stage struct {
	Name         string
	FromUS, ToUS stream.Micros
	// TargetRPS is the target rate; 0 if unknown.
	TargetRPS float64
}

// Unknown is the Context of a step if the file does not have it.
const Unknown = -1

// Step is one measured batch of an engine.
type Step struct {
	// Prefill and Decode are the tokens computed. Context is the total number of tokens that the
	// decode sequences attend to (Unknown if not given), PrefillContext the already computed tokens
	// of the prefill sequences.
	Prefill, Decode, Context, PrefillContext int64
	// US is the duration, in µs.
	US float64
	// GPUOnly says that US is kernel time without host time.
	GPUOnly            bool
	Model, GPU, Engine string
	TensorParallel     int
	// Note is the file's remark.
	Note string
}
