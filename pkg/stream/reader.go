package stream

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"
	"strings"
)

// Reader reads a stream, line by line:
//
//	for r.Next() {
//		switch r.Kind() {
//		case stream.KindRequest:
//			err := r.Request(&req)
//			…
//		}
//	}
//	err := r.Err()
//
// It finds out by itself whether the stream is compressed. A stream begins with
// a header and closes with an end record, else it is truncated. A stream whose
// first record is a request is a bare workload, made by hand: it may have empty
// lines, a last line without line feed, and no end. A goroutine of the Reader's
// own reads and decompresses ahead; it ends when Next returns false, or by
// Close. A Reader is for one goroutine.
type Reader struct {
	name     string
	expected []string
	ahead    *ahead
	// batch is what is being read, pos where its next line begins, hashed how
	// much of it is in digest.
	batch       batch
	pos, hashed int
	digest      hash.Hash

	line    []byte // the record at hand, without its line feed
	lines   int    // its number
	records int64
	kind    string
	header  *Header
	end     *End
	bare    bool
	err     error
	done    bool
	// warnings are what is odd and yet no error.
	warnings []string
	scan     scanner
}

// NewReader returns a Reader of r. Errors call the stream by the name that a
// method Name of r returns, if it has one.
func NewReader(r io.Reader) *Reader {
	name := "stream"
	if n, ok := r.(interface{ Name() string }); ok {
		if name = n.Name(); name == "/dev/stdin" {
			name = "stdin"
		}
	}
	return &Reader{name: name, ahead: readAhead(r), digest: sha256.New()}
}

// Expect says which kinds of stream the caller can use; another one is an error
// at its first record. A bare workload is a workload.
func (r *Reader) Expect(streams ...string) { r.expected = streams }

// Next moves to the next record, of whatever kind, header and end included. It
// returns false after the last and on error.
func (r *Reader) Next() bool {
	if r.done {
		return false
	}
	whole := r.nextLine()
	if !r.done {
		r.accept(whole)
	}
	return !r.done
}

// nextLine moves to the next line that is not empty and reports whether it had
// its line feed.
func (r *Reader) nextLine() (whole bool) {
	for {
		for r.pos == len(r.batch.lines) {
			if r.batch.err != nil {
				r.stop(r.ending(r.batch.err))
				return false
			}
			r.hash(r.pos)
			r.batch = r.ahead.next(r.batch)
			r.pos, r.hashed = 0, 0
		}
		rest := r.batch.lines[r.pos:]
		length := bytes.IndexByte(rest, '\n')
		whole = length >= 0
		if !whole {
			length = len(rest)
			if r.batch.err != io.EOF {
				r.stop(r.ending(r.batch.err))
				return false
			}
		}
		if length > maxLine {
			r.stop(r.ending(errLong))
			return false
		}
		r.line = rest[:length:length]
		r.lines++
		if len(bytes.TrimSpace(r.line)) > 0 {
			return whole
		}
		if r.header != nil || r.end != nil {
			r.stop(r.Errorf("is empty; a stream with a header has no empty lines"))
			return false
		}
		r.skipLine(whole)
	}
}

// skipLine moves behind the line at hand.
func (r *Reader) skipLine(whole bool) {
	r.pos += len(r.line)
	if whole {
		r.pos++
	}
}

// accept takes the line at hand as the next record, if it may stand here.
func (r *Reader) accept(whole bool) {
	kind, err := r.scan.kindOf(r.line)
	first := r.records == 0
	switch {
	case r.end != nil:
		err = errors.New("there is more after the end record")
	case !whole && (r.header != nil || kind == KindHeader):
		r.lines--
		r.stop(r.truncated("no end record"))
		return
	case first && foreign(r.line):
		err = errors.New("begins with a byte order mark or is UTF-16; save it as plain UTF-8")
	case err != nil:
	case first:
		err = r.begin(kind)
	case kind == KindHeader:
		err = errors.New("a header is the first record of a stream; there is one before")
	}
	if err != nil {
		r.stop(r.Errorf("%v", err))
		return
	}
	r.kind = kind
	switch kind {
	case KindEnd:
		r.hash(r.pos)
		r.readEnd()
	case KindError:
		var fault Fault
		if err = r.Decode(&fault); err == nil {
			err = &FaultError{fault}
		}
		r.stop(err)
	default:
		r.records++
	}
	r.skipLine(whole)
}

// foreign reports whether line begins as no JSON does: with a byte order mark
// of UTF-8 or UTF-16.
func foreign(line []byte) bool {
	return bytes.HasPrefix(line, []byte("\xef\xbb\xbf")) || bytes.HasPrefix(line, []byte("\xff\xfe")) || bytes.HasPrefix(line, []byte("\xfe\xff"))
}

// begin takes a record of that kind as the first of the stream.
func (r *Reader) begin(kind string) error {
	stream := StreamWorkload
	switch kind {
	case KindRequest, KindSession:
		r.bare = true
	case KindHeader:
		var err error
		if r.header, err = r.readHeader(); err != nil {
			return err
		}
		stream = r.header.Stream
	case KindError:
		return nil
	default:
		return fmt.Errorf("the first record is of kind %s; a stream begins with a header, a hand-made workload with a request or session", kind)
	}
	if r.expected != nil && !slices.Contains(r.expected, stream) {
		return fmt.Errorf("this is a %s; expected a %s", stream, strings.Join(r.expected, " or a "))
	}
	return nil
}

// stop ends the reading with err, or well.
func (r *Reader) stop(err error) {
	r.done, r.err = true, err
	r.hash(r.pos)
	r.ahead.stop()
}

// hash digests the batch up to the byte before to. The end record and what
// follows it are never digested.
func (r *Reader) hash(to int) {
	if r.end == nil && to > r.hashed {
		r.digest.Write(r.batch.lines[r.hashed:to])
		r.hashed = to
	}
}

func (r *Reader) sum() string { return hex.EncodeToString(r.digest.Sum(nil)) }
