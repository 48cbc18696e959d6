package cli

import (
	"blis/pkg/stream"
	"bytes"
	"io"
	"iter"
	"os"
	"path/filepath"
	"testing"
)

// callsIn returns functions for a new folder: in names a file there, call runs a tool and returns what it writes to
// stderr and its exit code, and must is call of what must succeed.
func callsIn(t *testing.T) (in func(name string) string, call func(Tool, ...string) (bytes.Buffer, int),
	must func(Tool, ...string)) {
	folder := t.TempDir()
	in = func(name string) string { return filepath.Join(folder, name) }
	call = func(tool Tool, args ...string) (complaints bytes.Buffer, code int) {
		code = tool.run(t.Context(), args, standardStreams{Out: io.Discard, Err: &complaints})
		return complaints, code
	}
	must = func(tool Tool, args ...string) {
		t.Helper()
		if complaints, code := call(tool, args...); code != exitOK {
			t.Fatalf("%s %q: %s", tool.name, args, &complaints)
		}
	}
	return in, call, must
}

// records reads the stream of a file: it yields the reader at each record.
func records(t *testing.T, name string) iter.Seq[*stream.Reader] {
	return func(yield func(*stream.Reader) bool) {
		t.Helper()
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		r := stream.NewReader(f)
		for r.Next() {
			if !yield(r) {
				return
			}
		}
		if r.Err() != nil {
			t.Fatal(r.Err())
		}
	}
}
