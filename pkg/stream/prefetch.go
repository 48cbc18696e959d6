package stream

import (
	"bytes"
	"errors"
	"io"

	"github.com/klauspost/compress/zstd"
)

const (
	// maxLine is the length of the longest accepted line; it bounds a reader's memory.
	maxLine = 64 << 20
	// maxWindow is the largest accepted zstd window: the largest that zstd --ultra
	// writes, and that the zstd program reads by default.
	maxWindow = 128 << 20
)

var magic = []byte{0x28, 0xb5, 0x2f, 0xfd} // begins a zstd frame

// Errors that end reading, besides io.EOF and the errors of the underlying stream.
var (
	errTruncated   = errors.New("truncated")
	errLineTooLong = errors.New("line too long")
)

// corruptError wraps a decoder's error about corrupt compressed data.
type corruptError struct{ error }

// batch holds complete lines. If err is set, it is the last batch, and its last
// line may lack its line feed.
type batch struct {
	lines []byte
	err   error
}

// prefetcher reads and decompresses a stream ahead of its Reader, in a goroutine.
type prefetcher struct {
	full chan batch
	free chan []byte
	quit chan struct{}
}

func startPrefetch(r io.Reader) *prefetcher {
	a := &prefetcher{make(chan batch, batches), make(chan []byte, batches), make(chan struct{})}
	for range batches {
		a.free <- make([]byte, batchSize)
	}
	go a.fill(r)
	return a
}

// next returns the next batch and recycles the memory of done.
func (a *prefetcher) next(done batch) batch {
	if done.lines != nil {
		a.free <- done.lines[:cap(done.lines)]
	}
	return <-a.full
}

// stop ends the goroutine as soon as its pending read returns.
func (a *prefetcher) stop() { close(a.quit) }

func (a *prefetcher) fill(r io.Reader) {
	lines, closeLines := newDecompressor(r)
	defer closeLines()
	var rest []byte // an incomplete line, carried over from the previous batch
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

// readLines appends to buf until it contains a line feed. It returns the complete
// lines, and the beginning of the next line as rest.
func readLines(r io.Reader, buf []byte) (full batch, rest []byte) {
	for {
		if len(buf) == cap(buf) {
			buf = append(buf, make([]byte, len(buf))...)[:len(buf)]
		}
		n, err := r.Read(buf[len(buf):cap(buf)])
		end := bytes.LastIndexByte(buf[len(buf):len(buf)+n], '\n') + 1
		complete := len(buf) + end
		buf = buf[:len(buf)+n]
		switch {
		case err != nil:
			return batch{buf, err}, nil
		case end > 0:
			return batch{buf[:complete], nil}, buf[complete:]
		case len(buf) > maxLine:
			return batch{nil, errLineTooLong}, nil
		}
	}
}

// newDecompressor returns a reader of r, decompressed if r is zstd, and a function
// that releases it.
func newDecompressor(r io.Reader) (io.Reader, func()) {
	below := &stickyReader{r: r}
	head := make([]byte, len(magic))
	n, _ := io.ReadFull(below, head) // a stickyReader returns its error again
	head = head[:n]
	complete := io.MultiReader(bytes.NewReader(head), below)
	if n == 0 || !bytes.HasPrefix(magic, head) {
		return complete, func() {}
	}
	dec, err := zstd.NewReader(complete, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		panic("stream: " + err.Error()) // only invalid options cause it
	}
	return &zstdReader{dec, below}, dec.Close
}

// stickyReader returns its first error again on every later call.
type stickyReader struct {
	r   io.Reader
	err error
}

func (s *stickyReader) Read(p []byte) (n int, err error) {
	if s.err == nil {
		n, s.err = s.r.Read(p)
	}
	return n, s.err
}

// zstdReader decompresses and distinguishes errors of its source from corrupt or
// truncated data.
type zstdReader struct {
	dec    *zstd.Decoder
	source *stickyReader
}

func (u *zstdReader) Read(p []byte) (int, error) {
	n, err := u.dec.Read(p)
	switch {
	case err == nil || err == io.EOF:
	case u.source.err != nil && u.source.err != io.EOF:
		err = u.source.err
	case errors.Is(err, io.ErrUnexpectedEOF):
		err = errTruncated
	default:
		err = corruptError{err}
	}
	return n, err
}
