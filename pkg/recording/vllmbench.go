package recording

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"blis/pkg/textio"
)

// benchResult holds the relevant fields of a result of vLLM's benchmark (vllm bench serve
// --save-result --save-detailed; vllm/benchmarks/serve.py) or SGLang's (bench_serving
// --output-details): lists with one entry per request, in the order of sending. Times are s;
// start_times are on the client's own clock and have no fixed origin.
type benchResult struct {
	ModelID        string            `json:"model_id"`
	Backend        string            `json:"backend"`
	RequestRate    any               `json:"request_rate"` // a number, or "inf"
	MaxConcurrency *float64          `json:"max_concurrency"`
	Completed      *int64            `json:"completed"`
	InputLens      []int64           `json:"input_lens"`
	OutputLens     []int64           `json:"output_lens"`
	TTFTs          []seconds         `json:"ttfts"`
	ITLs           []gaps            `json:"itls"`
	Latencies      []seconds         `json:"latencies"`
	StartTimes     []seconds         `json:"start_times"`
	Errors         []json.RawMessage `json:"errors"`
}

// seconds is a time that may be null.
type seconds float64

// UnmarshalJSON reads a number, or null.
func (s *seconds) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		*s = seconds(missing)
		return nil
	}
	return json.Unmarshal(text, (*float64)(s))
}

func isVLLMBench(h *head) bool {
	return !h.list && h.any("input_lens", "ttfts", "request_throughput", "total_input_tokens", "mean_ttft_ms") &&
		!isAIPerfSummary(h)
}

// readVLLMBench reads one result, or several in a row, as SGLang appends them.
func readVLLMBench(f *file, r *Recording) error {
	docs, err := textio.NewDocuments(f.Name, f)
	if err != nil {
		return err
	}
	var words [][]string
	err = forEach(docs.Read, func(result *benchResult) error {
		run, err := result.run(&docs.Position)
		if err != nil {
			return err
		}
		concurrency := ""
		if result.MaxConcurrency != nil {
			concurrency = fmt.Sprintf("concurrency=%g", *result.MaxConcurrency)
		}
		r.Runs = append(r.Runs, run)
		words = append(words, []string{fmt.Sprintf("qps=%v", result.RequestRate), concurrency})
		return nil
	})
	nameRuns(r.Runs, words)
	return err
}

// run converts a result to a run.
func (b *benchResult) run(p *textio.Position) (*Run, error) {
	if err := b.checkLists(p); err != nil {
		return nil, err
	}
	r := &Run{Model: b.ModelID, Clock: clientClock, Arrivals: len(b.StartTimes) > 0}
	if e := strings.ToLower(b.Backend); strings.HasPrefix(e, "vllm") || strings.HasPrefix(e, "sglang") {
		r.Engine = b.Backend
	}
	if rate, ok := b.RequestRate.(float64); ok && rate > 0 && !math.IsInf(rate, 0) {
		r.TargetRPS = rate
	}
	requests := make([]request, len(b.InputLens))
	for i := range requests {
		if b.StartTimes != nil && isMissing(float64(b.StartTimes[i])) {
			return nil, p.Errorf("%s is null: the send time is unknown; remove start_times if they are unknown",
				element("start_times", i))
		}
		if b.ITLs != nil && b.ITLs[i].null {
			return nil, p.Errorf("%s contains null: some inter-token latencies are unknown", element("itls", i))
		}
		requests[i] = b.request(i)
		w := fieldNames{element("input_lens", i), element("output_lens", i), element("ttfts", i),
			element("ttfts and itls", i)}
		if len(b.Latencies) > 0 {
			w.last = element("latencies", i)
		}
		if start := requests[i].at; !(start >= 0) || math.IsInf(start, 0) {
			return nil, p.Errorf("%s must be at least 0 s, is %g", element("start_times", i), start/1e6)
		}
		if err := requests[i].check(p, w); err != nil {
			return nil, err
		}
	}
	b.warn(r, requests)
	return r, r.setOutcomes(requests, p.Name)
}

// element is the path of an element of a list.
func element(list string, i int) string { return fmt.Sprintf("%s[%d]", list, i) }

// checkLists checks that all required lists are present and have the same length.
func (b *benchResult) checkLists(p *textio.Position) error {
	n := len(b.InputLens)
	for _, list := range []struct {
		name     string
		length   int
		optional bool
	}{
		{"input_lens", n, false}, {"output_lens", len(b.OutputLens), false}, {"ttfts", len(b.TTFTs), false},
		{"itls", len(b.ITLs), len(b.Latencies) > 0}, {"latencies", len(b.Latencies), true},
		{"start_times", len(b.StartTimes), true}, {"errors", len(b.Errors), true},
	} {
		switch {
		case list.length == 0 && !list.optional:
			return p.Errorf("%s is missing; vllm bench serve writes it with --save-result --save-detailed, SGLang's "+
				"bench_serving with --output-details", list.name)
		case list.length != n && list.length != 0:
			return p.Errorf("%s has %d entries, input_lens has %d", list.name, list.length, n)
		}
	}
	return nil
}

// request converts the entries at index i. A request with an error failed, whatever its other
// fields: its ttft is 0.
func (b *benchResult) request(i int) request {
	c := newRequest()
	c.InputTokens, c.at = b.InputLens[i], 0
	if len(b.StartTimes) > 0 {
		c.at = float64(b.StartTimes[i]) * 1e6
	}
	reason := ""
	if len(b.Errors) > 0 {
		reason = errorMessage(b.Errors[i])
	}
	if reason != "" || b.OutputLens[i] == 0 {
		c.fail(cmp.Or(reason, "no_output"))
		return c
	}
	c.complete(b.OutputLens[i])
	if ttft := float64(b.TTFTs[i]); ttft != 0 {
		c.first = c.at + ttft*1e6
	}
	switch {
	case len(b.Latencies) > 0:
		c.last = c.at + float64(b.Latencies[i])*1e6
	case !isMissing(c.first):
		c.last = c.first + b.ITLs[i].sum*1e6
	}
	if len(b.ITLs) > 0 {
		b.ITLs[i].setITLs(&c)
		c.chunks = int64(len(b.ITLs[i].list)) + 1
	}
	return c
}

const (
	// maxDisagreement is the relative difference between a latency and the sum of its parts above
	// which it is reported.
	maxDisagreement = 0.1
	// slowFirstToken is the minimum TTFT of a run, in s, above which its unit is questioned.
	slowFirstToken = 5
)

// warn reports suspicious content.
func (b *benchResult) warn(r *Run, requests []request) {
	answered, disagree := int64(0), 0
	quickest := missing
	for i := range requests {
		c := &requests[i]
		if c.State != completed {
			continue
		}
		answered++
		if ttft := (c.first - c.at) / 1e6; !(quickest <= ttft) {
			quickest = ttft
		}
		if i < len(b.ITLs) && i < len(b.Latencies) {
			latency := float64(b.Latencies[i])
			if math.Abs(latency-float64(b.TTFTs[i])-b.ITLs[i].sum) > maxDisagreement*latency {
				disagree++
			}
		}
	}
	if disagree > 0 {
		r.warnf("latencies of %d requests differ from ttfts plus itls by more than %g %%; check clocks and units; "+
			"E2E is taken from latencies", disagree, 100*maxDisagreement)
	}
	if quickest > slowFirstToken {
		r.warnf("the lowest TTFT is %.4g s; ttfts are read as s, check that they are not ms", quickest)
	}
	if !r.Arrivals {
		r.warnf("start_times is missing: %s (newer versions of vllm bench serve write it)", noArrivalsWarning)
	}
	if b.Completed != nil && *b.Completed != answered {
		r.warnf("completed is %d, but %d requests have output and no error", *b.Completed, answered)
	}
	if b.MaxConcurrency != nil && *b.MaxConcurrency > 0 {
		r.warnf(closedLoopWarning, fmt.Sprintf("max_concurrency was %g", *b.MaxConcurrency))
	}
	r.warnStreaming(requests)
}
