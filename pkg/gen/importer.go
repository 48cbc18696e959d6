package gen

import (
	"fmt"
	"io"

	"blis/pkg/dist"
	"blis/pkg/named"
	"blis/pkg/record"
)

// rows reads a trace of one format, row by row.
type rows interface {
	// next fills lengths and prompt of r from the next row and returns when it
	// arrived, in µs since the trace's origin; io.EOF after the last. Lengths
	// are as the row has them, also if no request can have them.
	next(r *record.Request) (us float64, err error)
	// line is the line of the row, from 1.
	line() int
}

// importer is one format of traces.
type importer struct {
	open func(in io.Reader, blockSize int64) rows
	// blockSize is how many tokens a hash id stands for unless the call says; 0
	// if the format has none.
	blockSize int64
}

// Importers are the formats of public traces.
var Importers = named.Table[importer]{
	{Name: "azure", Doc: "Azure LLM inference traces: CSV of TIMESTAMP, ContextTokens, GeneratedTokens", Value: importer{newAzure, 0}},
	{Name: "mooncake", Doc: "Mooncake traces: JSON lines of timestamp (ms), input_length, output_length, hash_ids", Value: importer{newMooncake, 512}},
}

// trace is a source of requests from rows.
type trace struct {
	rows rows
	name string
	// scale multiplies times.
	scale float64
	// read counts the rows; us is the arrival of the one at hand, last that of
	// the one accepted before, not scaled and not rounded.
	read     int64
	us, last float64
	// blockSize is that of hash ids; uncovered counts prompts of which the ids
	// leave a block or more unnamed.
	blockSize, uncovered int64
}

// next fills a with the next row. Its id says which row it is, so that a filter
// renames no request; its arrival is not scaled yet, so that a filter sees the
// trace's own times.
func (t *trace) next(a *record.Arrival) error {
	a.IsSession = false
	r := &a.Request
	*r = record.Request{Prompt: r.Prompt[:0], DeadlineUS: record.Never}
	var err error
	if t.us, err = t.rows.next(r); err == io.EOF {
		return err
	}
	if err != nil {
		return t.errorf("%v", err)
	}
	r.ID = requestID(t.read)
	t.read++
	return t.setArrival(r, 1)
}

// accept checks the row at hand, which may have been impossible as long as a
// filter could drop it, and scales its time.
func (t *trace) accept(a *record.Arrival) error {
	r := &a.Request
	for _, length := range []struct {
		name   string
		tokens int64
	}{{"input_tokens", r.InputTokens}, {"output_tokens", r.OutputTokens}} {
		if length.tokens < 1 {
			return t.errorf("%s must be at least 1, is %d (--where '%[1]s >= 1' leaves such rows out)", length.name, length.tokens)
		}
		if length.tokens > maxTokens {
			return t.errorf("%s must be at most %d, is %d", length.name, maxTokens, length.tokens)
		}
	}
	if t.us < t.last {
		return t.errorf("arrives before a row above it; rows must be sorted by time")
	}
	t.last = t.us
	named := int64(0)
	for _, s := range r.Prompt {
		named += s.Tokens
	}
	if len(r.Prompt) > 0 && r.InputTokens-named >= t.blockSize {
		t.uncovered++
	}
	return t.setArrival(r, t.scale)
}

// oddities says what is likely to be a mistake in the call.
func (t *trace) oddities() []string {
	var odd []string
	if t.read == 0 {
		odd = append(odd, t.name+": holds no requests")
	}
	if t.uncovered > 0 {
		odd = append(odd, fmt.Sprintf("%s: the hash_ids of %d of %d prompts leave whole blocks of %d tokens unnamed, which are taken as unique; is --block-size right?",
			t.name, t.uncovered, t.read, t.blockSize))
	}
	return odd
}

// setArrival gives r the row's arrival, scaled.
func (t *trace) setArrival(r *record.Request, scale float64) error {
	if t.us < 0 {
		return t.errorf("arrives before the first row; rows must be sorted by time")
	}
	us, err := dist.Micros(t.us * scale)
	if err != nil {
		return t.errorf("%v", err)
	}
	r.ArrivalUS = record.Micros(us)
	return nil
}

func (t *trace) errorf(format string, args ...any) error {
	return &record.SyntaxError{File: t.name, Line: t.rows.line(), Msg: fmt.Sprintf(format, args...)}
}

// maxTokens bounds lengths, as the wire does.
const maxTokens = 1<<31 - 1
