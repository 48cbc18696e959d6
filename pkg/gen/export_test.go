package gen

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"blis/pkg/stream"
)

// requestsOf generates a workload and returns its requests.
func requestsOf(t *testing.T, o Options) (all []stream.Request) {
	t.Helper()
	var out bytes.Buffer
	o.Plain = true
	if err := Run(t.Context(), nil, &out, o); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out.String()) {
		var r stream.Request
		if err := json.Unmarshal([]byte(line), &r); err == nil && r.Kind == stream.KindRequest {
			all = append(all, r)
		}
	}
	return all
}

// tokenNames are the names of the tokens of a prompt, one by one: the slow reference of hash ids and texts.
func tokenNames(r stream.Request) (all []string) {
	for _, s := range r.Prompt {
		for i := range s.Tokens {
			all = append(all, fmt.Sprintf("%s/%d", s.ID, i))
		}
	}
	for i := int64(len(all)); i < r.InputTokens; i++ {
		all = append(all, fmt.Sprintf("%s unique %d", r.ID, i))
	}
	return all
}

func sharedPrefix[T comparable](a, b []T) (n int) {
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// exportOf exports the documents scenario, whose prompts share prefixes.
func exportOf(t *testing.T, name string) (requests []stream.Request, text string) {
	t.Helper()
	o := Options{Scenario: "documents", Requests: 60}
	requests = requestsOf(t, o)
	var out bytes.Buffer
	o.Export = name
	if err := Run(t.Context(), nil, &out, o); err != nil {
		t.Fatal(err)
	}
	return requests, out.String()
}

func TestExportedHashIDsKeepPrefixes(t *testing.T) {
	for name, size := range map[string]int{"aiperf": 16, "mooncake": 512} {
		requests, text := exportOf(t, name)
		var ids [][]int64
		for line := range strings.Lines(text) {
			var row struct {
				Timestamp                 float64
				InputLength, OutputLength int64
				HashIDs                   []int64 `json:"hash_ids"`
			}
			line = strings.NewReplacer("input_length", "InputLength", "output_length", "OutputLength").Replace(line)
			if err := json.Unmarshal([]byte(line), &row); err != nil {
				t.Fatal(err)
			}
			r := requests[len(ids)]
			if math.Abs(row.Timestamp*1000-float64(r.ArrivalUS)) > 0.01 || row.InputLength != r.InputTokens ||
				row.OutputLength != r.OutputTokens || len(row.HashIDs) != (int(r.InputTokens)+size-1)/size {
				t.Fatalf("%s: %+v is %+v", name, r, row)
			}
			ids = append(ids, row.HashIDs)
		}
		if len(ids) != len(requests) {
			t.Fatalf("%s: %d lines of %d requests", name, len(ids), len(requests))
		}
		shared := 0
		for i := range requests {
			for j := range i {
				want := sharedPrefix(tokenNames(requests[i]), tokenNames(requests[j])) / size
				if got := sharedPrefix(ids[i], ids[j]); got != want {
					t.Fatalf("%s: requests %d and %d share %d blocks, want %d", name, j, i, got, want)
				}
				shared += want
			}
		}
		if shared == 0 {
			t.Errorf("%s: no prefixes are shared", name)
		}
	}
}

func TestExportedTextKeepsPrefixes(t *testing.T) {
	requests, text := exportOf(t, "vllm-bench")
	var prompts [][]string
	for line := range strings.Lines(text) {
		var row struct{ Prompt string }
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatal(err)
		}
		prompts = append(prompts, strings.Fields(row.Prompt))
		if got, want := len(prompts[len(prompts)-1]), int(requests[len(prompts)-1].InputTokens); got != want {
			t.Fatalf("%d words, want %d", got, want)
		}
	}
	for i := range requests {
		for j := range i {
			want := sharedPrefix(tokenNames(requests[i]), tokenNames(requests[j]))
			// Different tokens can have the same word.
			if got := sharedPrefix(prompts[i], prompts[j]); got < want || got > want+8 {
				t.Fatalf("prompts %d and %d share %d words, want %d", j, i, got, want)
			}
		}
	}
}

// TestExportIsReadBack imports the exported files again.
func TestExportIsReadBack(t *testing.T) {
	importers := map[string]string{"mooncake": "mooncake", "aiperf": "mooncake", "inference-perf": "azure"}
	for name, importer := range importers {
		requests, text := exportOf(t, name)
		path := filepath.Join(t.TempDir(), "trace")
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		o := Options{Import: []Import{{Format: importer, File: path}}}
		if name == "aiperf" {
			o.BlockSize = 16
		}
		back := requestsOf(t, o)
		if len(back) != len(requests) {
			t.Fatalf("%s: %d requests of %d", name, len(back), len(requests))
		}
		start := back[0].ArrivalUS - requests[0].ArrivalUS // Azure's times begin at 0
		for i, r := range back {
			w := requests[i]
			if r.InputTokens != w.InputTokens || r.OutputTokens != w.OutputTokens || r.ArrivalUS-w.ArrivalUS != start {
				t.Fatalf("%s: %+v is %+v", name, w, r)
			}
		}
	}
}

// What a format cannot express is counted in a warning.
func TestExportWarnsOfStops(t *testing.T) {
	stops := clientText("a", plainText+"stop: eos, "+lengthsText)
	spec := specText("aggregate_rate: 10\nrequests: 40", stops, clientText("b", plainText+lengthsText))
	n := 0
	_, list := requests(t, spec, Options{Spec: "-"})
	for _, r := range list {
		if r.Stop != "" {
			n++
		}
	}
	if n == 0 || n == 40 {
		t.Fatalf("%d of 40 requests have a stop", n)
	}
	for _, name := range []string{"mooncake", "inference-perf"} {
		var warned []string
		o := Options{Spec: "-", Export: name, Warn: func(w string) { warned = append(warned, w) }}
		if _, err := generate(strings.Replace(spec, "stop: eos", "adapters: {count: 2}", 1), o); err != nil {
			t.Fatal(err)
		}
		if _, err := generate(strings.Replace(spec, "stop: eos", "grammars: {count: 2}", 1), o); err != nil {
			t.Fatal(err)
		}
		grammars := fmt.Sprintf("%d of 40 requests have a grammar, which files of %s cannot express", n, name)
		if !slices.Contains(warned, grammars) {
			t.Errorf("%s: %q, want %q", name, warned, grammars)
		}
		if _, err := generate(strings.Replace(spec, "stop: eos", "priority: 3", 1), o); err != nil {
			t.Fatal(err)
		}
		priorities := fmt.Sprintf("%d of 40 requests have a priority, which files of %s cannot express", n, name)
		if !slices.Contains(warned, priorities) {
			t.Errorf("%s: %q, want %q", name, warned, priorities)
		}
		adapters := fmt.Sprintf("%d of 40 requests have a LoRA adapter, which files of %s cannot express", n, name)
		if !slices.Contains(warned, adapters) {
			t.Errorf("%s: %q, want %q", name, warned, adapters)
		}
		warned = nil
		if _, err := generate(spec, o); err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf("%d of 40 outputs end by an end-of-sequence token, which files of %s cannot express", n,
			name)
		if !slices.Contains(warned, want) {
			t.Errorf("%s: %q, want %q", name, warned, want)
		}
		if strings.Contains(strings.Join(warned, "\n"), "LoRA") {
			t.Errorf("%s without adapters: %q", name, warned)
		}
	}
}

func TestExportRejectsSessions(t *testing.T) {
	err := Run(t.Context(), nil, new(bytes.Buffer), Options{Scenario: "react-agent", Requests: 3, Export: "aiperf"})
	if err == nil || !strings.Contains(err.Error(), "--export writes only requests") {
		t.Errorf("sessions are exported: %v", err)
	}
}
