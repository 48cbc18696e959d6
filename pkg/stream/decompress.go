package stream

import (
	"bytes"
	"errors"
	"io"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// maxWindow is the largest accepted zstd window: the largest that zstd --ultra writes, and
// that the zstd program reads by default.
const maxWindow = 128 << 20

// zstdMagic begins a zstd frame, and gzipMagic a gzip member.
var zstdMagic, gzipMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}, []byte{0x1f, 0x8b}

var errTruncated = errors.New("the compressed data are cut off")

// corruptError wraps a decoder's error about corrupt compressed data.
type corruptError struct{ decoder error }

func (e corruptError) Error() string { return "the compressed data are corrupt: " + e.decoder.Error() }

// Decompress returns a reader of r, decompressed if r is zstd or gzip, and a function that
// releases it. Read returns an error that says so if the compressed data are
// truncated or corrupt.
func Decompress(r io.Reader) (io.Reader, func()) {
	below := &stickyReader{r: r}
	head := make([]byte, len(zstdMagic))
	n, _ := io.ReadFull(below, head) // a stickyReader returns its error again
	head = head[:n]
	complete := io.MultiReader(bytes.NewReader(head), below)
	if bytes.HasPrefix(head, gzipMagic) {
		return &packedReader{&stickyReader{r: &gzipReader{source: complete}}, below}, func() {}
	}
	if n == 0 || !bytes.HasPrefix(zstdMagic, head) {
		return complete, func() {}
	}
	dec := decoders.Get().(*zstd.Decoder)
	if err := dec.Reset(complete); err != nil {
		panic("stream: " + err.Error()) // only a closed decoder causes it
	}
	var once sync.Once
	return &packedReader{dec, below}, func() {
		once.Do(func() {
			_ = dec.Reset(nil) // drops the reader
			decoders.Put(dec)
		})
	}
}

// decoders are those that are not in use. Each has the window of its last stream.
var decoders = sync.Pool{New: func() any {
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		panic("stream: " + err.Error()) // only invalid options cause it
	}
	return dec
}}

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

// gzipReader decompresses gzip. It reads its source only when it is read.
type gzipReader struct {
	source io.Reader
	*gzip.Reader
}

func (g *gzipReader) Read(p []byte) (n int, err error) {
	if g.Reader == nil {
		if g.Reader, err = gzip.NewReader(g.source); err != nil {
			return 0, err
		}
	}
	return g.Reader.Read(p)
}

// packedReader distinguishes errors of the source of compressed data from corrupt or
// truncated data.
type packedReader struct {
	decoder io.Reader
	source  *stickyReader
}

func (u *packedReader) Read(p []byte) (int, error) {
	n, err := u.decoder.Read(p)
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
