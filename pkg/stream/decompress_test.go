package stream

import (
	"bytes"
	"compress/gzip"
	"io"
	"strings"
	"testing"
)

func TestDecompressReadsPlainAndCompressed(t *testing.T) {
	const text = "a,b\n1,2\n"
	for name, data := range map[string][]byte{"plain": []byte(text), "zstd": compress(t, text),
		"gzip": gzipped(text), "two gzip members": append(gzipped(text[:4]), gzipped(text[4:])...)} {
		r, release := Decompress(bytes.NewReader(data))
		if got, err := io.ReadAll(r); string(got) != text || err != nil {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		release()
	}
}

// gzipped compresses with another implementation of gzip than that of the readers.
func gzipped(text string) []byte {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	z.Write([]byte(text))
	z.Close()
	return packed.Bytes()
}

// TestStreamInGzip: a stream is read from gzip; cut and corrupt data are errors.
func TestStreamInGzip(t *testing.T) {
	text := `{"kind":"request","id":"a","arrival_us":0,"input_tokens":1,"output_tokens":1}` + "\n"
	packed := gzipped(text)
	flipped := bytes.Clone(packed)
	flipped[len(flipped)-6] ^= 1 // of the checksum
	for want, data := range map[string][]byte{"": packed, "the compressed data ends early": packed[:len(packed)-9],
		"ends early": packed[:5], "are corrupt after line 1: gzip: invalid checksum": flipped} {
		r := NewReader(bytes.NewReader(data))
		for r.Next() {
		}
		if err := r.Err(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// blockingSource sends to pending and waits for next in each read after the first two: that of the magic number and
// that of a line.
type blockingSource struct {
	line          []byte
	pending, next chan struct{}
	reads         int
}

func (s *blockingSource) Read(p []byte) (int, error) {
	if s.reads >= 2 {
		s.pending <- struct{}{}
		<-s.next
	}
	s.reads++
	n := copy(p, s.line)
	if s.reads == 1 {
		s.line = s.line[n:]
	}
	return n, nil
}

// TestSourceIsReleasedAfterItsLastRead: a Reader that is closed early may still read its source.
func TestSourceIsReleasedAfterItsLastRead(t *testing.T) {
	s := &blockingSource{pending: make(chan struct{}), next: make(chan struct{}),
		line: []byte(`{"kind":"request","id":"a","arrival_us":0,"input_tokens":1,"output_tokens":1}` + "\n")}
	r := NewReader(s)
	if !r.Next() {
		t.Fatal(r.Err())
	}
	<-s.pending
	released := make(chan int)
	r.CloseThen(func() { released <- s.reads })
	select {
	case <-released:
		t.Fatal("the source was released while a read was pending")
	case s.next <- struct{}{}:
	}
	if reads := <-released; reads != 3 {
		t.Errorf("the source was released after %d reads, not after the pending one", reads)
	}
}
