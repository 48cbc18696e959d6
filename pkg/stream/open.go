package stream

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// Open opens a file of any text, decompressed if it is zstd. Reading it may end
// in an error that says that the compressed data are cut off or corrupt.
func Open(path string) (io.ReadCloser, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	r, done := decompressed(f)
	return &opened{r, f, done}, nil
}

// Decompress returns what r holds, decompressed if it is zstd, and what is to be
// called in the end. Reading may end in an error that says that the compressed
// data are cut off or corrupt.
func Decompress(r io.Reader) (io.Reader, func()) {
	plain, done := decompressed(r)
	if u, packed := plain.(*unpacked); packed {
		return worded{u}, done
	}
	return plain, done
}

// worded is an unpacked whose errors say what they are about.
type worded struct{ below *unpacked }

func (w worded) Read(p []byte) (int, error) {
	n, err := w.below.Read(p)
	var corrupt corruptError
	switch {
	case err == errCut:
		err = errors.New("the compressed data are cut off")
	case errors.As(err, &corrupt):
		err = fmt.Errorf("the compressed data are corrupt: %w", err)
	}
	return n, err
}

type opened struct {
	io.Reader
	file *os.File
	done func()
}

func (o *opened) Close() error {
	o.done()
	return o.file.Close()
}
