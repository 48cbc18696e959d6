package stream

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
)

// maxLine is the length of the longest accepted line; it bounds a reader's memory.
const maxLine = 64 << 20

// errLineTooLong ends reading.
var errLineTooLong = errors.New("line too long")

// batch holds complete lines. If err is set, it is the last batch, and its last
// line may lack its line feed. digest is the SHA-256 of all lines before it: the
// Reader needs that up to any of its lines, the last time before the end record.
type batch struct {
	lines  []byte
	err    error
	digest hash.Cloner
}

// digestTo returns the SHA-256, in hex, of the lines before the batch and of its bytes up to but not including byte to.
func (b batch) digestTo(to int) string {
	digest := clone(b.digest)
	digest.Write(b.lines[:to])
	return hex.EncodeToString(digest.Sum(nil))
}

func newDigest() hash.Cloner { return sha256.New().(hash.Cloner) }

// clone copies the state of a hash of crypto/sha256, which never fails.
func clone(digest hash.Cloner) hash.Cloner {
	c, err := digest.Clone()
	if err != nil {
		panic(err)
	}
	return c
}

// prefetcher reads, decompresses and digests a stream ahead of its Reader, in a goroutine.
type prefetcher struct {
	full chan batch
	free chan []byte
	// ended is closed when the goroutine no longer reads.
	ended chan struct{}
}

func startPrefetch(r io.Reader) *prefetcher {
	a := &prefetcher{make(chan batch, batches), make(chan []byte, batches), make(chan struct{})}
	for range batches {
		a.free <- nil
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
func (a *prefetcher) stop() {
	close(a.free)
	for range a.free { // the goroutine gets no more memory
	}
}

func (a *prefetcher) fill(r io.Reader) {
	defer close(a.ended)
	lines, release := Decompress(r)
	defer release()
	var full batch
	var rest []byte // an incomplete line, carried over from the previous batch
	digest := newDigest()
	for buf := range a.free {
		if buf == nil {
			buf = make([]byte, batchSize) // most streams need one
		}
		full, rest = readLines(lines, append(buf[:0], rest...))
		full.digest = clone(digest)
		a.full <- full // has a place for each buffer
		if full.err != nil {
			return
		}
		// After it was sent, so that the Reader need not wait: it does not write to the lines either.
		digest.Write(full.lines)
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
			return batch{lines: buf, err: err}, nil
		case end > 0:
			return batch{lines: buf[:complete]}, buf[complete:]
		case len(buf) > maxLine:
			return batch{err: errLineTooLong}, nil
		}
	}
}
