package gen

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"blis/pkg/stream"
)

// trace returns the path of a public trace; the test is skipped without it.
func tracePath(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join("../../../shared/data/traces", name)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("the trace is not here: %v", err)
	}
	return path
}

// gaps returns the mean (µs) and the population CV of the gaps between arrivals.
func gaps(list []stream.Request) (mean, cv float64) {
	n := float64(len(list) - 1)
	mean = float64(list[len(list)-1].ArrivalUS-list[0].ArrivalUS) / n
	for i := 1; i < len(list); i++ {
		d := float64(list[i].ArrivalUS-list[i-1].ArrivalUS) - mean
		cv += d * d / n
	}
	return mean, math.Sqrt(cv) / mean
}

// The public traces are read completely, with their known figures.
func TestPublicTraces(t *testing.T) {
	for _, c := range []struct {
		format, file  string
		rows          int
		first, last   stream.Micros
		cv, fano      float64 // 0: unknown
		input, output float64 // means
	}{
		{"azure", "azure2023_conv.csv", 19366, 0, 3501721937, 1.094, 0, 1154.70, 211.13},
		{"azure", "azure2023_code.csv", 8819, 0, 3435948056, 13.15, 164, 2047.85, 27.88},
		{"mooncake", "mooncake_conversation.jsonl", 12031, 0, 3536999000, 0, 0, 12035.06, 342.62},
	} {
		t.Run(c.file, func(t *testing.T) {
			path := tracePath(t, c.file)
			_, list := requests(t, "", Options{Import: []Import{{c.format, path}}})
			checkInvariants(t, list)
			if len(list) != c.rows {
				t.Fatalf("%d requests, the trace has %d rows", len(list), c.rows)
			}
			if first, last := list[0].ArrivalUS, list[c.rows-1].ArrivalUS; first != c.first || last != c.last {
				t.Errorf("arrivals from %d to %d, want %d to %d", first, last, c.first, c.last)
			}
			if f := fano(list); c.fano != 0 && math.Abs(f-c.fano) > 0.5 {
				t.Errorf("the counts of minutes have a Fano factor of %.1f, want %g", f, c.fano)
			}
			if _, cv := gaps(list); c.cv != 0 && math.Abs(cv-c.cv) > 0.005 {
				t.Errorf("gaps have cv %.4f, want %g", cv, c.cv)
			}
			input, output := 0.0, 0.0
			for _, r := range list {
				input += float64(r.InputTokens) / float64(c.rows)
				output += float64(r.OutputTokens) / float64(c.rows)
			}
			if math.Abs(input-c.input) > 0.01 || math.Abs(output-c.output) > 0.01 {
				t.Errorf("mean lengths %.2f and %.2f, want %g and %g", input, output, c.input, c.output)
			}
		})
	}
}

// Mooncake's ids cover each prompt. An unbounded block cache would hit 36.6 % of the blocks and
// 37.4 % of the tokens.
func TestMooncakeReuse(t *testing.T) {
	_, list := requests(t, "", Options{Import: []Import{{"mooncake", tracePath(t, "mooncake_conversation.jsonl")}}})
	seen := map[string]int64{}
	var blocks, hitBlocks, tokens, hitTokens float64
	for _, r := range list {
		covered, hitting := int64(0), true
		for _, s := range r.Prompt {
			blocks++
			covered += s.Tokens
			if hitting = hitting && seen[s.ID] >= s.Tokens; hitting {
				hitBlocks++
				hitTokens += float64(s.Tokens)
			}
			seen[s.ID] = max(seen[s.ID], s.Tokens)
		}
		if covered != r.InputTokens {
			t.Fatalf("the ids of %s cover %d of %d tokens", r.ID, covered, r.InputTokens)
		}
		tokens += float64(r.InputTokens)
	}
	if b, k := 100*hitBlocks/blocks, 100*hitTokens/tokens; math.Abs(b-36.6) > 0.05 || math.Abs(k-37.4) > 0.05 {
		t.Errorf("%.2f %% of the blocks and %.2f %% of the tokens are repeated", b, k)
	}
}

// The other public traces: the tool agent sample as plain CSV, and ShareGPT prompts in whole blocks
// of 16, whose remainder is unique.
func TestOtherPublicTraces(t *testing.T) {
	var warnings []string
	o := Options{Import: []Import{{"csv", tracePath(t, "mooncake_toolagent_sample.csv")}},
		Warn: func(w string) { warnings = append(warnings, w) }}
	_, list := requests(t, "", o)
	checkInvariants(t, list)
	if len(list) != 94 || list[0].ArrivalUS != 1178625000 {
		t.Errorf("%d requests from %d on", len(list), list[0].ArrivalUS)
	}
	if len(warnings) != 1 || !strings.Contains(warnings[0],
		"unknown columns are ignored: shared_prefix_group, shared_prefix_blocks512") {
		t.Errorf("warnings %q", warnings)
	}
	_, list = requests(t, "", Options{Import: []Import{{"mooncake", tracePath(t, "sharegpt300_llama3_block16.jsonl")}},
		BlockSize: 16})
	checkInvariants(t, list)
	for _, r := range list {
		if len(r.Prompt) != int(r.InputTokens/16) {
			t.Errorf("%s of %d tokens has %d segments", r.ID, r.InputTokens, len(r.Prompt))
		}
	}
	if len(list) != 300 {
		t.Errorf("%d requests", len(list))
	}
}

// The public sessions of coding agents, one every 10 s.
func TestPublicSessions(t *testing.T) {
	path := filepath.Join("../../../shared/data/agentic/weka_original")
	if _, err := os.Stat(path); err != nil {
		t.Skipf("the sessions are not here: %v", err)
	}
	list := arrivals(t, "", Options{Import: []Import{{"weka", path}}, Rate: 0.1})
	for i, a := range list {
		if want := stream.Micros(i) * 10e6; a.Session.ArrivalUS != want {
			t.Errorf("%s arrives at %d, want %d", a.Session.ID, a.Session.ArrivalUS, want)
		}
	}
	if len(list) != 11 || list[0].Session.ID != "trace_0060" || list[10].Session.ID != "trace_0684" {
		t.Errorf("%d sessions", len(list))
	}
}

// fano is the population variance over the mean of the counts in the whole
// minutes from the first arrival on.
func fano(list []stream.Request) float64 {
	minutes := (list[len(list)-1].ArrivalUS - list[0].ArrivalUS) / 60e6
	counts := make([]float64, minutes)
	n := float64(minutes)
	for _, r := range list {
		if m := (r.ArrivalUS - list[0].ArrivalUS) / 60e6; m < minutes {
			counts[m]++
		}
	}
	mean, variance := 0.0, 0.0
	for _, c := range counts {
		mean += c / n
	}
	for _, c := range counts {
		variance += (c - mean) * (c - mean) / n
	}
	return variance / mean
}

// --rate reads a file twice and a pipe from memory, with the same result.
func TestRateOfFilesAndPipes(t *testing.T) {
	path := tracePath(t, "azure2023_code.csv")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	fromFile, err := generate("", Options{Import: []Import{{"azure", path}}, Rate: 5})
	if err != nil {
		t.Fatal(err)
	}
	fromPipe, err := generate(string(text), Options{Import: []Import{{"azure", "-"}}, Rate: 5})
	if err != nil {
		t.Fatal(err)
	}
	if fromFile != fromPipe {
		t.Error("a file and a pipe give different bytes")
	}
	_, list := decode(t, fromFile)
	mean, cv := gaps(list)
	if math.Abs(mean-200_000) > 0.01 || math.Abs(cv-13.15) > 0.005 {
		t.Errorf("gaps have mean %g µs and cv %g, want 200000 and 13.15", mean, cv)
	}
}

// A pipe that is too long to buffer is rejected before anything is written.
func TestRateOfLongPipe(t *testing.T) {
	var out bytes.Buffer
	err := Run(context.Background(), zeros{}, &out, Options{Import: []Import{{"azure", "-"}}, Rate: 5})
	if err == nil || !strings.Contains(err.Error(), "buffer at most 64 MiB of a pipe") || out.Len() > 0 {
		t.Errorf("%v, %d bytes", err, out.Len())
	}
}

// zeros is an endless input.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// A recording of a real server is replayed request by request, with the requested output tokens and
// its 100 repeated prompts.
func TestRecordingIsReplayed(t *testing.T) {
	path := tracePath(t, "../vllm/requests/20260217-231439-llama-2-7b-tp1-general.csv.zst")
	var warnings []string
	_, list := requests(t, "", Options{Import: []Import{{"recording", path}}, OutputTokens: 248,
		Warn: func(w string) { warnings = append(warnings, w) }})
	checkInvariants(t, list)
	prompts := map[string]int{}
	for _, r := range list {
		if len(r.Prompt) != 1 || r.Prompt[0].Tokens != r.InputTokens || r.OutputTokens != 248 {
			t.Fatalf("%+v", r)
		}
		prompts[r.Prompt[0].ID]++
	}
	if len(list) != 16800 || len(prompts) != 100 || list[0].ArrivalUS != 0 || list[0].ID != "0" {
		t.Errorf("%d requests with %d prompts, the first %+v", len(list), len(prompts), list[0])
	}
	if len(warnings) != 1 || !strings.Contains(warnings[0],
		"prompts repeat with a period of 100 (98.2 % of the lengths match)") {
		t.Errorf("warnings %q", warnings)
	}
	// Without --output-tokens some requests have counts that cannot be simulated.
	_, err := generate("", Options{Import: []Import{{"recording", path}}})
	if err == nil || !strings.Contains(err.Error(), "request 32: output_tokens must be at least 1, is 0 (") ||
		!strings.Contains(err.Error(), "--output-tokens 249 sets what most") {
		t.Errorf("with the counts of the client: %v", err)
	}
}

// TestRoundedTimesWarn: half of 100 arrivals at the time of the one before are rounded times; fewer, or of 99 arrivals,
// are not.
func TestRoundedTimesWarn(t *testing.T) {
	for _, c := range []struct {
		arrivals, together int
		want               bool
	}{{100, 50, true}, {100, 49, false}, {99, 60, false}} {
		var rows strings.Builder
		for i := range c.arrivals {
			fmt.Fprintf(&rows, `{"timestamp": %d, "input_length": 16, "output_length": 2, "hash_ids": [%d]}`+"\n",
				1000*max(0, i-c.together), i)
		}
		file := filepath.Join(t.TempDir(), "trace.jsonl")
		if err := os.WriteFile(file, []byte(rows.String()), 0o666); err != nil {
			t.Fatal(err)
		}
		var warnings []string
		o := Options{Import: []Import{{"mooncake", file}}, Warn: func(w string) { warnings = append(warnings, w) }}
		if _, err := generate("", o); err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf("%d of %d arrivals are at the same time as the one before", c.together, c.arrivals)
		if got := strings.Contains(strings.Join(warnings, "\n"), want); got != c.want {
			t.Errorf("%+v: %q", c, warnings)
		}
	}
}
