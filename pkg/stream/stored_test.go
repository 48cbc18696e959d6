package stream

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"syscall"
	"testing"
)

// TestStoredIsReadBack: a zstd decoder reads what was written, in pieces of any size, and nothing is held back.
func TestStoredIsReadBack(t *testing.T) {
	data := make([]byte, 3*storedBlock+1)
	for i := range data {
		data[i] = byte(i * i >> 7)
	}
	for _, piece := range []int{1000, storedBlock - 1, storedBlock, storedBlock + 1, len(data)} {
		var out bytes.Buffer
		s := NewStored(&out)
		written := 0
		for part := range slices.Chunk(data, piece) {
			n, err := s.Write(part)
			must(t, err)
			if written += n; out.Len() < written {
				t.Fatalf("pieces of %d: %d bytes of %d were written", piece, out.Len(), written)
			}
		}
		must(t, s.Close())
		back, release := Decompress(&out)
		got, err := io.ReadAll(back)
		release()
		must(t, err)
		if !bytes.Equal(got, data) {
			t.Errorf("pieces of %d: other bytes are read", piece)
		}
	}
}

// TestStoredBytes: a frame of the bytes "ab". The descriptor 0 says: a window, no length, no checksum. The window of
// 2^17 bytes is 17 - 10 in the upper five bits. A block of two raw bytes is 2 << 3, the empty last block 1.
func TestStoredBytes(t *testing.T) {
	var out bytes.Buffer
	s := NewStored(&out)
	must(t, s.Close())
	if n, err := s.Write(nil); n != 0 || err != nil || out.Len() > 0 {
		t.Errorf("without bytes: %d, %v and %x", n, err, out.Bytes())
	}
	_, err := s.Write([]byte("ab"))
	must(t, err)
	must(t, s.Close())
	must(t, s.Close())
	want := []byte("\x28\xb5\x2f\xfd\x00\x38\x10\x00\x00ab\x01\x00\x00")
	if !bytes.Equal(out.Bytes(), want) {
		t.Errorf("%x, want %x", out.Bytes(), want)
	}
}

func TestStoredReturnsWriteErrors(t *testing.T) {
	room := limitedWriter(20)
	s := NewStored(&room)
	if _, err := s.Write(make([]byte, 30)); !errors.Is(err, syscall.EPIPE) {
		t.Error(err)
	}
	if err := s.Close(); !errors.Is(err, syscall.EPIPE) {
		t.Error(err)
	}
}
