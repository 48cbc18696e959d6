package stream

import (
	"bytes"
	"errors"
	"io"

	"github.com/klauspost/compress/zstd"
)

const (
	// maxLine is the longest line, which bounds what a reader holds.
	maxLine = 64 << 20
	// maxWindow is the furthest that compressed data may refer back: what the
	// zstd program writes at most with --ultra and takes by default.
	maxWindow = 128 << 20
)

var magic = []byte{0x28, 0xb5, 0x2f, 0xfd} // of a zstd frame

// How reading ends, beside io.EOF and the errors of the stream below.
var (
	errCut  = errors.New("cut off")
	errLong = errors.New("line too long")
)

// corruptError is what is wrong with compressed data.
type corruptError struct{ error }

// batch is some whole lines. With err they are the last, and a line after them
// may lack its line feed.
type batch struct {
	lines []byte
	err   error
}

// ahead reads a stream ahead of its Reader, in a goroutine.
type ahead struct {
	full chan batch
	free chan []byte
	quit chan struct{}
}

func readAhead(r io.Reader) *ahead {
	a := &ahead{make(chan batch, batches), make(chan []byte, batches), make(chan struct{})}
	for range batches {
		a.free <- make([]byte, batchSize)
	}
	go a.fill(r)
	return a
}

// next returns the next batch in exchange for the one done with.
func (a *ahead) next(done batch) batch {
	if done.lines != nil {
		a.free <- done.lines[:cap(done.lines)]
	}
	return <-a.full
}

// stop ends the goroutine, once the stream below lets go of it.
func (a *ahead) stop() { close(a.quit) }

func (a *ahead) fill(r io.Reader) {
	lines, closeLines := decompressed(r)
	defer closeLines()
	var rest []byte // the beginning of a line, at the end of the batch before
	for {
		var buf []byte
		select {
		case buf = <-a.free:
		case <-a.quit:
			return
		}
		buf = append(buf[:0], rest...)
		var full batch
		full, rest = readLines(lines, buf)
		select {
		case a.full <- full:
		case <-a.quit:
			return
		}
		if full.err != nil {
			return
		}
	}
}

// readLines reads on behind the bytes that buf holds until there is a line
// feed, and returns the whole lines and what is left of the last one.
func readLines(r io.Reader, buf []byte) (full batch, rest []byte) {
	for {
		if len(buf) == cap(buf) {
			buf = append(buf, make([]byte, len(buf))...)[:len(buf)]
		}
		n, err := r.Read(buf[len(buf):cap(buf)])
		end := bytes.LastIndexByte(buf[len(buf):len(buf)+n], '\n') + 1
		whole := len(buf) + end
		buf = buf[:len(buf)+n]
		switch {
		case err != nil:
			return batch{buf, err}, nil
		case end > 0:
			return batch{buf[:whole], nil}, buf[whole:]
		case len(buf) > maxLine:
			return batch{nil, errLong}, nil
		}
	}
}

// decompressed returns what r holds, decompressed if it is zstd, and what is to
// be called in the end.
func decompressed(r io.Reader) (io.Reader, func()) {
	below := &source{r: r}
	head := make([]byte, len(magic))
	n, _ := io.ReadFull(below, head) // its error comes again
	head = head[:n]
	whole := io.MultiReader(bytes.NewReader(head), below)
	if n == 0 || !bytes.HasPrefix(magic, head) {
		return whole, func() {}
	}
	dec, err := zstd.NewReader(whole, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		panic("record: " + err.Error()) // only wrong options do that
	}
	return &unpacked{dec, below}, dec.Close
}

// source is a reader that remembers its error.
type source struct {
	r   io.Reader
	err error
}

func (s *source) Read(p []byte) (n int, err error) {
	if s.err == nil {
		n, s.err = s.r.Read(p)
	}
	return n, s.err
}

// unpacked is a decoder that tells errors of its source from faults of the
// compressed data.
type unpacked struct {
	dec   *zstd.Decoder
	below *source
}

func (u *unpacked) Read(p []byte) (int, error) {
	n, err := u.dec.Read(p)
	switch {
	case err == nil || err == io.EOF:
	case u.below.err != nil && u.below.err != io.EOF:
		err = u.below.err
	case errors.Is(err, io.ErrUnexpectedEOF):
		err = errCut
	default:
		err = corruptError{err}
	}
	return n, err
}
