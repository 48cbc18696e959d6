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

// Kind is the kind of the current record.
func (r *Reader) Kind() string { return r.kind }

// Line is the line number of the current record, from 1.
func (r *Reader) Line() int { return r.lines }

// Bytes is the line of the current record without its line feed, valid until Next.
func (r *Reader) Bytes() []byte { return r.line }

// Request decodes the current record into req and checks its fields, each alone
// and against each other. The caller checks the order of arrivals and that ids are
// unique. req is overwritten, but the memory of Prompt is reused; its strings stay
// valid.
func (r *Reader) Request(req *Request) error { return r.located(r.scan.record(r.line, req)) }

// Session decodes the current record into v and checks it, as Request does. The
// memory of its lists is reused.
func (r *Reader) Session(v *Session) error { return r.located(r.scan.record(r.line, v)) }

// Outcome decodes the current record into o and checks it, as Request does. The
// memory of ITLUS is reused. Its ids stay valid, but in one piece of memory with many others: clone those that are
// kept.
func (r *Reader) Outcome(o *Outcome) error { return r.located(r.scan.record(r.line, o)) }

// Decision decodes the current record into d. Fields that the line omits are absent in
// d. The memory of its lists is reused, and its ids are like those of an Outcome.
func (r *Reader) Decision(d *Decision) error { return r.located(r.scan.record(r.line, d)) }

// DecisionResult decodes what the current record decided about which request, when and at which stage. The other fields
// of d are absent. Of their values it finds only the ends; Decision checks them.
func (r *Reader) DecisionResult(d *Decision) error {
	return r.located(r.scan.record(r.line, decisionResult{d}))
}

// Step decodes the current record into v. The memory of Batch is reused; its strings stay valid.
func (r *Reader) Step(v *Step) error { return r.located(r.scan.record(r.line, v)) }

// Regret decodes the current record into g. Fields that the line omits are absent in g.
func (r *Reader) Regret(g *Regret) error {
	if err := r.checkVersion(); err != nil {
		return err
	}
	return r.located(r.scan.record(r.line, g))
}

// SessionOutcome decodes the current record into o and checks its state.
func (r *Reader) SessionOutcome(o *SessionOutcome) error {
	*o = SessionOutcome{CompletedUS: Never}
	if err := r.Decode(o); err != nil {
		return err
	}
	switch {
	case !slices.Contains(sessionStates, o.State):
		return r.located(registry.Unknown("state", o.State, sessionStates))
	case (o.State == StateCompleted) != (o.CompletedUS != Never):
		return r.Errorf("completed_us must be present if and only if the state is completed, not %s", o.State)
	}
	return nil
}

// Decode decodes the current record into v with encoding/json. An unknown field is
// an error; a number in an any becomes a json.Number.
func (r *Reader) Decode(v any) error {
	if err := r.checkVersion(); err != nil {
		return err
	}
	return r.located(decodeStrictly(r.line, v))
}

// Errorf returns an error about the current record, with file and line.
func (r *Reader) Errorf(format string, args ...any) error {
	return r.ErrorAt(r.lines, format, args...)
}

// ErrorAt is Errorf about the record in an earlier line.
func (r *Reader) ErrorAt(line int, format string, args ...any) error {
	return &SyntaxError{r.name, line, fmt.Sprintf(format, args...)}
}

func (r *Reader) located(err error) error {
	if err != nil {
		err = r.Errorf("%v", err)
	}
	return err
}

// Header is the stream's header, nil before it is read and in a headerless workload.
func (r *Reader) Header() *Header { return r.header }

// End is the end record, nil before it is read.
func (r *Reader) End() *End { return r.end }

// Err is the error that ended the reading. It is nil only after a complete stream:
// after the end record, or at the end of a headerless workload.
func (r *Reader) Err() error { return r.err }

// Digest is the SHA-256, in hex, of all lines up to the current one, as read and
// without the end record: at the end it equals the digest in the end record. For a
// headerless workload it is the digest of the decompressed file.
func (r *Reader) Digest() string {
	if r.end != nil {
		return r.digest
	}
	return r.batch.digestTo(r.pos)
}

// Warnings describe problems that do not stop the reading, such as records that
// differ from those that the end record counts and digests, or an older format.
func (r *Reader) Warnings() []string { return r.warnings }

// Integrity says whether the records are those that were written, and how they differ. Streams without an end record
// pass.
func (r *Reader) Integrity() (i Integrity, difference string) { return r.integrity, r.difference }

// Close ends the reading early. It does not close the underlying reader.
func (r *Reader) Close() error {
	if !r.done {
		r.stop(errors.New(r.name + ": reading stopped before the end of the stream"))
	}
	return nil
}

// CloseThen closes the Reader, and calls release when its pending read of the underlying reader has returned. It does
// not wait for that.
func (r *Reader) CloseThen(release func()) {
	r.Close()
	go func() {
		<-r.prefetcher.ended
		release()
	}()
}

// decodeStrictly decodes one line with encoding/json and rejects unknown fields.
func decodeStrictly(line []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	dec.UseNumber()
	if err := dec.Decode(v); err != nil {
		return describeJSONError(err, v)
	}
	if _, err := dec.Token(); err != io.EOF {
		return fmt.Errorf("invalid JSON at column %d: unexpected data after the record", dec.InputOffset()+1)
	}
	return nil
}
