package stream

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
)

// runHeader is the header of a run, with its line feed.
const runHeader = `{"kind":"header","stream":"run","stream_version":2,"tool":"t","version":"v","seed":0}` + "\n"

// exampleWorkload is a stream of n requests.
func exampleWorkload(t testing.TB, n int, plain bool) []byte {
	t.Helper()
	var b bytes.Buffer
	w := NewWriter(&b, plain)
	must(t, w.Header(&Header{Stream: StreamWorkload, Tool: "test", Version: Version, Seed: 7}))
	for i := range n {
		must(t, w.Request(&Request{
			ID: fmt.Sprintf("req-%06d", i), ArrivalUS: Micros(i), InputTokens: 512, OutputTokens: int64(1 + i%300),
			Prompt: []Segment{{ID: fmt.Sprintf("prefix-%d", i%512), Tokens: 256}}, Tenant: "t1",
			SLOClass:   "interactive",
			DeadlineUS: Never,
		}))
	}
	must(t, w.End(&End{}))
	must(t, w.Close())
	return b.Bytes()
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// transcript is everything that a Reader reports about a stream.
type transcript struct {
	Lines    []string
	Kinds    []string
	Digest   string
	Warnings []string
	Err      string
}

func read(in io.Reader) transcript {
	r := NewReader(in)
	var s transcript
	for r.Next() {
		s.Lines = append(s.Lines, fmt.Sprintf("%d %s", r.Line(), r.Bytes()))
		s.Kinds = append(s.Kinds, r.Kind())
	}
	s.Digest, s.Warnings = r.Digest(), r.Warnings()
	if r.Err() != nil {
		s.Err = r.Err().Error()
	}
	return s
}

func compress(t testing.TB, data string) []byte {
	t.Helper()
	enc, err := zstd.NewWriter(nil)
	must(t, err)
	return enc.EncodeAll([]byte(data), nil)
}

func TestReadingIgnoresCompressionAndChunking(t *testing.T) {
	// Enough for several batches.
	plain, compressed := exampleWorkload(t, 5000, true), exampleWorkload(t, 5000, false)
	if len(compressed) > len(plain)/5 {
		t.Errorf("%d bytes compressed of %d plain", len(compressed), len(plain))
	}
	want := read(bytes.NewReader(plain))
	if len(want.Lines) != 5002 || want.Err != "" || want.Warnings != nil {
		t.Fatalf("%d lines, error %q, warnings %q", len(want.Lines), want.Err, want.Warnings)
	}
	lines := strings.SplitAfter(string(plain), "\n")
	end := lines[len(lines)-2]
	if !strings.Contains(end, `"records":5001,"digest":"`+want.Digest+`"`) {
		t.Errorf("digest %s, end record %s", want.Digest, end)
	}
	half := len(lines) / 2
	for name, in := range map[string]io.Reader{
		"zstd": bytes.NewReader(compressed),
		"two frames": io.MultiReader(bytes.NewReader(compress(t, strings.Join(lines[:half], ""))),
			bytes.NewReader(compress(t, strings.Join(lines[half:], "")))),
		"halves":     iotest.HalfReader(bytes.NewReader(plain)),
		"bytes":      iotest.OneByteReader(bytes.NewReader(compressed)),
		"data + EOF": iotest.DataErrReader(bytes.NewReader(plain)),
	} {
		if diff := cmp.Diff(want, read(in)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// Digest is that of the lines up to the current one, wherever it is in what was read at once.
func TestDigestUpToEachRecord(t *testing.T) {
	plain := exampleWorkload(t, 5000, true)
	want, at := sha256.New(), 0
	digest := func() string { return hex.EncodeToString(want.Sum(nil)) }
	r := NewReader(bytes.NewReader(plain))
	if r.Digest() != digest() {
		t.Errorf("the digest before the first record is %s", r.Digest())
	}
	for r.Next() {
		line := plain[at : at+bytes.IndexByte(plain[at:], '\n')+1]
		if at += len(line); r.Kind() != KindEnd {
			want.Write(line)
		}
		if r.Line()%500 < 2 && r.Digest() != digest() {
			t.Errorf("line %d: the digest is %s; want %s", r.Line(), r.Digest(), digest())
		}
	}
	if at != len(plain) || at < 3*batchSize || r.Err() != nil || r.Digest() != digest() {
		t.Errorf("%d of %d bytes, %v, digest %s; want %s", at, len(plain), r.Err(), r.Digest(), digest())
	}
}

// A stream truncated at any byte is an error.
func TestEveryTruncationIsAnError(t *testing.T) {
	for _, plain := range []bool{true, false} {
		stream := exampleWorkload(t, 3, plain)
		for n := range stream {
			s := read(bytes.NewReader(stream[:n]))
			switch {
			case s.Err == "":
				t.Errorf("plain %v: no error after %d of %d bytes", plain, n, len(stream))
			case n == 0 && !strings.HasPrefix(s.Err, "stream: truncated"),
				n > 0 && !plain && !strings.HasPrefix(s.Err, "stream: truncated: "),
				n > 200 && plain && !strings.HasPrefix(s.Err, "stream: truncated: no end record after line "):
				t.Errorf("plain %v: after %d bytes: %s", plain, n, s.Err)
			}
		}
	}
}

// A corrupt byte in a compressed stream is an error, or it changes nothing.
func TestCorruptionIsDetected(t *testing.T) {
	stream := exampleWorkload(t, 3, false)
	expected := read(bytes.NewReader(stream))
	detected := 0
	for i := range stream {
		corrupt := bytes.Clone(stream)
		corrupt[i] ^= 0x10
		s := read(bytes.NewReader(corrupt))
		if s.Err != "" {
			detected++
		} else if diff := cmp.Diff(expected, s); diff != "" {
			t.Errorf("byte %d: %s", i, diff)
		}
	}
	if detected < len(stream)*9/10 {
		t.Errorf("only %d of %d errors detected", detected, len(stream))
	}
}

func TestReaderErrors(t *testing.T) {
	const header = `{"kind":"header","stream":"workload","stream_version":2,"tool":"t","version":"v","seed":0}` + "\n"
	const end = `{"kind":"end","records":1,"digest":"d79c"}` + "\n"
	const request = exampleRequest + "\n"
	const stopped = "; the program that wrote it stopped early or failed"
	const empty = "stream: truncated: the stream is empty, without a header" + stopped
	const notUTF8 = "the line begins with a byte order mark or is UTF-16; save the file as UTF-8 without one"
	for _, c := range []struct{ in, want string }{
		{"\ufeff" + request, "stream:1: " + notUTF8},
		{"\xff\xfe{\x00\n\x00", "stream:1: " + notUTF8},
		{"", empty},
		{"\n \n", empty},
		{header, "stream: truncated: no end record after line 1" + stopped},
		{strings.TrimSpace(header), "stream: truncated: no end record after line 0" + stopped},
		{header + request, "stream: truncated: no end record after line 2" + stopped},
		{header + request + request[:20], "stream: truncated: no end record after line 2" + stopped},
		{header + strings.TrimSpace(end), "stream: truncated: no end record after line 1" + stopped},
		{header + end + request, "stream:3: unexpected data after the end record"},
		{header + end + "x", "stream:3: unexpected data after the end record"},
		{header + "\n" + request, "stream:2: the line is empty; a stream with a header must not have empty lines"},
		{header + header, "stream:2: a header must be the first record of a stream"},
		{request + header, "stream:2: a header must be the first record of a stream"},
		{end, "stream:1: the first record has kind end; " +
			"a stream begins with a header, a headerless workload with a request or session"},
		{"x", "stream:1: invalid JSON at column 1: expected {"},
		{"{}", "stream:1: kind is missing"},
		{`{"id":"x"}`, "stream:1: kind is missing"},
		{`{"kind":5}`, "stream:1: kind must be a string, not 5"},
		{`{"a":{"kind":"request"}`, "stream:1: invalid JSON at column 24: the line ends inside the record"},
		{strings.Replace(header, `"stream_version":2`, `"stream_version":3,"new":0`, 1),
			`stream:1: the stream has stream_version 3; this program reads versions 1 to 2: ` +
				`read it with tools of version "v", which wrote it`},
		{strings.Replace(header, `workload`, `workloads`, 1),
			`stream:1: unknown stream "workloads"; did you mean "workload"? (have workload, run, recording)`},
		{strings.Replace(header, `"seed":0`, `"sead":0`, 1), `stream:1: unknown field "sead"; did you mean "seed"? ` +
			`(have kind, stream, stream_version, tool, version, seed, spec_digest, shard, part, of, by, ` +
			`slo_classes, name, tier, ` +
			`priority, targets, ttft_ms, tpot_ms, e2e_ms, run, key, policy, workload_seed, sim_seed, jitter_seed, ` +
			`trace, horizon_us, itl, series_us, ` +
			`clairvoyant, counterfactual, counterfactual_us, workload, tool, seed, spec_digest, ` +
			`shard, part, of, by, ` +
			`parent, config_digest, policy, config_digest, config, recording, clock, arrivals, model, gpu, ` +
			`engine, tensor_parallel_size, replicas, target_rps)`},
		{strings.Replace(header, `"seed":0`, `"seed":-1`, 1),
			`stream:1: seed must be an integer from 0, not number -1`},
		{header + `{"kind":"end","records":"1"}` + "\n", `stream:2: records must be an integer, not string`},
		{header + `{"kind":"error","tool":"blis-gen","file":"spec.yaml","line":3,"column":5,` +
			`"message":"unknown field"}` + "\n", "blis-gen: spec.yaml:3:5: unknown field"},
		{`{"kind":"error","tool":"blis-gen","message":"no"}` + "\n", "blis-gen: no"},
		{string(compress(t, header+end)) + "{}{}{}",
			"stream: the compressed data are corrupt after line 2: invalid input: magic number mismatch"},
		{string(compress(t, header+end)) + string(compress(t, request)),
			"stream:3: unexpected data after the end record"},
	} {
		if s := read(strings.NewReader(c.in)); s.Err != c.want {
			t.Errorf("%q\n got %s\nwant %s", c.in, s.Err, c.want)
		}
	}
}

func TestHeaderlessWorkload(t *testing.T) {
	const one = `{"kind":"request","id":"1","arrival_us":0,"input_tokens":1,"output_tokens":1}`
	const two = `{"id":"2", "arrival_us":0, "input_tokens":1, "x":[{"kind":"no"},"}"], ` +
		`"output_tokens":1, "kind":"request"}`
	in := "\n" + one + "\r\n\n" + two
	s := read(strings.NewReader(in))
	want := transcript{
		Lines:  []string{"2 " + one + "\r", "4 " + two},
		Kinds:  []string{"request", "request"},
		Digest: fmt.Sprintf("%x", sha256.Sum256([]byte(in))),
	}
	if diff := cmp.Diff(want, s); diff != "" {
		t.Error(diff)
	}
}

func TestChangedRecordsAreAWarning(t *testing.T) {
	lines := strings.SplitAfter(string(exampleWorkload(t, 3, true)), "\n")
	fewer := read(strings.NewReader(strings.Join(append(lines[:2:2], lines[3:]...), "")))
	changed := read(strings.NewReader(strings.Replace(strings.Join(lines, ""), "t1", "t2", 1)))
	for _, c := range []struct {
		s    transcript
		want string
	}{
		{fewer, "stream: filtered: the end record counts 4 records, but the stream has 3: records were filtered out"},
		{changed, "stream: damaged: the records do not match the digest in the end record: records were changed"},
	} {
		if c.s.Err != "" || !cmp.Equal(c.s.Warnings, []string{c.want}) {
			t.Errorf("error %q, warnings %q, want %q", c.s.Err, c.s.Warnings, c.want)
		}
	}
}

func TestExpect(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{exampleRequest, ""},
		{runHeader, "stream:1: this is a run; expected a workload or a recording"},
		{strings.Replace(runHeader, "run", "recording", 1), ""},
	} {
		r := NewReader(strings.NewReader(c.in))
		r.Expect(StreamWorkload, StreamRecording)
		got := ""
		if !r.Next() {
			got = r.Err().Error()
		}
		if got != c.want {
			t.Errorf("%s: got %q, want %q", c.in, got, c.want)
		}
	}
}

// Format version 1 is accepted with a warning, except for records whose fields changed.
func TestFormatVersion1(t *testing.T) {
	lines := strings.Replace(runHeader, `"stream_version":2`, `"schema":1`, 1) +
		exampleRequest + "\n" + exampleOutcome + "\n" +
		`{"kind":"regret","decision":"dec-1"}` + "\n" + `{"kind":"metrics"}` + "\n" + `{"kind":"anomaly"}` + "\n" +
		`{"kind":"step"}` + "\n"
	r := NewReader(namedReader{strings.NewReader(lines), "old.jsonl"})
	const wrong = ` record has stream_version 1; this program reads version 2: ` +
		`simulate again, or read it with tools of version "v", which wrote it`
	for _, c := range []struct {
		decode func() error
		want   string
	}{
		{func() error { return nil }, ""}, // the header
		{func() error { return r.Request(new(Request)) }, ""},
		{func() error { return r.Outcome(new(Outcome)) }, ""},
		{func() error { return r.Regret(new(Regret)) }, "old.jsonl:4: the regret" + wrong},
		{func() error { return r.Decode(new(any)) }, "old.jsonl:5: the metrics" + wrong},
		{func() error { return r.Decode(new(Anomaly)) }, "old.jsonl:6: the anomaly" + wrong},
		{func() error { return r.Decode(new(Step)) }, ""},
	} {
		if !r.Next() {
			t.Fatal(r.Err())
		}
		got := ""
		if err := c.decode(); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: got %q, want %q", r.Kind(), got, c.want)
		}
	}
	want := []string{"old.jsonl: it has stream_version 1, not 2: its metrics, regret, anomaly " +
		"records cannot be read, all others can; write it again to update it"}
	if diff := cmp.Diff(want, r.Warnings()); diff != "" {
		t.Error(diff)
	}
	workload := strings.NewReplacer(`"stream_version":2`, `"schema":1`, `"run"`, `"workload"`).Replace(runHeader)
	want = []string{"stream: it has stream_version 1, not 2: all its records can be read; " +
		"write it again to update it"}
	if diff := cmp.Diff(want, read(strings.NewReader(workload)).Warnings); diff != "" {
		t.Error(diff)
	}
}

func TestLineTooLong(t *testing.T) {
	long := `{"kind":"request","id":"` + strings.Repeat("x", maxLine-26) + `"}`
	for _, c := range []struct{ in, want string }{
		{exampleRequest + "\n" + long + "\n", ""},
		{exampleRequest + "\nx" + long + "\n" + exampleRequest, "stream:2: the line is longer than 64 MiB"},
		{exampleRequest + "\nx" + long + long[:batchSize], "stream:2: the line is longer than 64 MiB"},
	} {
		r := NewReader(strings.NewReader(c.in))
		for r.Next() {
		}
		if got := fmt.Sprint(r.Err()); got != c.want && (c.want != "" || r.Err() != nil) {
			t.Errorf("%d bytes: got %s, want %q", len(c.in), got, c.want)
		}
	}
}

// An error of the underlying reader is not reported as truncation and can be unwrapped.
func TestReadErrorsAreWrapped(t *testing.T) {
	for _, plain := range []bool{true, false} {
		stream := exampleWorkload(t, 1000, plain)
		r := NewReader(io.MultiReader(bytes.NewReader(stream[:len(stream)/2]), iotest.ErrReader(syscall.EIO)))
		for r.Next() {
		}
		if !errors.Is(r.Err(), syscall.EIO) {
			t.Errorf("plain %v: %v", plain, r.Err())
		}
	}
}

func TestErrorRecordIsReturned(t *testing.T) {
	var b bytes.Buffer
	w := NewWriter(&b, true)
	want := ErrorRecord{Kind: KindError, Tool: "blis-gen", File: "spec.yaml", Line: 3, Col: 5, Msg: "unknown field"}
	must(t, w.Header(&Header{Stream: StreamWorkload}))
	must(t, w.Any(&want))
	must(t, w.End(&End{}))
	must(t, w.Close())
	r := NewReader(&b)
	for r.Next() {
	}
	var fault *UpstreamError
	if !errors.As(r.Err(), &fault) || fault.Fault != want {
		t.Errorf("got %v", r.Err())
	}
}

// namedReader is a reader with a file name.
type namedReader struct {
	io.Reader
	name string
}

func (n namedReader) Name() string { return n.name }

func TestErrorsNameTheStream(t *testing.T) {
	for name, want := range map[string]string{
		"/dev/stdin": "stdin:1: kind is missing", "w.jsonl": "w.jsonl:1: kind is missing",
	} {
		if s := read(namedReader{strings.NewReader("{}"), name}); s.Err != want {
			t.Errorf("got %s, want %s", s.Err, want)
		}
	}
}

func TestReaderClosedEarly(t *testing.T) {
	r := NewReader(bytes.NewReader(exampleWorkload(t, 5000, false)))
	if !r.Next() || r.Header().Seed != 7 {
		t.Fatalf("no header: %v", r.Err())
	}
	must(t, r.Close())
	must(t, r.Close())
	if r.Next() || r.Err() == nil {
		t.Errorf("after Close: error %v", r.Err())
	}
}

func FuzzReader(f *testing.F) {
	for _, plain := range []bool{true, false} {
		f.Add(exampleWorkload(f, 2, plain))
	}
	f.Add([]byte(exampleRequest + "\n\n" + exampleRequest))
	f.Fuzz(func(t *testing.T, stream []byte) {
		expected := read(bytes.NewReader(stream))
		pieces := read(iotest.OneByteReader(bytes.NewReader(stream)))
		if diff := cmp.Diff(expected, pieces); diff != "" {
			t.Fatalf("at once and byte by byte differ: %s", diff)
		}
		if expected.Err != "" || bytes.HasPrefix(stream, zstdMagic) {
			return
		}
		compressed := read(bytes.NewReader(compress(t, string(stream))))
		if diff := cmp.Diff(expected, compressed); diff != "" {
			t.Fatalf("plain and compressed differ: %s", diff)
		}
		if expected.Kinds[0] == KindHeader && expected.Kinds[len(expected.Kinds)-1] != KindEnd {
			t.Fatal("a stream with a header and without an end was accepted as complete")
		}
	})
}
