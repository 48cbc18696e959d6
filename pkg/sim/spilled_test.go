package sim

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"blis/pkg/stream"
)

// manyRequests is a workload of n requests and n sessions of two calls.
func manyRequests(n int) string {
	var w strings.Builder
	for i := range n {
		fmt.Fprintf(&w, `{"kind":"request","id":"a/%d","arrival_us":%d,"input_tokens":%d,"output_tokens":%d,`+
			`"tenant":"t%d","slo_class":"interactive"}`+"\n", i, 2000*i, 10+i*37%500, 1+i*91%20, i%7)
		fmt.Fprintf(&w, `{"kind":"session","id":"s/%d","arrival_us":%d,"steps":[{"id":"x","input_tokens":20,`+
			`"output_tokens":3},{"id":"y","after":[0],"delay_us":%d,"input_tokens":30,"output_tokens":%d}]}`+"\n", i,
			2000*i, 1000*(1+i%50), 1+i%9)
	}
	return w.String()
}

// TestTemporaryFilesChangeNothing: a run whose requests, sessions and ids do not fit its limit writes the same bytes.
func TestTemporaryFilesChangeNothing(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	workload := manyRequests(3000) // 9000 rows: more than two chunks
	for _, trace := range stream.TraceLevels[:2] {
		var want bytes.Buffer
		for _, limit := range []int{0, 1, 700} {
			var got bytes.Buffer
			o := Options{Trace: trace, Plain: true, memoryRows: limit}
			if err := Run(context.Background(), strings.NewReader(workload), &got, o); err != nil {
				t.Fatal(err)
			}
			if limit == 0 {
				want = got
			} else if !bytes.Equal(got.Bytes(), want.Bytes()) {
				t.Errorf("%s: with %d in memory the run differs", trace, limit)
			}
		}
	}
}

// TestDuplicatesOfLongRuns: a duplicate that is found at the end of the input is an error with its line, and the stream
// has no end.
func TestDuplicatesOfLongRuns(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	workload := manyRequests(50) + `{"kind":"session","id":"s/40/y","arrival_us":1000000,"steps":[{"id":"x",` +
		`"input_tokens":1,"output_tokens":1}]}` + "\n"
	for _, limit := range []int{0, 10} {
		var out bytes.Buffer
		err := Run(context.Background(), strings.NewReader(workload), &out,
			Options{Trace: "minimal", Plain: true, memoryRows: limit})
		if err == nil || !strings.Contains(err.Error(), ":101: ") || !strings.Contains(err.Error(), "duplicate") {
			t.Errorf("%d in memory: %v", limit, err)
		}
		if text := out.String(); strings.Contains(text, `"kind":"end"`) || strings.Contains(text, `"kind":"metrics"`) {
			t.Errorf("%d in memory: the stream looks complete", limit)
		}
	}
}

// TestLongRunWithoutTemporaryFolder ends early and says what to do.
func TestLongRunWithoutTemporaryFolder(t *testing.T) {
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "missing"))
	for _, o := range []Options{{memoryRows: 1}, {}} {
		o.Trace, o.Plain = "minimal", true
		var out bytes.Buffer
		err := Run(context.Background(), strings.NewReader(manyRequests(3000)), &out, o)
		if failed := o.memoryRows > 0; failed != (err != nil) || failed && !strings.Contains(err.Error(), "TMPDIR") ||
			failed == strings.Contains(out.String(), `"kind":"metrics"`) {
			t.Errorf("limit %d: %v", o.memoryRows, err)
		}
	}
}
