package record

import (
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
// called in the end. Reading may end in such an error, too.
func Decompress(r io.Reader) (io.Reader, func()) { return decompressed(r) }

type opened struct {
	io.Reader
	file *os.File
	done func()
}

func (o *opened) Close() error {
	o.done()
	return o.file.Close()
}
