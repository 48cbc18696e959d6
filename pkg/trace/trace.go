// Package trace reads public traces in their own formats as requests and sessions. Scaling,
// filtering and merging are left to the caller.
package trace

import (
	"blis/pkg/registry"
	"blis/pkg/stream"
	"blis/pkg/textio"
)

// Input is the source of a trace: a file, a folder if the format supports it, or a stream.
type Input = textio.Input

// Reader reads one trace, arrival by arrival.
type Reader interface {
	// Next sets a to the next arrival and returns its time, in µs since the trace's origin, not
	// rounded; io.EOF after the last. Other errors are *stream.SyntaxError or input errors. Lengths
	// are not validated. The id is "" if the trace has none. The arrival time in a is not set; a
	// deadline or the end of a session is relative to it.
	Next(a *stream.Arrival) (us float64, err error)
	// Errorf makes an error about the current arrival.
	Errorf(format string, args ...any) error
	// Warnings reports suspicious content read so far.
	Warnings() []string
	// Close ends reading.
	Close() error
}

// Format is one trace format.
type Format struct {
	// Open starts reading a trace. An error is a system error or a *stream.SyntaxError.
	Open func(in Input, o Options) (Reader, error)
	// BlockSize is the default number of tokens per hash id; 0 if the format has none.
	BlockSize int64
	// Untimed says that the format has no arrival times: all are 0.
	Untimed bool
	// Recorded says that it is a recording of a real server. Input.Path may select a run:
	// FILE#NAME, and #NAME for a stream.
	Recorded bool
	// Sampled says that requests are drawn at random, with Options.Seed.
	Sampled bool
}

// Options are further parameters of formats.
type Options struct {
	// BlockSize is the number of tokens per hash id; 0 is the format's default.
	BlockSize int64
	// Seed is the seed of random draws.
	Seed uint64
	// EvenlySpaced says that the caller spaces arrivals evenly if the trace has no arrival times.
	// Without it such a recording is an error.
	EvenlySpaced bool
	// OutputTokens overrides the output tokens of a recording's requests; 0 keeps them.
	OutputTokens int64
	// SharedPrefix is the number of tokens with which all prompts of a recording begin.
	SharedPrefix int64
}

// HasArrivals is a Reader that finds out from the trace whether it has arrival times; otherwise all
// are 0. The result is known once the trace is open.
type HasArrivals interface{ HasArrivals() bool }

// HasSLOClasses is a Reader whose trace declares SLO classes.
type HasSLOClasses interface {
	// Classes returns the declared classes, which are known once the trace is open.
	Classes() []stream.SLOClass
}

// Formats are the formats of public traces and of recordings of real servers.
var Formats = recordings(registry.Table[Format]{
	{Name: "azure", Doc: "Azure LLM inference traces: CSV of TIMESTAMP, ContextTokens, GeneratedTokens",
		Value: Format{Open: openAzure}},
	{Name: "mooncake", Doc: "Mooncake traces: JSON lines of timestamp (ms), input_length, output_length, hash_ids",
		Value: Format{Open: openMooncake, BlockSize: 512}},
	{Name: "bailian", Doc: "Qwen-Bailian traces: JSON lines of chat_id, parent_chat_id, timestamp (s), lengths, " +
		"hash_ids", Value: Format{Open: openBailian, BlockSize: 16}},
	{Name: "burstgpt", Doc: "BurstGPT traces: CSV of Timestamp (s), Model, Request tokens, Response tokens, Total " +
		"tokens, Log Type", Value: Format{Open: openBurstGPT}},
	{Name: "weka", Doc: "recorded sessions of coding agents: JSON files or a folder; all start at 0 without --rate",
		Value: Format{Open: openWeka, Untimed: true}},
	{Name: "servegen", Doc: "ServeGen client pools: a folder or archive of chunk-N-trace.csv and " +
		"chunk-N-dataset.json, drawn by --seed", Value: Format{Open: openServeGen, Sampled: true}},
	{Name: "csv", Doc: "CSV of " + plainColumns, Value: Format{Open: openPlain}},
	{Name: "blis", Doc: "a BLIS workload, to merge, scale or filter it", Value: Format{Open: openBLIS}},
})

// request makes a an empty request and keeps its memory.
func request(a *stream.Arrival) *stream.Request {
	a.IsSession = false
	a.Request = stream.Request{Prompt: a.Request.Prompt[:0], DeadlineUS: stream.Never}
	return &a.Request
}
