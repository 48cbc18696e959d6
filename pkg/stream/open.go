package stream

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// Open opens a file and decompresses it if it is zstd. Read returns an error that
// says so if the compressed data are truncated or corrupt.
func Open(path string) (io.ReadCloser, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	r, release := newDecompressor(f)
	return &fileStream{r, f, release}, nil
}

// Decompress returns a reader of r, decompressed if r is zstd, and a function that
// releases it. Read returns an error that says so if the compressed data are
// truncated or corrupt.
func Decompress(r io.Reader) (io.Reader, func()) {
	plain, release := newDecompressor(r)
	if z, compressed := plain.(*zstdReader); compressed {
		return describedReader{z}, release
	}
	return plain, release
}

// describedReader is a zstdReader whose errors are phrased for users.
type describedReader struct{ zstd *zstdReader }

func (d describedReader) Read(p []byte) (int, error) {
	n, err := d.zstd.Read(p)
	var corrupt corruptError
	switch {
	case err == errTruncated:
		err = errors.New("the compressed data are cut off")
	case errors.As(err, &corrupt):
		err = fmt.Errorf("the compressed data are corrupt: %w", err)
	}
	return n, err
}

// fileStream is an open file, decompressed if need be.
type fileStream struct {
	io.Reader
	file    *os.File
	release func()
}

func (f *fileStream) Close() error {
	f.release()
	return f.file.Close()
}
