package stream

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"math"

	"github.com/klauspost/compress/zstd"
)

const (
	// batchSize is how many bytes of lines travel at once between a stream's
	// goroutine and its user.
	batchSize = 256 << 10
	// batches is how many of them there are: one in hand, two on their way.
	batches = 3
)

// errEnded is the error of whoever writes on after the end record.
var errEnded = errors.New("record: the stream has ended")

// Writer writes a stream. Lines are gathered and handed in batches to the
// writer's own goroutine, which digests, compresses and writes them; nothing
// reaches the stream below before a batch is full or Close is called. An error
// of that stream is returned by a later call, by all calls after it, and by
// Close. A Writer is for one goroutine, and must be closed.
type Writer struct {
	// lines are those not yet handed over; full hands them to the goroutine,
	// free brings emptied batches back.
	lines []byte
	full  chan []byte
	free  chan written
	json  *json.Encoder
	// numbers is memory of the encoders.
	numbers numbers
	// records counts the lines; err is what all further calls return.
	records int64
	err     error
	// stopped: the goroutine has ended; ended: the end record is written.
	stopped, ended, closed bool

	// What follows is the goroutine's until it has ended.
	out    io.Writer
	zstd   *zstd.Encoder // nil if plain; then out is the stream below
	digest hash.Hash
}

// written is a batch that the goroutine has done with, and the first error so far.
type written struct {
	lines []byte
	err   error
}

// NewWriter returns a Writer on w, which is not closed by it. The stream is
// compressed with zstd at its fastest level unless plain is set. An empty
// stream is nothing at all, compressed or not.
func NewWriter(w io.Writer, plain bool) *Writer {
	wr := &Writer{
		lines:  make([]byte, 0, batchSize+batchSize/16),
		full:   make(chan []byte, batches),
		free:   make(chan written, batches),
		out:    w,
		digest: sha256.New(),
	}
	for range batches - 1 {
		wr.free <- written{lines: make([]byte, 0, cap(wr.lines))}
	}
	if !plain {
		wr.zstd = newEncoder(w)
		wr.out = wr.zstd
	}
	wr.json = json.NewEncoder((*appender)(&wr.lines))
	wr.json.SetEscapeHTML(false)
	go wr.drain()
	return wr
}

func newEncoder(w io.Writer) *zstd.Encoder {
	enc, err := zstd.NewWriter(w, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	if err != nil {
		panic("record: " + err.Error()) // only wrong options do that
	}
	return enc
}

// appender is an io.Writer at the end of a slice.
type appender []byte

func (a *appender) Write(p []byte) (int, error) {
	*a = append(*a, p...)
	return len(p), nil
}

// Header writes h, of which it fills Kind and Schema. It is to be the first
// record, and leaves at once: whoever reads then knows that there is a stream,
// and that it is truncated if nothing follows.
func (w *Writer) Header(h *Header) error {
	c := *h
	c.Kind, c.Schema = KindHeader, Schema
	if err := w.Any(&c); err != nil {
		return err
	}
	return w.send()
}

// Request writes r.
func (w *Writer) Request(r *Request) error {
	if w.err != nil {
		return w.err
	}
	return w.line(appendRequest(w.lines, r))
}

// Session writes s.
func (w *Writer) Session(s *Session) error {
	if w.err != nil {
		return w.err
	}
	return w.line(appendSession(w.lines, s))
}

// Outcome writes o. It is an error if a number of it is not finite.
func (w *Writer) Outcome(o *Outcome) error {
	if w.err != nil {
		return w.err
	}
	if !finite(o.Priority) {
		return fmt.Errorf("outcome %q: priority is %v, which has no place in JSON", o.ID, o.Priority)
	}
	return w.line(appendOutcome(w.lines, o))
}

// Decision writes d. It is an error if a number of it is not finite.
func (w *Writer) Decision(d *Decision) error {
	if w.err != nil {
		return w.err
	}
	if !finite(d.Score) {
		return fmt.Errorf("decision %q: score is %v, which has no place in JSON", d.ID, d.Score)
	}
	return w.line(appendDecision(w.lines, d, &w.numbers))
}

// Step writes s.
func (w *Writer) Step(s *Step) error {
	if w.err != nil {
		return w.err
	}
	return w.line(appendStep(w.lines, s))
}

// Any writes v, a record that has its kind set, with encoding/json.
func (w *Writer) Any(v any) error {
	if w.err != nil {
		return w.err
	}
	if err := w.json.Encode(v); err != nil {
		return fmt.Errorf("writing a record: %w", err)
	}
	w.records++
	return w.handOver()
}

// Raw writes one record as it was read, without its line feed.
func (w *Writer) Raw(line []byte) error {
	if w.err != nil {
		return w.err
	}
	if len(line) == 0 || bytes.IndexByte(line, '\n') >= 0 {
		return fmt.Errorf("record: %.40q is not one line", line)
	}
	return w.line(append(w.lines, line...))
}

// End ends the stream with e, of which it fills Kind, Records and Digest. Only
// Close may follow.
func (w *Writer) End(e *End) error {
	if err := w.stop(); err != nil {
		return err
	}
	c := *e
	c.Kind, c.Records, c.Digest = KindEnd, w.records, hex.EncodeToString(w.digest.Sum(nil))
	if err := w.json.Encode(&c); err != nil {
		return fmt.Errorf("writing the end record: %w", err)
	}
	if _, w.err = w.out.Write(w.lines); w.err == nil {
		w.ended, w.err = true, errEnded
		return nil
	}
	return w.err
}

// Close writes what is still held back. A stream closed without End is
// truncated, but its lines are whole. Closing again does nothing.
func (w *Writer) Close() error {
	if w.closed {
		return nil
	}
	w.closed = true
	err := w.stop()
	if w.ended {
		err = nil
	}
	if err == nil && w.zstd != nil && w.records > 0 {
		err = w.zstd.Close()
	}
	w.err = cmp.Or(err, errEnded)
	return err
}

// line takes lines, which is w.lines and one record without its line feed.
func (w *Writer) line(lines []byte) error {
	w.lines = append(lines, '\n')
	w.records++
	return w.handOver()
}

// handOver gives the lines to the goroutine if they make a batch, and takes an
// empty one instead.
func (w *Writer) handOver() error {
	if len(w.lines) < batchSize {
		return nil
	}
	return w.send()
}

// send is handOver of however few lines.
func (w *Writer) send() error {
	w.full <- w.lines
	next := <-w.free
	w.lines, w.err = next.lines[:0], next.err
	return w.err
}

// stop ends the goroutine once it has written all lines. From then on its part
// of the Writer belongs to the caller.
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

// drain is the writer's goroutine. After an error it only returns batches.
func (w *Writer) drain() {
	defer close(w.free)
	var err error
	first := true
	for lines := range w.full {
		if err == nil {
			w.digest.Write(lines)
			_, err = w.out.Write(lines)
		}
		if err == nil && first && w.zstd != nil {
			err = w.zstd.Flush() // the header waits for nobody
		}
		first = false
		w.free <- written{lines, err}
	}
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
