package recording

import (
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
		Input    *aiperfValue `json:"input_sequence_length"`
		Output   *aiperfValue `json:"output_sequence_length"`
		TTFT     *aiperfValue `json:"time_to_first_token"`
		Latency  *aiperfValue `json:"request_latency"`
		ChunkGap *aiperfGaps  `json:"inter_chunk_latency"`
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

// readAIPerf reads AIPerf records. Warm-up requests load the server too, so they are kept in their
// own stage.
func readAIPerf(f *file, r *Recording) error {
	run := &Run{Clock: clientClock, Arrivals: true}
	var list rows
	conversations := map[string]int{}
	chunked := 0
	err := forEachLine(f, func(l *textio.Lines, line *aiperfRecord) error {
		c, err := line.request(l)
		if err != nil {
			return err
		}
		if line.chunked(&c) {
			chunked++
		}
		conversations[c.Session]++
		list.add(c, line.Metadata.Phase)
		return nil
	})
	if err != nil {
		return err
	}
	for i := range list.requests {
		if c := &list.requests[i]; conversations[c.Session] == 1 { // a conversation of one turn is a single request
			c.Session, c.info.turn = "", 0
		}
	}
	run.warnChunks(chunked)
	run.warnUnstreamed(countUnstreamed(list.requests))
	r.Runs = []*Run{run}
	return list.finish(run, f.Name)
}

// request converts a line to a request.
func (a *aiperfRecord) request(l *textio.Lines) (request, error) {
	c := newRequest()
	m, v := &a.Metadata, &a.Metrics
	if m.StartNS == nil {
		return c, l.Errorf("metadata.request_start_ns is missing")
	}
	c.ID, c.Session, c.info.turn, c.at = m.ID, m.Conversation, m.Turn, float64(*m.StartNS)/1e3
	output := int64(0)
	for _, n := range []struct {
		name string
		from *aiperfValue
		into *int64
	}{{"input_sequence_length", v.Input, &c.InputTokens}, {"output_sequence_length", v.Output, &output}} {
		if n.from == nil || n.from.Value == nil {
			continue
		}
		if *n.into = int64(*n.from.Value); float64(*n.into) != *n.from.Value {
			return c, l.Errorf("metrics.%s must be an integer, not %g", n.name, *n.from.Value)
		}
	}
	if reason := errorMessage(a.Error); reason != "" || m.Canceled {
		if reason == "" {
			reason = "canceled"
		}
		c.OutputTokens = output
		c.fail(reason)
		return c, c.check(&l.Position, aiperfWords)
	}
	c.complete(output)
	for _, t := range []struct {
		name string
		from *aiperfValue
		into *float64
	}{{"time_to_first_token", v.TTFT, &c.first}, {"request_latency", v.Latency, &c.last}} {
		if t.from == nil || t.from.Value == nil {
			continue
		}
		us, err := aiperfUnits.Get("unit of metrics."+t.name, t.from.Unit)
		if err != nil {
			return c, l.Errorf("%v", err)
		}
		*t.into = c.at + *t.from.Value*us
	}
	if v.ChunkGap != nil {
		us, err := aiperfUnits.Get("unit of metrics.inter_chunk_latency", v.ChunkGap.Unit)
		if err != nil {
			return c, l.Errorf("%v", err)
		}
		v.ChunkGap.Value.scale(us / 1e6)
		v.ChunkGap.Value.setITLs(&c)
	}
	return c, c.check(&l.Position, aiperfWords)
}

var aiperfWords = fieldNames{"metrics.input_sequence_length", "metrics.output_sequence_length",
	"metrics.time_to_first_token", "metrics.request_latency"}

// chunked reports whether the output came in fewer chunks than tokens.
func (a *aiperfRecord) chunked(c *request) bool {
	return c.State == completed && a.Metrics.ChunkGap != nil && int64(a.Metrics.ChunkGap.Value.n) < c.OutputTokens-1
}
