package stream

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestWriterWritesAllKinds(t *testing.T) {
	var b bytes.Buffer
	w := NewWriter(&b, true)
	must(t, w.Header(&Header{Stream: StreamRun, Tool: "t", Version: "v"}))
	must(t, w.Request(&Request{ID: "r", DeadlineUS: Never}))
	must(t, w.Decision(&Decision{ID: "d", Deployment: "main", Score: 0.25}))
	must(t, w.Step(&Step{Deployment: "main", EndUS: 5}))
	must(t, w.Raw([]byte(`{"kind":"new", "x":1}`)))
	must(t, w.Any(struct {
		Kind string `json:"kind"`
		Text string `json:"text"`
	}{"metrics", "a<b"}))
	must(t, w.End(&End{Requests: &Counts{Offered: 1, Completed: 1}}))
	must(t, w.Close())
	must(t, w.Close())
	const want = runHeader + `{"kind":"request","id":"r","arrival_us":0,"input_tokens":0,"output_tokens":0}
{"kind":"decision","id":"d","stage":"","at_us":0,"request":"","deployment":"main","replica":0,"score":0.25,` +
		`"candidates":0}
{"kind":"step","deployment":"main","replica":0,"start_us":0,"end_us":5,"prefill_tokens":0,"decode_tokens":0,` +
		`"running":0,"waiting":0,"used_blocks":0,"preempted":0,"batch":[]}
{"kind":"new", "x":1}
{"kind":"metrics","text":"a<b"}
`
	end := fmt.Sprintf(`{"kind":"end","records":6,"digest":"%x","requests":{"offered":1,"completed":1,"rejected":0,`+
		`"timed_out":0,"failed":0,"unfinished":0,"beyond_horizon":0}}`+"\n", sha256.Sum256([]byte(want)))
	if diff := cmp.Diff(want+end, b.String()); diff != "" {
		t.Error(diff)
	}
}

func TestWriterErrors(t *testing.T) {
	var b bytes.Buffer
	w, nan := NewWriter(&b, true), math.NaN()
	for _, c := range []struct {
		err  error
		want string
	}{
		{w.Outcome(&Outcome{ID: "r", Priority: math.NaN()}),
			`outcome "r": priority is NaN, which JSON cannot represent`},
		{w.Decision(&Decision{ID: "d", Score: math.Inf(1)}),
			`decision "d": score is +Inf, which JSON cannot represent`},
		{w.Regret(&Regret{Decision: "d", Alternatives: []Alternative{{E2EMS: &nan}}}),
			`regret of decision "d": a number is not finite, which JSON cannot represent`},
		{w.Any(func() {}), "writing a record: json: unsupported type: func()"},
		{w.Raw([]byte("{}\n{}")), `stream: "{}\n{}" is not one line`},
		{w.Raw(nil), `stream: "" is not one line`},
	} {
		if c.err == nil || c.err.Error() != c.want {
			t.Errorf("got %v, want %s", c.err, c.want)
		}
	}
	must(t, w.Step(&Step{}))
	must(t, w.End(&End{}))
	for _, err := range []error{w.Step(&Step{}), w.End(&End{}), w.Any(&End{}), w.Raw([]byte("{}"))} {
		if err == nil {
			t.Error("the writer accepted a record after the end record")
		}
	}
	must(t, w.Close())
	if n := strings.Count(b.String(), "\n"); n != 2 {
		t.Errorf("%d lines, want the step and the end:\n%s", n, b.String())
	}
}

// A stream without records is empty; one without End is truncated, not corrupt.
func TestCloseWithoutEnd(t *testing.T) {
	for _, plain := range []bool{true, false} {
		var b bytes.Buffer
		must(t, NewWriter(&b, plain).Close())
		if b.Len() > 0 {
			t.Errorf("plain %v: an empty stream has %d bytes", plain, b.Len())
		}
		w := NewWriter(&b, plain)
		must(t, w.Header(&Header{Stream: StreamRun}))
		must(t, w.Close())
		if got := read(&b).Err; !strings.HasPrefix(got, "stream: truncated: no end record after line 1;") {
			t.Errorf("plain %v: %s", plain, got)
		}
	}
}

// limitedWriter accepts that many bytes and then fails.
type limitedWriter int

func (b *limitedWriter) Write(p []byte) (int, error) {
	if *b -= limitedWriter(len(p)); *b < 0 {
		return 0, syscall.EPIPE
	}
	return len(p), nil
}

// TestWriteErrorsAreReturned: also, the writers leave no goroutine behind, or the bubble would report it.
func TestWriteErrorsAreReturned(t *testing.T) {
	synctest.Test(t, testWriteErrors)
}

func testWriteErrors(t *testing.T) {
	for _, plain := range []bool{true, false} {
		for _, room := range []limitedWriter{0, 100 << 10, 1 << 20} {
			w := NewWriter(&room, plain)
			var err error
			records := 0
			for ; err == nil && records < 1e6; records++ {
				// Varied, so that compression does not hide them.
				err = w.Step(&Step{StartUS: Micros(records * records), EndUS: Micros(records * 7919)})
			}
			if !errors.Is(err, syscall.EPIPE) {
				t.Fatalf("plain %v: after %d records: %v", plain, records, err)
			}
			for _, err := range []error{w.Step(&Step{}), w.End(&End{}), w.Close()} {
				if !errors.Is(err, syscall.EPIPE) {
					t.Errorf("plain %v: a later call returned %v", plain, err)
				}
			}
		}
		// Fewer lines than a batch fail at the end.
		nothing := limitedWriter(0)
		w := NewWriter(&nothing, plain)
		must(t, w.Step(&Step{}))
		if err := errors.Join(w.End(&End{}), w.Close()); !errors.Is(err, syscall.EPIPE) {
			t.Errorf("plain %v: End and Close returned %v", plain, err)
		}
	}
}

func TestWritingAllocatesNothing(t *testing.T) {
	var sink limitedWriter = math.MaxInt
	w := NewWriter(&sink, true)
	defer w.Close()
	r := Request{ID: "req-1", Prompt: []Segment{{ID: "p", Tokens: 3}}, DeadlineUS: Never}
	o := Outcome{ID: "req-1", State: StateCompleted, Priority: 0.1, ITLUS: [][2]int64{{1, 2}}, SLOMet: BoolPtr(true)}
	d := Decision{ID: "dec-1", Score: 0.123456}
	s := Step{Deployment: "main"}
	const runs = 5000 // more than a batch
	allocs := testing.AllocsPerRun(runs, func() {
		must(t, w.Request(&r))
		must(t, w.Outcome(&o))
		must(t, w.Decision(&d))
		must(t, w.Step(&s))
	})
	if allocs != 0 {
		t.Errorf("%v allocations for four records", allocs)
	}
}

// TestHeaderIsReadAtOnce: a reader of a compressed stream has the header before the writer goes on.
func TestHeaderIsReadAtOnce(t *testing.T) {
	out, in := io.Pipe()
	w := NewWriter(in, false)
	read := make(chan *Header)
	go func() {
		r := NewReader(out)
		r.Next()
		read <- r.Header()
		for r.Next() {
		}
	}()
	must(t, w.Header(&Header{Stream: StreamRun, Tool: "t", Version: "v"}))
	select {
	case h := <-read:
		if h == nil || h.Tool != "t" {
			t.Errorf("header %+v", h)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the reader waits for more")
	}
	must(t, w.End(&End{}))
	must(t, w.Close())
	must(t, in.Close())
}

// TestArrivals: requests and sessions are read as what they are.
func TestArrivals(t *testing.T) {
	var b bytes.Buffer
	w := NewWriter(&b, true)
	must(t, w.Header(&Header{Stream: StreamWorkload, Tool: "t", Version: "v"}))
	request := Arrival{Request: Request{ID: "r", ArrivalUS: 5, DeadlineUS: Never, OutputTokens: 1, InputTokens: 2}}
	session := Arrival{IsSession: true, Session: Session{ID: "s", ArrivalUS: 7, UntilUS: Never,
		Steps: []SessionStep{{ID: "0", Extends: NoIndex, InputTokens: 3, OutputTokens: 4}}}}
	must(t, w.Arrival(&request))
	must(t, w.Arrival(&session))
	must(t, w.Arrival(&request))
	must(t, w.End(&End{}))
	must(t, w.Close())
	r := NewReader(&b)
	var got []string
	var a Arrival
	for r.Next() {
		if k := r.Kind(); k == KindRequest || k == KindSession {
			must(t, r.Arrival(&a))
			got = append(got, fmt.Sprint(a.IsSession, *a.ID(), *a.At()))
		}
	}
	must(t, r.Err())
	if want := []string{"falser5", "trues7", "falser5"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestPrintable: names are shown as they are, but for what terminals act on.
func TestPrintable(t *testing.T) {
	for name, want := range map[string]string{"": "", "a b": "a b", `a"b\c`: `a"b\c`, "a\x1b[1m": `a\x1b[1m`,
		"é\n": `\u00e9\n`} {
		if got := Printable(name); got != want {
			t.Errorf("%q is shown as %q, want %q", name, got, want)
		}
	}
	if got := ShortDigest("0123456789abcdef"); got != "0123456789ab" {
		t.Errorf("the short digest is %s", got)
	}
}
