package gen

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"blis/pkg/stream"

	"github.com/cockroachdb/datadriven"
)

// generate runs o and returns the uncompressed stream.
func generate(in string, o Options) (string, error) {
	var out bytes.Buffer
	o.Plain = true
	err := Run(context.Background(), strings.NewReader(in), &out, o)
	return out.String(), err
}

// requests runs o, which must succeed, and returns the header and the requests of the stream, which
// must be complete.
func requests(t *testing.T, in string, o Options) (*stream.Header, []stream.Request) {
	t.Helper()
	text, err := generate(in, o)
	if err != nil {
		t.Fatal(err)
	}
	return decode(t, text)
}

func decode(t *testing.T, text string) (*stream.Header, []stream.Request) {
	t.Helper()
	r := stream.NewReader(strings.NewReader(text))
	var list []stream.Request
	for r.Next() {
		if r.Kind() != stream.KindRequest {
			continue
		}
		var q stream.Request
		if err := r.Request(&q); err != nil {
			t.Fatal(err)
		}
		q.Prompt = slices.Clone(q.Prompt)
		list = append(list, q)
	}
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	return r.Header(), list
}

// options parses flags as a command line does.
func options(t *testing.T, args []datadriven.CmdArg) (o Options) {
	t.Helper()
	for _, arg := range args {
		var target interface{ UnmarshalText([]byte) error }
		text := strings.Join(arg.Vals, ",")
		switch arg.Key {
		case "scenario":
			target = &o.Scenario
		case "import":
			for _, val := range arg.Vals {
				var i Import
				if err := i.UnmarshalText([]byte(val)); err != nil {
					t.Fatalf("--import: %v", err)
				}
				o.Import = append(o.Import, i)
			}
			continue
		case "requests":
			target = &o.Requests
		case "where":
			target = &o.Where
		case "limit":
			target = &o.Limit
		case "time-scale":
			target = &o.TimeScale
		case "rate":
			target = &o.Rate
		case "loop":
			target = &o.Repeat
		case "sample":
			target = &o.Sample
		case "block-size":
			target = &o.BlockSize
		case "seed":
			o.Seed = new(uint64)
			if _, err := fmt.Sscan(text, o.Seed); err != nil {
				t.Fatal(err)
			}
			continue
		default:
			t.Fatalf("no flag %s", arg.Key)
		}
		if err := target.UnmarshalText([]byte(text)); err != nil {
			t.Fatalf("--%s: %v", arg.Key, err)
		}
	}
	return o
}

// TestStories runs small specs and traces and compares every byte. checkInvariants checks their
// meaning.
func TestStories(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			o := options(t, d.CmdArgs)
			var warnings string
			o.Warn = func(msg string) { warnings += "warning: " + msg + "\n" }
			switch d.Cmd {
			case "spec":
				o.Spec = "-"
			case "print-spec":
				o.Spec, o.PrintSpec = "-", true
			case "import":
			default:
				t.Fatalf("no command %s", d.Cmd)
			}
			text, err := generate(d.Input, o)
			if err != nil {
				return warnings + "error: " + err.Error() + "\n"
			}
			if !o.PrintSpec {
				_, list := decode(t, text)
				checkInvariants(t, list)
				if len(list) == 0 {
					t.Error("the story has no request")
				}
			}
			return warnings + text
		})
	})
}

// checkInvariants checks what is true of the requests of every workload.
func checkInvariants(t *testing.T, list []stream.Request) {
	t.Helper()
	seen := map[string]bool{}
	for i, r := range list {
		if i > 0 && r.ArrivalUS < list[i-1].ArrivalUS {
			t.Errorf("%s arrives before the request above it", r.ID)
		}
		if seen[r.ID] {
			t.Errorf("%s is duplicate", r.ID)
		}
		seen[r.ID] = true
		if r.InputTokens < 1 || r.OutputTokens < 1 {
			t.Errorf("%s has lengths %d and %d", r.ID, r.InputTokens, r.OutputTokens)
		}
		shared := int64(0)
		for _, s := range r.Prompt {
			shared += s.Tokens
		}
		if shared > r.InputTokens {
			t.Errorf("%s shares %d of %d tokens", r.ID, shared, r.InputTokens)
		}
	}
}

// The same options make the same bytes, compressed or not.
func TestSameBytes(t *testing.T) {
	for _, name := range Scenarios.Names() {
		o := Options{Scenario: Scenario(name), Requests: 300}
		plain, err := generate("", o)
		if err != nil {
			t.Fatal(err)
		}
		if again, _ := generate("", o); again != plain {
			t.Errorf("%s: two runs made different bytes", name)
		}
		var packed bytes.Buffer
		if err := Run(context.Background(), nil, &packed, o); err != nil {
			t.Fatal(err)
		}
		_, a := decode(t, plain)
		_, b := decode(t, packed.String())
		if !slices.EqualFunc(a, b, func(a, b stream.Request) bool { return fmt.Sprint(a) == fmt.Sprint(b) }) {
			t.Errorf("%s: compression changes the requests", name)
		}
	}
}

// A canceled run ends at once, and its output is marked as truncated.
func TestCancellation(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	var out bytes.Buffer
	o := Options{Requests: 1_000_000, Plain: true, Progress: func(string) { cancel() }}
	if err := Run(ctx, nil, &out, o); err != context.Canceled {
		t.Fatalf("the run ended with %v", err)
	}
	r := stream.NewReader(&out)
	n := 0
	for r.Next() {
		n++
	}
	if n < progressInterval || n > 3*progressInterval || r.Err() == nil ||
		!strings.Contains(r.Err().Error(), "truncated") {
		t.Errorf("%d records and then %v", n, r.Err())
	}
}

// A writer's error ends the run.
func TestWriteError(t *testing.T) {
	if err := Run(context.Background(), nil, fullDisk{}, Options{}); err != io.ErrShortWrite {
		t.Errorf("the run ended with %v", err)
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, io.ErrShortWrite }
