// Package trace reads traces of others, in the layouts in which they are
// public, as requests and sessions. It says what stands in a trace; what is
// done with it (scaling, filtering, merging) is its caller's.
package trace

import (
	"blis/pkg/registry"
	"blis/pkg/stream"
	"blis/pkg/textio"
)

// Input is what a trace is read from: a file, a folder where the format takes
// one, or a stream.
type Input = textio.Input

// Reader reads one trace, arrival by arrival.
type Reader interface {
	// Next fills a with the next arrival and returns when it is, in µs since the
	// trace's origin, not rounded; io.EOF after the last. Other errors are
	// *stream.SyntaxError, or of the input. Lengths are as the trace has them, also
	// where no request can have them. An id is "" where the trace has none; the
	// arrival in a is not set; a deadline, or the end of a session, counts from it.
	Next(a *stream.Arrival) (us float64, err error)
	// Errorf makes an error about the arrival at hand.
	Errorf(format string, args ...any) error
	// Warnings says what in the trace read so far is odd and yet no error.
	Warnings() []string
	// Close ends the reading.
	Close() error
}

// Format is one layout of traces.
type Format struct {
	// Open begins to read a trace. An error is one of the system, or a
	// *stream.SyntaxError.
	Open func(in Input, o Options) (Reader, error)
	// BlockSize is how many tokens a hash id stands for where Options does not
	// say; 0 if that is no question of the format.
	BlockSize int64
	// Untimed says that nothing in the trace tells when an arrival is: all are at 0.
	Untimed bool
	// Recorded says that it is a recording of a real server, of which Input.Path may
	// choose a run: FILE#NAME, and #NAME of a stream.
	Recorded bool
	// Sampled says that the trace is a description to draw from, with Options.Seed.
	Sampled bool
}

// Options are what a format may need to know beside its input.
type Options struct {
	// BlockSize is how many tokens a hash id stands for; 0 is the format's own.
	BlockSize int64
	// Seed is that of what is drawn.
	Seed uint64
	// EvenlySpaced says that arrivals are spaced evenly where the trace does not say when
	// they are, which a recording must else.
	EvenlySpaced bool
	// OutputTokens is how many output tokens the requests of a recording have,
	// whatever it says; 0 is what it says.
	OutputTokens int64
}

// HasArrivals is a Reader that finds out only from its trace whether that says when
// arrivals are. Timed is known when it is open; without it all are at 0.
type HasArrivals interface{ HasArrivals() bool }

// HasSLOClasses is a Reader of a trace that declares SLO classes.
type HasSLOClasses interface {
	// Classes are those that the trace declares, known when it is open.
	Classes() []stream.SLOClass
}

// Formats are the layouts of public traces, and of recordings of real servers.
var Formats = recordings(registry.Table[Format]{
	{Name: "azure", Doc: "Azure LLM inference traces: CSV of TIMESTAMP, ContextTokens, GeneratedTokens", Value: Format{Open: openAzure}},
	{Name: "mooncake", Doc: "Mooncake traces: JSON lines of timestamp (ms), input_length, output_length, hash_ids", Value: Format{Open: openMooncake, BlockSize: 512}},
	{Name: "bailian", Doc: "Qwen-Bailian traces: JSON lines of chat_id, parent_chat_id, timestamp (s), lengths, hash_ids", Value: Format{Open: openBailian, BlockSize: 16}},
	{Name: "burstgpt", Doc: "BurstGPT traces: CSV of Timestamp (s), Model, Request tokens, Response tokens, Total tokens, Log Type", Value: Format{Open: openBurstGPT}},
	{Name: "weka", Doc: "recorded sessions of coding agents: a JSON file a session, or a folder of them; all at 0 without --rate", Value: Format{Open: openWeka, Untimed: true}},
	{Name: "servegen", Doc: "ServeGen client pools: a folder or archive of chunk-N-trace.csv and chunk-N-dataset.json, drawn by --seed", Value: Format{Open: openServeGen, Sampled: true}},
	{Name: "csv", Doc: "CSV of " + plainColumns, Value: Format{Open: openPlain}},
	{Name: "blis", Doc: "a workload of our own, to be merged, scaled, filtered", Value: Format{Open: openBLIS}},
})

// request makes a an empty request that keeps its memory.
func request(a *stream.Arrival) *stream.Request {
	a.IsSession = false
	a.Request = stream.Request{Prompt: a.Request.Prompt[:0], DeadlineUS: stream.Never}
	return &a.Request
}
