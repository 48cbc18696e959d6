package stream

import (
	"bytes"
	"errors"
	"fmt"
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
// It detects compression. A stream begins with a header and ends with an end
// record; without one it is truncated. A stream whose first record is a request
// or session is a headerless workload, written by hand: it may have empty lines, a
// last line without line feed, and no end record. A goroutine of the Reader
// prefetches; it ends when Next returns false or Close is called. A Reader must be
// used by one goroutine.
type Reader struct {
	name       string
	expected   []string
	prefetcher *prefetcher
	// batch is the current batch, and pos the start of its next line.
	batch batch
	pos   int

	line       []byte // the current record, without its line feed
	lines      int    // its number
	records    int64
	kind       string
	header     *Header
	end        *End
	digest     string // that of the lines before the end record, once end is read
	headerless bool
	err        error
	done       bool
	// integrity is IntegrityOK until the end record is read; difference says what is wrong.
	integrity  Integrity
	difference string
	// warnings describe problems that do not stop the reading.
	warnings []string
	scan     scanner
}

// NewReader returns a Reader of r. Errors name the stream by the Name method of r,
// if it has one.
func NewReader(r io.Reader) *Reader {
	name := "stream"
	if n, ok := r.(interface{ Name() string }); ok {
		if name = n.Name(); name == "/dev/stdin" {
			name = "stdin"
		}
	}
	return &Reader{name: name, prefetcher: startPrefetch(r), batch: batch{digest: newDigest()}, integrity: IntegrityOK}
}

// Expect sets which kinds of stream the caller accepts; any other is an error at
// its first record. A headerless workload counts as a workload.
func (r *Reader) Expect(streams ...string) { r.expected = streams }

// Next moves to the next record of any kind, header and end included. It returns
// false after the last record and on error.
func (r *Reader) Next() bool {
	if r.done {
		return false
	}
	terminated := r.nextLine()
	if !r.done {
		r.accept(terminated)
	}
	return !r.done
}

// nextLine moves to the next line that is not empty and reports whether it ends
// with a line feed.
func (r *Reader) nextLine() (terminated bool) {
	for {
		for r.pos == len(r.batch.lines) {
			if r.batch.err != nil {
				r.stop(r.endError(r.batch.err))
				return false
			}
			r.batch = r.prefetcher.next(r.batch)
			r.pos = 0
		}
		rest := r.batch.lines[r.pos:]
		length := bytes.IndexByte(rest, '\n')
		terminated = length >= 0
		if !terminated {
			length = len(rest)
			if r.batch.err != io.EOF {
				r.stop(r.endError(r.batch.err))
				return false
			}
		}
		if length > maxLine {
			r.stop(r.endError(errLineTooLong))
			return false
		}
		r.line = rest[:length:length]
		r.lines++
		if len(bytes.TrimSpace(r.line)) > 0 {
			return terminated
		}
		if r.header != nil || r.end != nil {
			r.stop(r.Errorf("the line is empty; a stream with a header must not have empty lines"))
			return false
		}
		r.skipLine(terminated)
	}
}

// skipLine moves past the current line.
func (r *Reader) skipLine(terminated bool) {
	r.pos += len(r.line)
	if terminated {
		r.pos++
	}
}

// accept makes the current line the next record, or stops with an error.
func (r *Reader) accept(terminated bool) {
	kind, err := r.scan.kindOf(r.line)
	first := r.records == 0
	switch {
	case r.end != nil:
		err = errors.New("unexpected data after the end record")
	case !terminated && (r.header != nil || kind == KindHeader):
		r.lines--
		r.stop(r.truncated("no end record"))
		return
	case first && hasByteOrderMark(r.line):
		err = errors.New("the line begins with a byte order mark or is UTF-16; save the file as UTF-8 without one")
	case err != nil:
	case first:
		err = r.beginStream(kind)
	case kind == KindHeader:
		err = errors.New("a header must be the first record of a stream")
	}
	if err != nil {
		r.stop(r.Errorf("%v", err))
		return
	}
	r.kind = kind
	switch kind {
	case KindEnd:
		r.readEnd()
	case KindError:
		var fault ErrorRecord
		if err = r.Decode(&fault); err == nil {
			err = &UpstreamError{fault}
		}
		r.stop(err)
	default:
		r.records++
	}
	r.skipLine(terminated)
}

// hasByteOrderMark reports whether line begins with a byte order mark of UTF-8 or
// UTF-16.
func hasByteOrderMark(line []byte) bool {
	return slices.ContainsFunc([]string{"\xef\xbb\xbf", "\xff\xfe", "\xfe\xff"}, func(mark string) bool {
		return bytes.HasPrefix(line, []byte(mark))
	})
}

// beginStream handles the first record, which has that kind.
func (r *Reader) beginStream(kind string) error {
	stream := StreamWorkload
	switch kind {
	case KindRequest, KindSession:
		r.headerless = true
	case KindHeader:
		var err error
		if r.header, err = r.readHeader(); err != nil {
			return err
		}
		stream = r.header.Stream
	case KindError:
		return nil
	default:
		return fmt.Errorf("the first record has kind %s; "+
			"a stream begins with a header, a headerless workload with a request or session", kind)
	}
	if r.expected != nil && !slices.Contains(r.expected, stream) {
		return fmt.Errorf("this is a %s; expected a %s", stream, strings.Join(r.expected, " or a "))
	}
	return nil
}

// stop ends the reading; err is nil at the regular end.
func (r *Reader) stop(err error) {
	r.done, r.err = true, err
	r.prefetcher.stop()
}
