package stream

import (
	"io"
	"slices"
)

const (
	// storedBlock is the most bytes in a block of a zstd frame, and the window of the frames that Stored writes.
	storedBlock  = 128 << 10
	storedWindow = 7 << 3 // a window of 2^(10+7) bytes
	lastBlock    = 1
)

// Stored writes what it gets as a zstd frame of raw blocks (RFC 8878, section 3.1.1.2): the form of zstd
// data that costs nearly no time and saves no bytes, for pipes. It writes nothing before the first
// bytes, and holds none back.
type Stored struct {
	w     io.Writer
	frame []byte
	begun bool
}

// NewStored returns a Stored on w.
func NewStored(w io.Writer) *Stored { return &Stored{w: w} }

// Write writes p in blocks.
func (s *Stored) Write(p []byte) (int, error) {
	s.frame = s.frame[:0]
	if !s.begun && len(p) > 0 {
		s.begun, s.frame = true, append(append(s.frame, zstdMagic...), 0, storedWindow)
	}
	for block := range slices.Chunk(p, storedBlock) {
		s.frame = append(appendBlockHeader(s.frame, len(block), 0), block...)
	}
	if _, err := s.w.Write(s.frame); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Close ends the frame, if one was begun. It does not close the writer below.
func (s *Stored) Close() error {
	if !s.begun {
		return nil
	}
	s.begun = false
	_, err := s.w.Write(appendBlockHeader(s.frame[:0], 0, lastBlock))
	return err
}

// appendBlockHeader appends the header of a raw block of n bytes: 24 bits from the lowest on, of which the first says
// that it is the last block and the next two are its type, 0.
func appendBlockHeader(to []byte, n, last int) []byte {
	h := n<<3 | last
	return append(to, byte(h), byte(h>>8), byte(h>>16))
}
