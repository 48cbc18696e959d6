package trace

import (
	"encoding/json"
	"io"
	"math"
	"slices"

	"blis/pkg/record"
	"blis/pkg/source"
)

// vllmBench reads a result of vLLM's benchmark (vllm bench serve --save-result
// --save-detailed): one JSON document with a list for each quantity, an entry a
// request. It is held in memory. The first start is at 0; requests come in the
// order of their starts. Those that failed are left out. What was measured is
// left aside.
type vllmBench struct {
	source.Place
	calls  []benchCall
	next   int
	failed int64
}

// benchResult is what matters of the document.
type benchResult struct {
	InputLens  []int64   `json:"input_lens"`
	OutputLens []int64   `json:"output_lens"`
	StartTimes []float64 `json:"start_times"` // s
	Errors     []string  `json:"errors"`
}

// benchCall is one request; at is its place in the lists.
type benchCall struct {
	at            int
	start         float64
	input, output int64
}

func openVLLMBench(in Input, _ Options) (Reader, error) {
	t, err := in.Open()
	if err != nil {
		return nil, err
	}
	defer t.Close()
	b := &vllmBench{Place: source.Place{Name: in.Name}}
	dec := json.NewDecoder(t)
	var result benchResult
	if err := dec.Decode(&result); err == io.EOF {
		return nil, b.Errorf("is empty; a benchmark result is one JSON object")
	} else if err != nil {
		return nil, b.Errorf("at byte %d: %s", dec.InputOffset(), source.JSONFault(err))
	}
	if _, err := dec.Token(); err == nil {
		return nil, b.Errorf("holds more than one result; give each its own file")
	} else if err != io.EOF {
		return nil, b.Errorf("after the result: %s", source.JSONFault(err))
	}
	if err := b.take(&result); err != nil {
		return nil, err
	}
	return b, nil
}

// take brings the requests into order.
func (b *vllmBench) take(r *benchResult) error {
	n := len(r.InputLens)
	for _, list := range []struct {
		name     string
		length   int
		optional bool
	}{{"input_lens", n, false}, {"output_lens", len(r.OutputLens), false}, {"start_times", len(r.StartTimes), false}, {"errors", len(r.Errors), true}} {
		switch {
		case list.length == 0 && !list.optional:
			return b.Errorf("%s is missing; vllm bench serve writes it with --save-result --save-detailed", list.name)
		case list.length != n && list.length != 0:
			return b.Errorf("%s has %d entries, input_lens has %d", list.name, list.length, n)
		}
	}
	for i := range n {
		if start := r.StartTimes[i]; !(start >= 0) || math.IsInf(start, 0) {
			return b.Errorf("start_times[%d] must be at least 0 s, is %g", i, start)
		}
		if r.OutputLens[i] == 0 || len(r.Errors) > 0 && r.Errors[i] != "" {
			b.failed++
			continue
		}
		b.calls = append(b.calls, benchCall{i, r.StartTimes[i], r.InputLens[i], r.OutputLens[i]})
	}
	first := slices.Min(r.StartTimes)
	for i := range b.calls {
		b.calls[i].start -= first
	}
	slices.SortStableFunc(b.calls, func(x, y benchCall) int {
		switch {
		case x.start < y.start:
			return -1
		case x.start > y.start:
			return 1
		}
		return 0
	})
	return nil
}

func (b *vllmBench) Next(a *record.Arrival) (float64, error) {
	if b.next == len(b.calls) {
		return 0, io.EOF
	}
	c := &b.calls[b.next]
	b.next++
	r := request(a)
	r.InputTokens, r.OutputTokens = c.input, c.output
	return c.start * 1e6, nil
}

// Errorf names the place of the request at hand in the lists.
func (b *vllmBench) Errorf(format string, args ...any) error {
	if b.next > 0 {
		return b.Place.Errorf("entry %d of the lists: "+format, append([]any{b.calls[b.next-1].at}, args...)...)
	}
	return b.Place.Errorf(format, args...)
}

// Warnings says what was left out.
func (b *vllmBench) Warnings() []string { return b.LeftOut(b.failed, "that failed") }

// Close has nothing to close.
func (b *vllmBench) Close() error { return nil }
