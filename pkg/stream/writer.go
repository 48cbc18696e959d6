package stream

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"sync"

	"github.com/klauspost/compress/zstd"
)

const (
	// batchSize is how many bytes a stream's goroutine and its caller exchange at
	// once.
	batchSize = 256 << 10
	// batchCapacity has room for the record that completes a batch.
	batchCapacity = batchSize + batchSize/16
	// batches is the number of batches in circulation: one in use, two in transit.
	batches = 3
)

// errEnded is returned by calls after the end record.
var errEnded = errors.New("stream: the stream has already ended")

// Writer writes a stream. It collects lines in batches, which a goroutine of its
// own digests, compresses and writes: nothing but the header is written before a
// batch is full or Close is called. A write error is returned by a later call, by
// all calls after it, and by Close. A Writer must be used by one goroutine, and must
// be closed.
type Writer struct {
	// lines is the batch being filled; full passes it to the goroutine, and free
	// returns written batches.
	lines   []byte
	full    chan []byte
	free    chan batchResult
	encoder *Encoder
	// records counts the lines; all further calls return err.
	records int64
	err     error
	// stopped: the goroutine has ended. ended: the end record is written.
	stopped, ended, closed bool

	// The fields below belong to the goroutine until it has ended.
	out    io.Writer
	zstd   *zstd.Encoder // nil if plain; then out is the underlying writer
	digest hash.Hash
}

// batchResult is a written batch and the first error so far.
type batchResult struct {
	lines []byte
	err   error
}

// NewWriter returns a Writer on w, which it does not close. It compresses the stream
// with zstd at its fastest level unless plain is set. A stream without records has
// no bytes, compressed or not.
func NewWriter(w io.Writer, plain bool) *Writer {
	wr := &Writer{
		lines:   make([]byte, 0, batchCapacity),
		full:    make(chan []byte, batches),
		free:    make(chan batchResult, batches),
		out:     w,
		encoder: NewEncoder(),
		digest:  sha256.New(),
	}
	for range batches - 1 {
		wr.free <- batchResult{}
	}
	if !plain {
		enc := encoders.Get().(*zstd.Encoder)
		enc.Reset(w)
		wr.zstd, wr.out = enc, enc
	}
	go wr.writeLoop()
	return wr
}

// encoders are those that are not in use. Each has a window of several MB.
var encoders = sync.Pool{New: func() any {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	if err != nil {
		panic("stream: " + err.Error()) // only invalid options cause it
	}
	return enc
}}

// Header writes h with its Kind and StreamVersion filled in. It must be the first record.
// It is written at once: a reader then knows that a stream has begun, and that it
// is truncated if nothing follows.
func (w *Writer) Header(h *Header) error {
	c := *h
	c.Kind, c.StreamVersion = KindHeader, StreamVersion
	if err := w.Any(&c); err != nil {
		return err
	}
	return w.flush()
}

// Request writes r.
func (w *Writer) Request(r *Request) error { return w.line(w.encoder.Request(w.lines, r), nil) }

// Session writes s.
func (w *Writer) Session(s *Session) error { return w.line(w.encoder.Session(w.lines, s), nil) }

// Outcome writes o. A number that is not finite is an error.
func (w *Writer) Outcome(o *Outcome) error { return w.line(w.encoder.Outcome(w.lines, o)) }

// Decision writes d. A score that is not finite is an error.
func (w *Writer) Decision(d *Decision) error { return w.line(w.encoder.Decision(w.lines, d)) }

// Regret writes g. A number that is not finite is an error.
func (w *Writer) Regret(g *Regret) error { return w.line(w.encoder.Regret(w.lines, g)) }

// Step writes s.
func (w *Writer) Step(s *Step) error { return w.line(w.encoder.Step(w.lines, s), nil) }

// Any writes v, a record with its kind set, with encoding/json.
func (w *Writer) Any(v any) error { return w.line(w.encoder.Any(w.lines, v)) }

// Raw writes one record given as its line, without line feed.
func (w *Writer) Raw(line []byte) error {
	if len(line) == 0 || bytes.IndexByte(line, '\n') >= 0 {
		return fmt.Errorf("stream: %.40q is not one line", line)
	}
	return w.line(append(w.lines, line...), nil)
}

// End ends the stream with e, with its Kind, Records and Digest filled in. Only
// Close may follow.
func (w *Writer) End(e *End) error {
	if err := w.stop(); err != nil {
		return err
	}
	c := *e
	c.Kind, c.Records, c.Digest = KindEnd, w.records, hex.EncodeToString(w.digest.Sum(nil))
	line, err := w.encoder.Any(w.lines, &c)
	if err != nil {
		return err
	}
	if _, w.err = w.out.Write(append(line, '\n')); w.err == nil {
		w.ended, w.err = true, errEnded
		return nil
	}
	return w.err
}

// Close writes the remaining lines. A stream closed without End is truncated, but
// its lines are complete. Closing again does nothing.
func (w *Writer) Close() error {
	if w.closed {
		return nil
	}
	w.closed = true
	err := w.stop()
	if w.ended {
		err = nil
	}
	if err == nil && w.zstd != nil {
		if w.records > 0 {
			err = w.zstd.Close()
		}
		w.zstd.Reset(nil)
		encoders.Put(w.zstd)
	}
	w.err = cmp.Or(err, errEnded)
	return err
}

// line accepts lines: w.lines extended by one record without its line feed, unless err says why it is not.
func (w *Writer) line(lines []byte, err error) error {
	if err := cmp.Or(w.err, err); err != nil {
		return err
	}
	w.lines = append(lines, '\n')
	w.records++
	return w.flushIfFull()
}

// flushIfFull passes the lines to the goroutine if they fill a batch.
func (w *Writer) flushIfFull() error {
	if len(w.lines) < batchSize {
		return nil
	}
	return w.flush()
}

// flush passes the lines to the goroutine in exchange for an empty batch.
func (w *Writer) flush() error {
	w.full <- w.lines
	next := <-w.free
	if next.lines == nil {
		next.lines = make([]byte, 0, batchCapacity)
	}
	w.lines, w.err = next.lines[:0], next.err
	return w.err
}

// stop ends the goroutine once it has written all lines. Then its fields belong to
// the caller.
func (w *Writer) stop() error {
	if w.stopped {
		return w.err
	}
	w.stopped = true
	if w.err == nil && len(w.lines) > 0 {
		w.full <- w.lines
	}
	close(w.full)
	for done := range w.free {
		w.err = cmp.Or(w.err, done.err)
	}
	w.lines = w.lines[:0]
	return w.err
}

// writeLoop runs in the writer's goroutine. After an error it only returns batches.
func (w *Writer) writeLoop() {
	defer close(w.free)
	var err error
	first := true
	for lines := range w.full {
		if err == nil {
			w.digest.Write(lines)
			_, err = w.out.Write(lines)
		}
		if err == nil && first && w.zstd != nil {
			err = w.zstd.Flush() // readers see the header at once
		}
		first = false
		w.free <- batchResult{lines, err}
	}
}
