package stream

import (
	"io"
	"os"
	"path/filepath"
	"testing"
)

func TestOpen(t *testing.T) {
	const text = "a,b\n1,2\n"
	dir := t.TempDir()
	for name, data := range map[string][]byte{"plain": []byte(text), "zstd": compress(t, text)} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(f); string(got) != text || err != nil {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := Open(filepath.Join(dir, "missing")); err == nil {
		t.Error("a missing file opens")
	}
}
