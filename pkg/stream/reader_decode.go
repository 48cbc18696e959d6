package stream

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"blis/pkg/registry"
)

// Kind is the kind of the record at hand.
func (r *Reader) Kind() string { return r.kind }

// Line is the number of its line, from 1.
func (r *Reader) Line() int { return r.lines }

// Bytes is its line without the line feed, valid until Next.
func (r *Reader) Bytes() []byte { return r.line }

// Request decodes the record at hand into req and checks it: the fields by
// themselves and against each other. The order of arrivals and whether ids are
// unique is the caller's to check. req is overwritten but for the memory of its
// Prompt; its strings stay valid.
func (r *Reader) Request(req *Request) error {
	r.scan.reset(r.line)
	return r.located(req.decode(&r.scan))
}

// Session decodes the record at hand into v and checks it, as Request does. The
// memory of its lists is used again.
func (r *Reader) Session(v *Session) error {
	r.scan.reset(r.line)
	return r.located(v.decode(&r.scan))
}

// Outcome decodes the record at hand into o and checks it, as Request does.
// The memory of its ITLUS is used again.
func (r *Reader) Outcome(o *Outcome) error {
	r.scan.reset(r.line)
	return r.located(o.decode(&r.scan))
}

// SessionOutcome decodes the record at hand into o and checks its state.
func (r *Reader) SessionOutcome(o *SessionOutcome) error {
	*o = SessionOutcome{CompletedUS: Never}
	if err := r.Decode(o); err != nil {
		return err
	}
	switch {
	case !slices.Contains(sessionStates, o.State):
		return r.located(registry.Unknown("state", o.State, sessionStates))
	case (o.State == StateCompleted) != (o.CompletedUS != Never):
		return r.Errorf("completed_us must stand there where the state is completed, and only there; it is %s", o.State)
	}
	return nil
}

// Decode decodes the record at hand into v with encoding/json. A field that v
// does not have is an error; numbers in an any become a json.Number.
func (r *Reader) Decode(v any) error { return r.located(decodeStrictly(r.line, v)) }

// Errorf makes an error about the record at hand.
func (r *Reader) Errorf(format string, args ...any) error {
	return &SyntaxError{r.name, r.lines, fmt.Sprintf(format, args...)}
}

func (r *Reader) located(err error) error {
	if err != nil {
		err = r.Errorf("%v", err)
	}
	return err
}

// Header is the stream's header, nil before Next has met it and in a bare workload.
func (r *Reader) Header() *Header { return r.header }

// End is the end record, nil before Next has met it.
func (r *Reader) End() *End { return r.end }

// Err is the error that ended the reading. It is nil only after the whole
// stream: after the end record, or at the end of a bare workload.
func (r *Reader) Err() error { return r.err }

// Digest is the SHA-256, in hex, of all lines up to the one at hand, as they
// were read, but for the end record: at the end it is what a Writer put there.
// That of a bare workload is the digest of the decompressed file.
func (r *Reader) Digest() string {
	r.hash(r.pos)
	return r.sum()
}

// Warnings says what about the stream is odd: records that are not those that
// the end record counts, because somebody filtered them.
func (r *Reader) Warnings() []string { return r.warnings }

// Close ends the reading early. What the Reader reads from stays open.
func (r *Reader) Close() error {
	if !r.done {
		r.stop(errors.New(r.name + ": the reading was given up"))
	}
	return nil
}

// decodeStrictly decodes one line with encoding/json.
func decodeStrictly(line []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	dec.UseNumber()
	if err := dec.Decode(v); err != nil {
		return plainer(err, v)
	}
	if _, err := dec.Token(); err != io.EOF {
		return fmt.Errorf("invalid JSON at column %d: something follows the record", dec.InputOffset()+1)
	}
	return nil
}
