package trace

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"

	"blis/pkg/stream"

	"github.com/cockroachdb/datadriven"
	"github.com/rogpeppe/go-internal/txtar"
)

// arrival is an arrival with its time.
type arrival struct {
	us float64
	stream.Arrival
}

// line is the arrival as a record, after its time.
func (a *arrival) line(t testing.TB) string {
	t.Helper()
	var out bytes.Buffer
	w := stream.NewWriter(&out, true)
	*a.At() = stream.Micros(a.us)
	if err := w.Arrival(&a.Arrival); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return strconv.FormatFloat(a.us, 'f', -1, 64) + " " + strings.TrimSpace(out.String())
}

// readAll reads a trace to its end, its first error or 100,000 arrivals, which no public trace has.
// Arrivals do not share memory.
func readAll(format string, in Input, o Options) (list []arrival, warnings []string, err error) {
	f, err := Formats.Get("importer", format)
	if err != nil {
		return nil, nil, err
	}
	if o.BlockSize == 0 {
		o.BlockSize = f.BlockSize
	}
	r, err := f.Open(in, o)
	if err != nil {
		return nil, nil, err
	}
	defer r.Close()
	for len(list) < 100_000 {
		var a arrival
		if a.us, err = r.Next(&a.Arrival); err != nil {
			break
		}
		list = append(list, a)
	}
	if err == io.EOF {
		err = nil
	}
	return list, r.Warnings(), err
}

func input(text string) Input {
	return Input{Name: "stdin", Stream: strings.NewReader(text)}
}

// tarArchive is a tar archive of the files of a txtar text.
func tarArchive(t testing.TB, text string) string {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, f := range txtar.Parse([]byte(text)).Files {
		if err := w.WriteHeader(&tar.Header{Name: f.Name, Mode: 0o644, Size: int64(len(f.Data))}); err != nil {
			t.Fatal(err)
		}
		w.Write(f.Data)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestStories reads small traces: each arrival with its time in µs, then the warnings or the error.
func TestStories(t *testing.T) {
	tested := map[string]bool{}
	datadriven.Walk(t, "testdata/stories", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var o Options
			d.MaybeScanArgs(t, "block-size", &o.BlockSize)
			d.MaybeScanArgs(t, "seed", &o.Seed)
			text := d.Input
			if d.Cmd == "servegen" {
				text = tarArchive(t, text)
			}
			tested[d.Cmd] = true
			list, warnings, err := readAll(d.Cmd, input(text), o)
			var out strings.Builder
			for i := range list {
				out.WriteString(list[i].line(t) + "\n")
			}
			for _, w := range warnings {
				out.WriteString("warning: " + w + "\n")
			}
			if err != nil {
				var located *stream.SyntaxError
				if !errors.As(err, &located) {
					t.Errorf("%v is no *stream.SyntaxError", err)
				}
				out.WriteString("error: " + err.Error() + "\n")
			}
			return out.String()
		})
	})
	for _, name := range Formats.Names() {
		if !tested[name] {
			t.Errorf("%s has no story", name)
		}
	}
}

// The README names every format.
func TestReadmeNamesFormats(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range Formats.Names() {
		if !bytes.Contains(readme, []byte("`"+name+"`")) {
			t.Errorf("the README does not name %s", name)
		}
	}
}

// samples has a small valid trace of each format.
var samples = map[string]string{
	"azure": "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.9799600,4808,10\n2023-11-16 " +
		"18:17:04.0319600,3180,8\n",
	"mooncake": `{"timestamp": 1500, "input_length": 1100, "output_length": 500, "hash_ids": [46, 47, 48]}` +
		"\n" + `{"timestamp": 1600, "input_length": 5, "output_length": 5}` + "\n",
	"bailian": `{"chat_id": 1, "parent_chat_id": -1, "timestamp": 0.5, "input_length": 40, "output_length": ` +
		`7, "type": "text", "turn": 1, "hash_ids": [1, 2, 3]}` + "\n",
	"burstgpt": burstgptColumns + "\n5,ChatGPT,472,18,490,Conversation log\n45,GPT-4,1087,230,1317,API log\n",
	"tracev2":  "request_id,input_tokens,output_tokens,arrival_time_us\nq1,10,5,0\nq2,11,6,100000\n",
	"recording": "arrival_s,input_tokens,output_tokens,ttft_s,e2e_s,status\n" +
		"0.25,10,5,0.1,0.2,ok\n1.5,20,6,0.1,0.3,ok\n",
	"lmbench": "prompt_tokens,generation_tokens,ttft,generation_time,launch_time,finish_time\n" +
		"10,5,0.1,0.2,100,100.3\n",
	"vllm-phases": "request_id,phase_type,t_start,t_end,prefill_tokens,decode_tokens\n" +
		"a,prefill,0,0.1,10,0\na,decode,0.1,0.5,0,5\n",
	"llmservingsim": `{"request_id": "b-0", "input_toks": 10, "output_toks": 5, "arrival_time": 1000.5, ` +
		`"queued_ts": 7.5, "scheduled_ts": 7.6, "first_token_ts": 7.7, "last_token_ts": 7.9}` + "\n",
	"aiperf": `{"metadata": {"x_request_id": "r", "request_start_ns": 1000000000, "benchmark_phase": ` +
		`"profiling"}, "metrics": {"input_sequence_length": {"value": 10, "unit": "tokens"}, ` +
		`"output_sequence_length": {"value": 5, "unit": "tokens"}, "time_to_first_token": {"value": 100, "unit": ` +
		`"ms"}, "request_latency": {"value": 0.3, "unit": "sec"}}, "error": null}` + "\n",
	"inference-perf": `[{"start_time": 1.5, "end_time": 2.5, "info": {"input_tokens": 10, "output_tokens": 3, ` +
		`"output_token_times": [1.6, 1.9, 2.4]}, "error": null}]`,
	"guidellm": `{"metadata": {"version": 1, "guidellm_version": "0.5"}, "benchmarks": [{"type_": "x", ` +
		`"requests": {"successful": [{"request_id": "g", "info": {"timings": {"request_start": 10.5, ` +
		`"first_token_iteration": 10.6, "request_end": 11}}, "prompt_tokens": 10, "output_tokens": 5}]}}]}`,
	"otlp": `{"resourceSpans": [{"scopeSpans": [{"spans": [{"spanId": "1", "name": "llm_request", ` +
		`"startTimeUnixNano": "1000000000", "endTimeUnixNano": "1300000000", "attributes": [` +
		`{"key": "gen_ai.request.id", "value": {"stringValue": "o"}}, {"key": "gen_ai.usage.prompt_tokens", "value": ` +
		`{"intValue": "10"}}, {"key": "gen_ai.usage.completion_tokens", "value": {"intValue": 5}}, ` +
		`{"key": "gen_ai.latency.time_to_first_token", "value": {"doubleValue": 0.1}}, {"key": "gen_ai.latency.e2e", ` +
		`"value": {"doubleValue": 0.3}}]}]}]}]}` + "\n",
	"csv": "arrival_s,input_tokens,output_tokens\n0.25,10,5\n1.5,20,6\n",
	"vllm-bench": `{"input_lens": [7, 8], "output_lens": [3, 2], "ttfts": [0.1, 0.2], "itls": [[0.1, 0.1], [0.2]], ` +
		`"start_times": [1000.0, 1000.5], "errors": ["", ""]}`,
	"blis": `{"kind":"request","id":"a","arrival_us":5,"input_tokens":10,"output_tokens":2}` + "\n" +
		`{"kind":"session","id":"s","arrival_us":9,"steps":[{"id":"1","input_tokens":3,"output_tokens":4}]}` + "\n",
	"weka": `{"id": "w", "block_size": 4, "hash_id_scope": "local", "requests": [{"t": 0.0, "type": "n", "in": ` +
		`9, "out": 3, "hash_ids": [1, 2]}, {"t": 5.0, "type": "s", "in": 12, "out": 1, "hash_ids": [1, 2, 3], ` +
		`"think_time": 5.0}]}` + "\n",
	"servegen": `
-- pool/chunk-3-trace.csv --
0,0.1,1,Gamma,1,10
600,0,0,,0,0
-- pool/chunk-3-dataset.json --
{"0": {"input_tokens": "{5: 0.5, 7: 0.5}", "output_tokens": "{3: 1.0}"}}
`,
}

// sample returns the sample of a format as stream content.
func sample(t testing.TB, format string) string {
	t.Helper()
	text, ok := samples[format]
	if !ok {
		t.Fatalf("%s has no sample", format)
	}
	if format == "servegen" {
		return tarArchive(t, text)
	}
	return text
}

// wireLines returns the lines of all arrivals of a valid trace.
func wireLines(t testing.TB, format, text string) string {
	t.Helper()
	list, _, err := readAll(format, input(text), Options{})
	if err != nil {
		t.Fatalf("%s: %v", format, err)
	}
	var all []string
	for i := range list {
		all = append(all, list[i].line(t))
	}
	if len(all) == 0 {
		t.Fatalf("%s: nothing read", format)
	}
	return strings.Join(all, "\n")
}

// Every format reads the same from compressed data, and text also with a byte order mark and CRLF line ends.
func TestCompressionAndTextEncodings(t *testing.T) {
	for _, format := range Formats.Names() {
		text := sample(t, format)
		want := wireLines(t, format, text)
		var zipped bytes.Buffer
		z := gzip.NewWriter(&zipped)
		z.Write([]byte(text))
		z.Close()
		forms := map[string]string{"gzip": zipped.String(), "zstd": zstd(t, text)}
		if format != "servegen" {
			forms["a byte order mark"] = "\ufeff" + text
			forms["CRLF"] = strings.ReplaceAll(text, "\n", "\r\n")
			forms["no line feed at the end"] = strings.TrimSuffix(text, "\n")
		}
		for name, form := range forms {
			if got := wireLines(t, format, form); got != want {
				t.Errorf("%s with %s:\n%s\nwant\n%s", format, name, got, want)
			}
		}
		packed := forms["zstd"]
		if _, _, err := readAll(format, input(packed[:len(packed)-1]), Options{}); err == nil ||
			!strings.Contains(err.Error(), "cut off") && !strings.Contains(err.Error(), "ends early") {
			t.Errorf("%s: zstd without its last byte: %v", format, err)
		}
		// Truncated compressed data is an error, never a shorter trace.
		for _, cut := range []int{zipped.Len() / 2, zipped.Len() - 4} {
			if _, _, err := readAll(format, input(zipped.String()[:cut]), Options{}); err == nil {
				t.Errorf("%s: the first %d of %d bytes of gzip are read without an error", format, cut, zipped.Len())
			}
		}
	}
}

// zstd encodes a text as a zstd frame of uncompressed blocks (RFC 8878, 3.1.1), because only package stream may
// import a compressor.
func zstd(t testing.TB, text string) string {
	t.Helper()
	var out bytes.Buffer
	out.WriteString("\x28\xb5\x2f\xfd\x00\x58") // magic, no content size, a window of 2 MiB
	for rest := []byte(text); ; {
		n := min(len(rest), 1<<16)
		header := uint32(n) << 3 // a raw block
		if n == len(rest) {
			header |= 1 // the last one
		}
		out.Write([]byte{byte(header), byte(header >> 8), byte(header >> 16)})
		out.Write(rest[:n])
		if rest = rest[n:]; len(rest) == 0 {
			return out.String()
		}
	}
}

// A missing file is a system error; a folder has its own error.
func TestMissingFilesAndFolders(t *testing.T) {
	for _, e := range Formats {
		if _, _, err := readAll(e.Name, Input{Name: "no/such", Path: "no/such"}, Options{}); err == nil ||
			!strings.Contains(err.Error(), "no/such") {
			t.Errorf("%s: %v", e.Name, err)
		}
		empty := t.TempDir()
		_, _, err := readAll(e.Name, Input{Name: "here", Path: empty}, Options{})
		if err == nil || !strings.Contains(err.Error(), "here") {
			t.Errorf("%s reads an empty folder: %v", e.Name, err)
		}
	}
}
