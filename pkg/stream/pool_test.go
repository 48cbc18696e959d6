package stream

import (
	"bytes"
	"fmt"
	"io"
	"testing"
)

// TestReusedCodecsKeepBytes: a stream has the same bytes whatever its encoder compressed before, and is read by a
// decoder that read another one or gave up in the middle of one.
func TestReusedCodecsKeepBytes(t *testing.T) {
	write := func(requests int, digits string) []byte {
		var out bytes.Buffer
		w := NewWriter(&out, false)
		if err := w.Header(&Header{Stream: StreamWorkload, Tool: "test", Version: "1"}); err != nil {
			t.Fatal(err)
		}
		for i := range requests {
			line := fmt.Appendf(nil, `{"kind":"request","id":"%s-%d","input_tokens":1,"output_tokens":1}`, digits, i*i)
			if err := w.Raw(line); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.End(&End{}); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	fresh := write(20_000, "a")
	for range 5 {
		write(30_000, "b")
		if !bytes.Equal(write(20_000, "a"), fresh) {
			t.Fatal("an encoder that was used before writes other bytes")
		}
		cut, release := Decompress(bytes.NewReader(fresh[:len(fresh)/2]))
		if _, err := io.Copy(io.Discard, cut); err == nil {
			t.Fatal("half of a stream is read without an error")
		}
		release()
		release()
		for r := NewReader(bytes.NewReader(fresh)); ; {
			if !r.Next() {
				if err := r.Err(); err != nil {
					t.Fatal(err)
				}
				break
			}
		}
	}
}
