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
	docs, err := textio.NewDocuments(f.Name, f)
	if err != nil {
		return err
	}
	var list []lifecycle
	if err := docs.ReadSingle(&list); err != nil {
		return err
	}
	if len(list) == 0 {
		return docs.Errorf("contains no requests")
	}
	run := &Run{Clock: clientClock, Arrivals: true}
	var requests []request
	var twoEvents, chunked, recounted int
	for i := range list {
		q := &list[i]
		c, times, err := q.request(&docs.Position, fmt.Sprintf("[%d]", i))
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
		events := int64(len(times))
		switch {
		case isMissing(c.first):
		case events >= 2*c.OutputTokens-2 && c.OutputTokens > 4:
			twoEvents++
		case events < c.OutputTokens:
			chunked++
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
	run.warnChunks(chunked)
	run.warnUnstreamed(countUnstreamed(requests))
	r.Runs = []*Run{run}
	return outcomes(&textio.Position{Name: f.Name}, requests, run)
}

// request converts an element and returns the times of its output events.
func (q *lifecycle) request(p *textio.Position, place string) (request, []float64, error) {
	c := newRequest()
	if q.Start == nil {
		return c, nil, p.Errorf("%s.start_time is missing", place)
	}
	c.at = *q.Start * 1e6
	response := &q.Info.lifecycleResponse
	output, input, times := response.OutputTokens, cmp.Or(q.Info.InputTokens, q.Info.Request.Text.InputTokens),
		response.TokenTimes
	if m := q.Info.Response; m != nil {
		output, input = cmp.Or(m.Usage.Completion, m.OutputTokens), cmp.Or(m.Usage.Prompt, input)
		if times = m.TokenTimes; len(times) == 0 {
			times = m.ChunkTimes
		}
	}
	c.InputTokens = input
	w := fieldNames{place + ".info.input_tokens", place + ".info.output_tokens", place + ".info.output_token_times[0]",
		place + ".end_time"}
	if q.End != nil {
		c.last = *q.End * 1e6
	}
	if reason := errorMessage(q.Error); reason != "" {
		c.OutputTokens = output
		c.fail(reason)
		return c, nil, c.check(p, w)
	}
	c.complete(output)
	if len(times) > 0 {
		c.first = times[0] * 1e6
	}
	for i := 1; i < len(times); i++ {
		if times[i] < times[i-1] {
			return c, nil, p.Errorf("%s.info.output_token_times[%d] is before the one above it, by %.6g ms", place, i,
				(times[i-1]-times[i])*1e3)
		}
	}
	if int64(len(times)) == output {
		between := gaps{n: len(times) - 1}
		for i := 1; i < len(times); i++ {
			between.list = append(between.list, times[i]-times[i-1])
		}
		between.setITLs(&c)
	}
	return c, times, c.check(p, w)
}
