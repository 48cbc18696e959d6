package stream

import (
	"bytes"
	"io"
	"testing"
)

func TestDecompressReadsPlainAndCompressed(t *testing.T) {
	const text = "a,b\n1,2\n"
	for name, data := range map[string][]byte{"plain": []byte(text), "zstd": compress(t, text)} {
		r, release := Decompress(bytes.NewReader(data))
		if got, err := io.ReadAll(r); string(got) != text || err != nil {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		release()
	}
}
