package summarize

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"blis/pkg/stream"
)

// failing summarizes invalid input and returns the JSON document.
func failing(t *testing.T, data []byte, o Options, want string) map[string]any {
	t.Helper()
	o.Format = "text"
	if text, err := summarize(data, o); text != "" || err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %s; text:\n%s", err, want, text)
	}
	o.Format = "json"
	text, err := summarize(data, o)
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %s", err, want)
	}
	return decode(t, text)
}

func decode(t *testing.T, text string) map[string]any {
	t.Helper()
	var d map[string]any
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return d
}

func TestIncompleteStreams(t *testing.T) {
	data := story().data(t)
	lines := bytes.SplitAfter(data, []byte("\n"))
	without := func(kind string) []byte {
		var left []byte
		for _, line := range lines {
			if !bytes.HasPrefix(line, []byte(`{"kind":"`+kind+`"`)) {
				left = append(left, line...)
			}
		}
		return left
	}
	minimal := story()
	minimal.trace = "minimal"
	workload := []byte(
		`{"kind":"header","stream":"workload","stream_version":2,"tool":"blis-gen","version":"0.1.0","seed":1}` +
			"\n",
	)
	for _, c := range []struct {
		name string
		data []byte
		o    Options
		want string
	}{
		{"truncated", data[:len(data)-len(data)/3], Options{}, "truncated"},
		{"no end", without("end"), Options{}, "truncated"},
		{"empty", nil, Options{}, "is empty"},
		{"no metrics", without("metrics"), Options{}, "the run has no metrics record"},
		{"strict", data, Options{Strict: true, Format: "text"}, ""},
		{"filtered", without("outcome"), Options{Strict: true}, "records were filtered out"},
		{"cut workload", workload, Options{}, "truncated"},
		{"outcomes of a workload", workload, options(t, "ttft_ms > 1", "", "", ""),
			":1: --where selects outcomes; this is a workload"},
		{"cluster of a run", data, Options{Cluster: new(string)}, ":1: -c is for workloads; this is a run"},
		{"minimal", minimal.data(t), options(t, "ttft_ms > 1", "", "", ""), "--trace minimal and has no outcomes"},
		{"twice", bytes.Join(append(lines[:len(lines)-2:len(lines)-2], lines[len(lines)-3:]...), nil), Options{},
			"second metrics record"},
		{"bad value", data, options(t, "double(id) > 1", "", "", ""), ":2: --where: evaluating the expression"},
		{"bad line", bytes.Replace(data, []byte(`"input_tokens":1500`), []byte(`"input_tokens":0`), 1),
			options(t, "true", "", "", ""), ":3: input_tokens"},
	} {
		if c.want == "" { // the input is valid
			if _, err := summarize(c.data, c.o); err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		d := failing(t, c.data, c.o, c.want)
		if d["status"] != "error" || d["combined_score"] != 0.0 || !strings.Contains(d["error"].(string), c.want) ||
			number(d["metrics"]) {
			t.Errorf("%s: %v", c.name, d)
		}
	}
}

// number reports whether v contains a number.
func number(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		for _, x := range v {
			if number(x) {
				return true
			}
		}
	case float64:
		return true
	}
	return false
}

func TestFilteredIsAWarning(t *testing.T) {
	data := story().data(t)
	lines := bytes.SplitAfter(data, []byte("\n"))
	d, raw := document(t, bytes.Join(append(lines[:1:1], lines[2:]...), nil), Options{})
	if len(d.Warnings) == 0 || !strings.Contains(d.Warnings[0], "records were filtered out") ||
		raw.Requests.Offered != 4 {
		t.Errorf("offered %d, warnings %q", raw.Requests.Offered, d.Warnings)
	}
}

// An error record of an earlier tool is the summary.
func TestErrorRecordIsSummarized(t *testing.T) {
	var b bytes.Buffer
	w := stream.NewWriter(&b, false)
	err := errors.Join(
		w.Header(&stream.Header{Stream: stream.StreamRun, StreamVersion: stream.StreamVersion, Tool: "blis-sim",
			Version: "0.1.0"}),
		w.Any(&stream.ErrorRecord{Kind: stream.KindError, Tool: "blis-sim", File: "cluster.yaml", Line: 3, Col: 15,
			Msg: "replicas must be at least 1, is 0"}),
		w.End(&stream.End{}),
		w.Close(),
	)
	if err != nil {
		t.Fatal(err)
	}
	text, err := summarize(b.Bytes(), Options{Format: "json"})
	if err != nil {
		t.Fatal(err)
	}
	d := decode(t, text)
	if score, ok := d["combined_score"]; !ok || score != 0.0 || d["status"] != "error" ||
		d["error"] != "blis-sim: cluster.yaml:3:15: replicas must be at least 1, is 0" {
		t.Errorf("%s", text)
	}
	text, err = summarize(b.Bytes(), Options{Format: "table"})
	const want = "run         blis-sim 0.1.0\n" +
		"error       blis-sim: cluster.yaml:3:15: replicas must be at least 1, is 0\nscore       0.0\n"
	if err != nil || text != want {
		t.Errorf("%v\n%s", err, text)
	}
}

// A recording has no metrics record: its metrics are computed.
func TestRecording(t *testing.T) {
	data := bytes.Replace(story().data(t), []byte(`"stream":"run"`), []byte(`"stream":"recording"`), 1)
	start, end := bytes.Index(data, []byte(`{"kind":"metrics"`)), bytes.Index(data, []byte(`{"kind":"end"`))
	d, raw := document(t, append(data[:start:start], data[end:]...), Options{})
	if raw.Requests.Offered != 4 || raw.TTFT.Mean != 200 || d.Selection != nil || raw.Cost != nil {
		t.Errorf("%+v", raw)
	}
}

func TestOptions(t *testing.T) {
	var w Where
	if err := w.UnmarshalText([]byte("e2e_mss > 1")); err == nil ||
		!strings.Contains(err.Error(), `did you mean "e2e_ms"`) {
		t.Errorf("where: %v", err)
	}
	for _, bad := range []string{"-1s", "soon", "5"} {
		var i Instant
		if err := i.UnmarshalText([]byte(bad)); err == nil ||
			!strings.Contains(err.Error(), "must be a duration such as 90s") {
			t.Errorf("%s: %v", bad, err)
		}
	}
	for _, c := range []struct{ from, to, want string }{
		{"8s", "2s", "--from (8s) must be before --to (2s)"}, {"", "0s", "--to must be above 0, is 0s"}, {"8s", "", ""},
		{"1s", "2s", ""},
	} {
		o := options(t, "", c.from, c.to, "text")
		if err := o.Validate(); (err == nil) != (c.want == "") || err != nil && err.Error() != c.want {
			t.Errorf("from %q to %q: %v", c.from, c.to, err)
		}
		if _, err := summarize(nil, o); c.want != "" && (err == nil || err.Error() != c.want) {
			t.Errorf("Run from %q to %q: %v", c.from, c.to, err)
		}
	}
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var out bytes.Buffer
	err := Run(ctx, bytes.NewReader(story().data(t)), &out, Options{Format: "json"})
	if !errors.Is(err, context.Canceled) || out.Len() > 0 {
		t.Errorf("%v, %s", err, out.String())
	}
}

// Long lists of tenants are truncated for people; names stay ASCII.
func TestManyTenants(t *testing.T) {
	r := &run{trace: "decisions"}
	for i := range 30 {
		r.outcomes = append(r.outcomes, outcome(string(rune('a'+i%26))+"-é", "", strings.Repeat("é", i+1), int64(i),
			100, 5, 2))
	}
	text, err := summarize(r.data(t), Options{Format: "table"})
	if err != nil || !strings.Contains(text, "... and 10 more: --format json\n") ||
		!strings.Contains(text, "\n\\u00e9 ") {
		t.Errorf("%v\n%s", err, text)
	}
	for i, c := range text {
		if c > '~' || c < ' ' && c != '\n' {
			t.Fatalf("character %q at %d", c, i)
		}
	}
}
