package recording

import (
	"cmp"
	"encoding/json"

	"blis/pkg/registry"
	"blis/pkg/textio"
)

// aiperfRecord holds the relevant fields of a line of AIPerf's profile_export.jsonl
// (github.com/ai-dynamo/aiperf). Nil means absent.
type aiperfRecord struct {
	Metadata struct {
		ID           string `json:"x_request_id"`
		Conversation string `json:"conversation_id"`
		Turn         int64  `json:"turn_index"`
		StartNS      *int64 `json:"request_start_ns"`
		Phase        string `json:"benchmark_phase"`
		Canceled     bool   `json:"was_cancelled"`
	} `json:"metadata"`
	Metrics struct {
		Input    aiperfValue `json:"input_sequence_length"`
		Output   aiperfValue `json:"output_sequence_length"`
		TTFT     aiperfValue `json:"time_to_first_token"`
		Latency  aiperfValue `json:"request_latency"`
		ChunkGap *aiperfGaps `json:"inter_chunk_latency"`
	} `json:"metrics"`
	Error json.RawMessage `json:"error"`
}

// aiperfValue is a number with its unit, aiperfGaps a list.
type (
	aiperfValue struct {
		Value *float64 `json:"value"`
		Unit  string   `json:"unit"`
	}
	aiperfGaps struct {
		Value gaps   `json:"value"`
		Unit  string `json:"unit"`
	}
)

// aiperfUnits converts time units to µs.
var aiperfUnits = registry.Table[float64]{{Name: "ns", Value: 1e-3}, {Name: "us", Value: 1}, {Name: "ms", Value: 1e3},
	{Name: "sec", Value: 1e6}, {Name: "s", Value: 1e6}}

func isAIPerf(h *head) bool { return !h.list && h.has("metadata.request_start_ns") }

// isAIPerfSummary reports whether a file is AIPerf's profile_export_aiperf.json, which has metrics of all requests.
func isAIPerfSummary(h *head) bool { return !h.list && h.has("aiperf_version", "input_config") }

// readAIPerf reads AIPerf records. Warm-up requests load the server too, so they are kept in their
// own stage.
func readAIPerf(f *file, r *Recording) error {
	run := &Run{Clock: clientClock, Arrivals: true}
	var requests []request
	conversations := map[string]int{}
	l := textio.NewLines(f.Name, f)
	err := forEach(l.ReadLenient, func(line *aiperfRecord) error {
		c, err := line.request(l)
		if err != nil {
			return err
		}
		conversations[c.Session]++
		c.Step = line.Metadata.Phase
		requests = append(requests, c)
		return nil
	})
	if err != nil {
		return err
	}
	for i := range requests {
		if c := &requests[i]; conversations[c.Session] == 1 { // a conversation of one turn is a single request
			c.Session, c.info.turn = "", 0
		}
	}
	run.warnStreaming(requests)
	return r.add(run, requests)
}

// request converts a line to a request.
func (a *aiperfRecord) request(l *textio.Lines) (request, error) {
	c := newRequest()
	m, v := &a.Metadata, &a.Metrics
	if m.StartNS == nil {
		return c, l.Errorf("metadata.request_start_ns is missing")
	}
	c.ID, c.Session, c.info.turn, c.at = m.ID, m.Conversation, m.Turn, float64(*m.StartNS)/1e3
	var fault error
	integer := func(name string, v aiperfValue) (n int64) {
		if v.Value == nil {
			return 0
		}
		if n = int64(*v.Value); float64(n) != *v.Value && fault == nil {
			fault = l.Errorf("metrics.%s must be an integer, not %g", name, *v.Value)
		}
		return n
	}
	c.InputTokens = integer("input_sequence_length", v.Input)
	output := integer("output_sequence_length", v.Output)
	if fault != nil {
		return c, fault
	}
	if reason := errorMessage(a.Error); reason != "" || m.Canceled {
		c.OutputTokens = output
		c.fail(cmp.Or(reason, "canceled"))
		return c, c.check(&l.Position, aiperfWords)
	}
	c.complete(output)
	unit := func(name, unit string) float64 {
		us, err := aiperfUnits.Get("unit of metrics."+name, unit)
		if err != nil && fault == nil {
			fault = l.Errorf("%v", err)
		}
		return us
	}
	if v.TTFT.Value != nil {
		c.first = c.at + *v.TTFT.Value*unit("time_to_first_token", v.TTFT.Unit)
	}
	if v.Latency.Value != nil {
		c.last = c.at + *v.Latency.Value*unit("request_latency", v.Latency.Unit)
	}
	if v.ChunkGap != nil {
		v.ChunkGap.Value.scale(unit("inter_chunk_latency", v.ChunkGap.Unit) / 1e6)
		v.ChunkGap.Value.setITLs(&c)
		c.chunks = int64(len(v.ChunkGap.Value.list)) + 1
	}
	if fault != nil {
		return c, fault
	}
	return c, c.check(&l.Position, aiperfWords)
}

var aiperfWords = fieldNames{"metrics.input_sequence_length", "metrics.output_sequence_length",
	"metrics.time_to_first_token", "metrics.request_latency"}
