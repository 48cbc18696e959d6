// Package recording reads what a real server was seen to do: the results of
// benchmarks, traces of the server's own, tables of step times. What a file says
// becomes outcomes, the same that a simulation writes, so that the two can be
// held against each other, and requests, so that a simulation can be fed what the
// server was.
package recording

import (
	"fmt"

	"blis/pkg/stream"
)

// Clocks: where the times of a run were taken.
const (
	// ClientClock is a load generator's: arrivals are when it sent, tokens when it
	// received them. Enqueued and scheduled are not known.
	ClientClock = "client"
	// ServerClock is the server's own: queue and prefill are known.
	ServerClock = "server"
)

// Recording is what one file holds: runs, or steps.
type Recording struct {
	// Path is the file, for people; Format the name in Formats that it was read as.
	Path, Format string
	// Digest is the SHA-256 of the decompressed file, in hex.
	Digest string
	Runs   []*Run
	Steps  []Step
	// Warnings say what is odd about the file and yet no error.
	Warnings []string
}

// Run is one benchmark against one setup of servers. What the file does not say
// of the setup is "" or 0.
type Run struct {
	// Name tells the run from the others of its file: "qps=3 replicas=2". It is ""
	// where there is only one.
	Name string
	// Model, GPU and Engine are as the file calls them.
	Model, GPU, Engine       string
	TensorParallel, Replicas int
	// TargetRPS is the rate that the benchmark wanted, in requests per second.
	TargetRPS float64
	// Clock is ClientClock or ServerClock.
	Clock string
	// Arrivals says whether ArrivalUS is when a request came. Where it is false, and
	// no outcome has ScheduledUS, every request has a clock of its own that begins
	// at 0 when it is sent; where outcomes have it, arrivals stand for the start of
	// prefill, as nothing earlier is known.
	Arrivals bool
	// Outcomes are all requests in the order of arrival, with ids that are theirs
	// alone. Times are µs since the first arrival, stream.Never where not measured:
	//
	//	ArrivalUS     client: sent; server: received by its frontend
	//	EnqueuedUS    server: the engine's queue took it
	//	ScheduledUS   server: it was first in a batch (start of prefill)
	//	FirstTokenUS  client: received; server: produced (end of prefill)
	//	CompletedUS   client: the last token received; server: the last one produced
	//
	// FirstTokenUS may be missing of a completed request whose answer was not
	// streamed. OutputTokens is 0 of a completed request whose tokens were not
	// counted. A request that failed has the state failed and a reason; its lengths
	// may be 0, not known.
	Outcomes []stream.Outcome
	// Stages are parts of the time with a rate of their own, where the file names
	// them, in order.
	Stages   []Stage
	Warnings []string
	// offers are what requests were offered with, by id, where a file says it.
	offers map[string]offer
}

// warnf notes what is odd.
func (r *Run) warnf(format string, args ...any) {
	r.Warnings = append(r.Warnings, fmt.Sprintf(format, args...))
}

// Stage is a part of a run, of the arrivals in [FromUS, ToUS).
type Stage struct {
	Name         string
	FromUS, ToUS stream.Micros
	// TargetRPS is the rate wanted; 0 where the file does not say.
	TargetRPS float64
}

// Unknown is the Context of a step of which it is not said.
const Unknown = -1

// Step is one measured batch of an engine.
type Step struct {
	// Prefill and Decode are the tokens computed, Context the tokens that its decode
	// sequences attend to, in all (Unknown where not said), PrefillContext those that
	// its prefills find computed.
	Prefill, Decode, Context, PrefillContext int64
	// US is how long it took, in µs.
	US float64
	// GPUOnly: the time of kernels alone, without the host's.
	GPUOnly            bool
	Model, GPU, Engine string
	TensorParallel     int
	// Note is what the file remarks.
	Note string
}
