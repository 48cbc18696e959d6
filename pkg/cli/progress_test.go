package cli

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestProgressShowsShareOfFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "workload.jsonl")
	if err := os.WriteFile(name, make([]byte, 1000), 0o666); err != nil {
		t.Fatal(err)
	}
	var line bytes.Buffer
	show := &progress{tool: "blis-sim", w: &line}
	in, err := openInput(context.WithValue(t.Context(), progressKey{}, show), name, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if _, err := io.CopyN(io.Discard, in, 250); err != nil {
		t.Fatal(err)
	}
	if show.show("40 requests"); !strings.Contains(line.String(), "blis-sim: 40 requests, 25 % of workload.jsonl, ") {
		t.Errorf("the line is %q", line.String())
	}
	for _, c := range []struct {
		read int64
		want string
	}{
		{0, ""},
		{250, ", 25 % of a.jsonl, 30s left"},
		{1000, ""},
	} {
		if got := shareText("x/a.jsonl", c.read, 1000, 10*time.Second); got != c.want {
			t.Errorf("after %d bytes: %q, want %q", c.read, got, c.want)
		}
	}
}
