package cli

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"blis/pkg/stream"
)

// TestStreamsInPipes: a stream in a pipe is a zstd frame whose lines are readable as they are, since nothing is
// compressed, also that of a call that fails. In other outputs it is as asked for.
func TestStreamsInPipes(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "bad.yaml")
	if err := os.WriteFile(bad, []byte("version: \"2\"\nseed: x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		args []string
		code int
	}{
		{"a workload", []string{"--requests", "2000"}, exitOK},
		{"a call with a bad spec", []string{bad}, exitFailed},
	} {
		var plain, errs bytes.Buffer
		code := Gen.run(t.Context(), append(c.args, "--plain"), standardStreams{nil, &plain, &errs})
		if code != c.code {
			t.Fatalf("%s: exit %d: %s", c.name, code, errs.String())
		}
		framed := inPipe(t, Gen, c.args, c.code)
		if !bytes.HasPrefix(framed, []byte("\x28\xb5\x2f\xfd")) ||
			!strings.Contains(string(framed), plain.String()[:100]) {
			t.Errorf("%s: the pipe has %.60q", c.name, framed)
		}
		back, release := stream.Decompress(bytes.NewReader(framed))
		got, err := io.ReadAll(back)
		release()
		if err != nil || string(got) != plain.String() {
			t.Errorf("%s: the pipe has %d bytes of %d: %v", c.name, len(got), plain.Len(), err)
		}
		if got := inPipe(t, Gen, append(c.args, "--plain"), c.code); string(got) != plain.String() {
			t.Errorf("%s: --plain has no effect in a pipe", c.name)
		}
	}
}

// inPipe returns what a tool writes to a pipe.
func inPipe(t *testing.T, tool Tool, args []string, code int) []byte {
	t.Helper()
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	text := make(chan []byte)
	go func() {
		b, _ := io.ReadAll(out)
		text <- b
	}()
	var errs bytes.Buffer
	if got := tool.run(t.Context(), args, standardStreams{nil, in, &errs}); got != code {
		t.Errorf("exit %d: %s", got, errs.String())
	}
	in.Close()
	return <-text
}
