package recording

import (
	"cmp"
	"encoding/json"
	"fmt"

	"blis/pkg/textio"
)

// lifecycle holds the relevant fields of an element of inference-perf's
// per_request_lifecycle_metrics.json (github.com/kubernetes-sigs/inference-perf). Since 0.5 lengths
// and times are in info.response_metrics, before in info. Times are s on the client's clock. Nil
// means absent.
type lifecycle struct {
	Start *float64        `json:"start_time"`
	End   *float64        `json:"end_time"`
	Error json.RawMessage `json:"error"`
	Info  struct {
		InputTokens int64 `json:"input_tokens"`
		lifecycleResponse
		Request struct {
			Text struct {
				InputTokens int64 `json:"input_tokens"`
			} `json:"text"`
		} `json:"request_metrics"`
		Response *struct {
			lifecycleResponse
			Usage struct {
				Prompt     int64 `json:"prompt_tokens"`
				Completion int64 `json:"completion_tokens"`
			} `json:"server_usage"`
			ChunkTimes []float64 `json:"chunk_times"`
		} `json:"response_metrics"`
	} `json:"info"`
}

// lifecycleResponse holds the fields of a response that both layouts have.
type lifecycleResponse struct {
	OutputTokens int64     `json:"output_tokens"`
	TokenTimes   []float64 `json:"output_token_times"`
}

func isInferencePerf(h *head) bool {
	return h.list && h.has("start_time") && h.any("end_time", "request", "info")
}

// readInferencePerf reads a list of lifecycle elements.
func readInferencePerf(f *file, r *Recording) error {
	var list []lifecycle
	if err := textio.ReadDocument(f.Name, f, &list); err != nil {
		return err
	}
	if len(list) == 0 {
		return f.Errorf("contains no requests")
	}
	run := &Run{Clock: clientClock, Arrivals: true}
	var requests []request
	var twoEvents, recounted int
	for i := range list {
		q := &list[i]
		c, err := q.request(&f.Position, fmt.Sprintf("[%d]", i))
		if err != nil {
			return err
		}
		requests = append(requests, c)
		if c.State != completed {
			continue
		}
		counted := q.Info.OutputTokens
		if q.Info.Response != nil {
			counted = q.Info.Response.OutputTokens
		}
		if c.chunks >= 2*c.OutputTokens-2 && c.OutputTokens > 4 {
			twoEvents++
		}
		if counted != c.OutputTokens {
			recounted++
		}
	}
	if twoEvents > 0 {
		run.warnf("%d outputs came in two events per token: inter-token latencies are unknown and left out", twoEvents)
	}
	if recounted > 0 {
		run.warnf("client and server count different output tokens in %d requests; the server's count is used",
			recounted)
	}
	run.warnStreaming(requests)
	return r.add(run, requests)
}

// request converts an element.
func (q *lifecycle) request(p *textio.Position, place string) (request, error) {
	c := newRequest()
	if q.Start == nil {
		return c, p.Errorf("%s.start_time is missing", place)
	}
	c.at, c.last = *q.Start*1e6, inMicros(q.End)
	output, input := q.Info.OutputTokens, cmp.Or(q.Info.InputTokens, q.Info.Request.Text.InputTokens)
	times := q.Info.TokenTimes
	if m := q.Info.Response; m != nil {
		output, input = cmp.Or(m.Usage.Completion, m.OutputTokens), cmp.Or(m.Usage.Prompt, input)
		if times = m.TokenTimes; len(times) == 0 {
			times = m.ChunkTimes
		}
	}
	c.InputTokens = input
	w := fieldNames{place + ".info.input_tokens", place + ".info.output_tokens", place + ".info.output_token_times[0]",
		place + ".end_time"}
	if reason := errorMessage(q.Error); reason != "" {
		c.OutputTokens = output
		c.fail(reason)
		return c, c.check(p, w)
	}
	c.complete(output)
	var between gaps
	for i, at := range times {
		if i == 0 {
			c.first = at * 1e6
			continue
		}
		if at < times[i-1] {
			return c, p.Errorf("%s.info.output_token_times[%d] is before the one above it, by %.6g ms", place, i,
				(times[i-1]-at)*1e3)
		}
		between.list = append(between.list, at-times[i-1])
	}
	c.chunks = int64(len(times))
	between.setITLs(&c)
	return c, c.check(p, w)
}
