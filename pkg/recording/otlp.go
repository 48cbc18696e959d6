package recording

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"blis/pkg/textio"
)

// otlpExport holds the relevant fields of an OpenTelemetry trace export in JSON (one or many per
// file) with the spans that vLLM makes for each request (--otlp-traces-endpoint; vllm/tracing.py,
// vllm/v1/engine/output_processor.py).
type otlpExport struct {
	Resources []struct {
		Scopes []struct {
			Scope struct {
				Name string `json:"name"`
			} `json:"scope"`
			Spans []otlpSpan `json:"spans"`
		} `json:"scopeSpans"`
	} `json:"resourceSpans"`
}

// spans yields all spans with the names of their scopes, in order.
func (e *otlpExport) spans(yield func(scope string, s *otlpSpan) bool) {
	for _, resource := range e.Resources {
		for _, scope := range resource.Scopes {
			for i := range scope.Spans {
				if !yield(scope.Scope.Name, &scope.Spans[i]) {
					return
				}
			}
		}
	}
}

// otlpSpan is one span.
type otlpSpan struct {
	SpanID     string          `json:"spanId"`
	Name       string          `json:"name"`
	StartNano  otlpNumber      `json:"startTimeUnixNano"`
	EndNano    otlpNumber      `json:"endTimeUnixNano"`
	Attributes []otlpAttribute `json:"attributes"`
}

// otlpAttribute is one attribute of a span.
type otlpAttribute struct {
	Key   string `json:"key"`
	Value struct {
		String string     `json:"stringValue"`
		Int    otlpNumber `json:"intValue"`
		Double otlpNumber `json:"doubleValue"`
	} `json:"value"`
}

// otlpNumber is a number or a numeric string, which is how Protocol Buffers JSON writes 64-bit
// integers; "" means absent.
type otlpNumber string

// UnmarshalJSON reads either form.
func (n *otlpNumber) UnmarshalJSON(text []byte) error {
	var s string
	if len(text) > 0 && text[0] == '"' {
		if err := json.Unmarshal(text, &s); err != nil {
			return err
		}
	} else if string(text) != "null" {
		s = string(text)
	}
	if _, err := strconv.ParseFloat(s, 64); s != "" && err != nil {
		return fmt.Errorf("must be a number, not %.40s", text)
	}
	*n = otlpNumber(s)
	return nil
}

// float is the number; NaN if absent.
func (n otlpNumber) float() float64 {
	v, err := strconv.ParseFloat(string(n), 64)
	if err != nil {
		return math.NaN()
	}
	return v
}

// otlpRequest is the name of request spans.
const otlpRequest = "llm_request"

func isOTLP(h *head) bool { return !h.list && h.has("resourceSpans") }

// readOTLP reads spans. A span begins when the server's frontend receives the request; queue and
// prefill times are the engine's own. The rest of TTFT (tokenization, transfer to the engine and
// back) is counted before the queue, because its position is unknown. A span that was exported
// twice counts once.
func readOTLP(f *file, r *Recording) error {
	docs, err := textio.NewDocuments(f.Name, f)
	if err != nil {
		return err
	}
	run := &Run{Clock: ServerClock, Arrivals: true}
	var requests []request
	seen := map[string]bool{}
	var others, duplicates, overlapping int
	err = forEach(docs.Read, func(export *otlpExport) error {
		for scope, s := range export.spans {
			if s.Name != otlpRequest {
				others++
				continue
			}
			if seen[s.SpanID] && s.SpanID != "" {
				duplicates++
				continue
			}
			seen[s.SpanID] = true
			c, early, err := s.request(&docs.Position)
			if err != nil {
				return err
			}
			if early {
				overlapping++
			}
			requests = append(requests, c)
			if scope == "vllm.llm_engine" {
				run.Engine = "vllm"
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if len(requests) == 0 {
		return f.Errorf("contains no spans %s (%d other spans)", otlpRequest, others)
	}
	if duplicates > 0 {
		run.warnf("left out %d duplicate spans", duplicates)
	}
	if overlapping > 0 {
		run.warnf("in %d requests queue and prefill take longer than TTFT; their queue time is assumed to begin at "+
			"arrival", overlapping)
	}
	return r.add(run, requests)
}

// request converts a span; early says that its queue time would begin before its arrival.
func (s *otlpSpan) request(p *textio.Position) (c request, early bool, err error) {
	c = newRequest()
	values := map[string]otlpNumber{}
	for i := range s.Attributes {
		a := &s.Attributes[i]
		values[a.Key] = cmp.Or(a.Value.Int, a.Value.Double)
		switch a.Key {
		case "gen_ai.request.id":
			c.ID = a.Value.String
		case "gen_ai.response.model":
			c.Model = a.Value.String
		}
	}
	start, err := strconv.ParseInt(string(s.StartNano), 10, 64)
	if err != nil || start < 0 {
		return c, false, p.Errorf("startTimeUnixNano of a span must be an integer (ns), is %q", s.StartNano)
	}
	c.at = float64(start) / 1e3
	output := int64(0)
	for _, n := range []struct {
		key  string
		into *int64
	}{{"gen_ai.usage.prompt_tokens", &c.InputTokens}, {"gen_ai.usage.completion_tokens", &output}} {
		text, present := values[n.key]
		if !present {
			return c, false, p.Errorf("a span %s has no attribute %s", otlpRequest, n.key)
		}
		if *n.into, err = strconv.ParseInt(string(text), 10, 64); err != nil {
			return c, false, p.Errorf("%s must be an integer, is %q", n.key, text)
		}
	}
	seconds := func(key string) float64 {
		us := values[key].float() * 1e6
		if us < 0 && err == nil {
			err = p.Errorf("%s must be at least 0 s, is %s", key, values[key])
		}
		return us
	}
	c.complete(output)
	c.first = c.at + seconds("gen_ai.latency.time_to_first_token")
	if c.last = c.at + seconds("gen_ai.latency.e2e"); isMissing(c.last) {
		c.last = s.EndNano.float() / 1e3
	}
	c.scheduled = c.first - seconds("gen_ai.latency.time_in_model_prefill")
	c.queued = c.scheduled - seconds("gen_ai.latency.time_in_queue")
	if err != nil {
		return c, false, err
	}
	if early = c.queued < c.at; early {
		c.queued, c.scheduled = c.at, max(c.scheduled, c.at)
	}
	return c, early, c.check(p, fieldNames{"gen_ai.usage.prompt_tokens", "gen_ai.usage.completion_tokens",
		"gen_ai.latency.time_to_first_token", "gen_ai.latency.e2e"})
}
