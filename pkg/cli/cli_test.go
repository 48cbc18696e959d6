package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"blis/pkg/stream"
	"blis/pkg/strictyaml"
)

// upper is a tool for tests. It copies its input in capitals and fails on request.
type upper struct {
	File string `arg:"" optional:"" default:"-" help:"Text."`
	Fail string `                               help:"How to fail."`
	common
}

func (u *upper) input() string { return u.File }

func (u *upper) run(ctx context.Context, j stdio) error {
	switch u.Fail {
	case "config":
		return &strictyaml.Error{File: "cluster.yaml", Line: 3, Col: 5, Msg: "replicas must be at least 1"}
	case "pipe":
		return &os.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.EPIPE}
	case "late":
		if _, err := io.WriteString(j.out, "half"); err != nil {
			return err
		}
		return &strictyaml.Error{File: "cluster.yaml", Line: 3, Col: 5, Msg: "too " + u.Fail}
	}
	text, err := io.ReadAll(j.in)
	if err != nil {
		return err
	}
	_, err = j.out.Write(bytes.ToUpper(text))
	return err
}

var upperTool = Tool{name: "upper", about: "Copy in capitals.", stream: stream.StreamRun,
	command: func() command { return &upper{} }}

// call runs upper and returns its outputs.
func call(t *testing.T, in string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = upperTool.run(t.Context(), args, standardStreams{strings.NewReader(in), &out, &errs})
	return code, out.String(), errs.String()
}

func TestExitCodes(t *testing.T) {
	t.Setenv("BLIS_PLAIN", "1")
	dir := t.TempDir()
	for _, c := range []struct {
		args           string
		code           int
		stdout, stderr string
	}{
		{"", 0, "TEXT", ""},
		{"-", 0, "TEXT", ""},
		{"--help", 0, "Usage: upper", ""},
		{"help", 0, "Usage: upper", ""},
		{"--version", 0, "stream version ", ""},
		{"--fial=x", 2, "", "upper: unknown flag --fial, did you mean \"--fail\"?; see upper --help\n"},
		{"a b", 2, "", "upper: unexpected argument b; see upper --help\n"},
		{filepath.Join(dir, "none"), 1, "", "none: no such file or directory\n"},
		{dir, 1, "", "is a directory\n"},
		{"-o " + filepath.Join(dir, "none", "x"), 1, "", "no such file or directory\n"},
		{"--fail=config", 1, `{"kind":"error","tool":"upper","file":"cluster.yaml","line":3,"column":5,` +
			`"message":"replicas must be at least 1"}`,
			"upper: cluster.yaml:3:5: replicas must be at least 1\n"},
		{"--fail=late", 1, "half", "upper: cluster.yaml:3:5: too late\n"},
		{"--fail=pipe", 141, "", ""},
	} {
		code, stdout, stderr := call(t, "text", strings.Fields(c.args)...)
		if code != c.code || !strings.Contains(stdout, c.stdout) || (c.stdout == "") != (stdout == "") ||
			!strings.HasSuffix(stderr, c.stderr) || (c.stderr == "") != (stderr == "") {
			t.Errorf("upper %s: exit %d\n%s\n%s\nwant exit %d\n%s\n%s", c.args, code, stdout, stderr, c.code,
				c.stdout, c.stderr)
		}
	}
}

// TestMessageDespiteClosedStdout: a failure to write the error record does not hide the error.
func TestMessageDespiteClosedStdout(t *testing.T) {
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	for how, want := range map[string]string{"config": "upper: cluster.yaml:3:5: replicas must be at least 1\n",
		"late": ""} {
		var errs bytes.Buffer
		code := upperTool.run(t.Context(), []string{"--fail=" + how}, standardStreams{strings.NewReader(""), in, &errs})
		if errs.String() != want || (code == exitFailed) != (want != "") {
			t.Errorf("%s: exit %d, %q", how, code, errs.String())
		}
	}
}

func TestErrorStreamIsComplete(t *testing.T) {
	_, stdout, _ := call(t, "", "--fail=config")
	r := stream.NewReader(strings.NewReader(stdout))
	for r.Next() {
		if r.Kind() != stream.KindHeader {
			t.Errorf("a %s record besides the error", r.Kind())
		}
	}
	var fault *stream.UpstreamError
	if !errors.As(r.Err(), &fault) || fault.Fault.Line != 3 || fault.Fault.Tool != "upper" {
		t.Errorf("read back: %v", r.Err())
	}
}

func TestOutputFile(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "out.jsonl")
	if code, stdout, _ := call(t, "text", "-o", name); code != 0 || stdout != "" {
		t.Errorf("exit %d, stdout %q", code, stdout)
	}
	if got, _ := os.ReadFile(name); string(got) != "TEXT" {
		t.Errorf("file holds %q", got)
	}
	// A failed call leaves the old file unchanged and no other file in the folder.
	if code, stdout, _ := call(t, "new", "-o", name, "--fail=late"); code != 1 || stdout != "" {
		t.Errorf("exit %d, stdout %q", code, stdout)
	}
	if got, _ := os.ReadFile(name); string(got) != "TEXT" {
		t.Errorf("file holds %q after a failure", got)
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("files left: %v", left)
	}
}

// A tool that waits for input ends on an interrupt.
func TestInterruptWhileReading(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	in, feed, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	defer feed.Close()
	ended := make(chan int)
	var out, errs bytes.Buffer
	go func() { ended <- upperTool.run(ctx, nil, standardStreams{in, &out, &errs}) }()
	if _, err := feed.WriteString("text"); err != nil {
		t.Fatal(err)
	}
	cancel()
	if code := <-ended; code != 130 || out.Len() > 0 || errs.Len() > 0 {
		t.Errorf("exit %d, stdout %q, stderr %q", code, out.String(), errs.String())
	}
}

func TestCancelableReaderKeepsBytes(t *testing.T) {
	want := make([]byte, 5<<16+17)
	for i := range want {
		want[i] = byte(i * i >> 3)
	}
	p := cancelable(t.Context(), bytes.NewReader(want))
	got, err := io.ReadAll(p)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("read %d bytes, error %v", len(got), err)
	}
	if n, err := p.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("after the end: %d, %v", n, err)
	}
}

func TestProgressWaitsAndClears(t *testing.T) {
	var w bytes.Buffer
	p := &progress{tool: "upper", w: &w, next: time.Now().Add(time.Hour)}
	p.show("early")
	p.clear()
	if w.Len() != 0 {
		t.Errorf("shown too early: %q", w.String())
	}
	p.next = time.Now()
	p.show("1 of 2")
	p.clear()
	if w.String() != "\r\x1b[Kupper: 1 of 2\r\x1b[K" {
		t.Errorf("wrote %q", w.String())
	}
	if newProgress("upper", &w).hook() != nil {
		t.Error("progress shown without a terminal")
	}
}
