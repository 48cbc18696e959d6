package stream

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
)

// exampleRecords are a request and an outcome typical of long runs.
func exampleRecords() (Request, Outcome) {
	return Request{
			ID: "req-000042", ArrivalUS: 12_345_678, InputTokens: 612, OutputTokens: 256,
			Prompt: []Segment{{ID: "prefix-217", Tokens: 256}}, Tenant: "tenant-3", SLOClass: "interactive",
			Model:      "meta-llama/Llama-3.1-8B-Instruct",
			DeadlineUS: Never,
		}, Outcome{
			ID: "req-000042", State: StateCompleted, ArrivalUS: 12_345_678,
			AdmittedUS: 12_345_678, RoutedUS: 12_345_678,
			EndedUS: Never, EnqueuedUS: 12_347_678, ScheduledUS: 12_350_112,
			FirstTokenUS: 12_380_998, CompletedUS: 15_998_112,
			Deployment: "main", Replica: 3, Tenant: "tenant-3", SLOClass: "interactive",
			Model:    "meta-llama/Llama-3.1-8B-Instruct",
			Priority: 50, Decision: "dec-000042", InputTokens: 612, OutputTokens: 256, GeneratedTokens: 256,
			CachedTokens:         256,
			ExpectedCachedTokens: 256, ITLMaxUS: 31_112, SLOMet: BoolPtr(true),
		}
}

func BenchmarkWrite(b *testing.B) {
	r, o := exampleRecords()
	for _, plain := range []bool{true, false} {
		for name, write := range map[string]func(*Writer) error{
			"request": func(w *Writer) error { return w.Request(&r) },
			"outcome": func(w *Writer) error { return w.Outcome(&o) },
		} {
			b.Run(fmt.Sprintf("%s/plain=%v", name, plain), func(b *testing.B) {
				b.ReportAllocs()
				w := NewWriter(io.Discard, plain)
				for i := range b.N {
					r.ArrivalUS, o.ArrivalUS, o.CompletedUS = Micros(i*31), Micros(i*31), Micros(i*71)
					must(b, write(w))
				}
				must(b, w.Close())
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "records/s")
			})
		}
	}
}

// BenchmarkRead reads requests and decodes them.
func BenchmarkRead(b *testing.B) {
	const n = 100_000
	for _, plain := range []bool{true, false} {
		stream := exampleWorkload(b, n, plain)
		b.Run(fmt.Sprintf("plain=%v", plain), func(b *testing.B) {
			b.ReportAllocs()
			var req Request
			for range b.N {
				r := NewReader(bytes.NewReader(stream))
				for r.Next() {
					if r.Kind() == KindRequest {
						must(b, r.Request(&req))
					}
				}
				must(b, r.Err())
			}
			b.ReportMetric(float64(b.N)*n/b.Elapsed().Seconds(), "records/s")
		})
	}
}

// exampleDecision is a decision by two scorers.
const exampleDecision = `{"kind":"decision","id":"dec-299993","stage":"routing","at_us":212981285,` +
	`"request":"req-0299993","deployment":"main","replica":7,"score":4,"candidates":64,"tied":2,` +
	`"reason":"highest score","expected_cached_tokens":256,"scorers":["prefix-affinity","queue-depth"],"considered":[` +
	`{"deployment":"main","replica":7,"score":4,"terms":[0.6666666666666666,1],"inflight":121,"queue_depth":0,` +
	`"matched_blocks":16},{"deployment":"main","replica":37,"score":4,"terms":[0.6666666666666666,1],"inflight":82,` +
	`"queue_depth":0,"matched_blocks":16},{"deployment":"main","replica":22,"score":3.25641025641025641,` +
	`"terms":[0.41025641025641024,0.5],"inflight":79,"queue_depth":1,"matched_blocks":16},` +
	`{"deployment":"main","replica":0,"score":2,"terms":[0,1],"inflight":85,"queue_depth":0,"matched_blocks":0}]}`

func BenchmarkDecode(b *testing.B) {
	r, o := exampleRecords()
	var d Decision
	lines := map[string][]byte{
		KindRequest: appendRequest(nil, &r, new(numberCache)), KindOutcome: appendOutcome(nil, &o, new(numberCache)),
		KindDecision: []byte(exampleDecision),
	}
	s := new(scanner)
	for name, decode := range map[string]func(line []byte) error{
		"request":      func(line []byte) error { return s.record(line, &r) },
		"outcome":      func(line []byte) error { return s.record(line, &o) },
		"decision":     func(line []byte) error { return s.record(line, &d) },
		"request/json": func(line []byte) error { r = Request{}; return json.Unmarshal(line, &r) },
		"outcome/json": func(line []byte) error { o = Outcome{}; return json.Unmarshal(line, &o) },
	} {
		b.Run(name, func(b *testing.B) {
			kind, _, _ := strings.Cut(name, "/")
			line := lines[kind]
			b.ReportAllocs()
			b.SetBytes(int64(len(line)))
			for range b.N {
				must(b, decode(line))
			}
		})
	}
}
