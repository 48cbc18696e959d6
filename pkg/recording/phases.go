package recording

import (
	"strings"

	"blis/pkg/textio"
)

const phaseColumns = "request_id,phase_type,t_start,t_end,prefill_tokens,decode_tokens"

func isPhases(h *head) bool { return h.has("phase_type", "t_start", "t_end") }

// phases reads a table of what vLLM's engine did for each request: rows of prefill and decode, with
// times in s.
type phases struct {
	*textio.Table
	id, kind, start, end, prefill, decode int
	requests                              []*phasedRequest
	byID                                  map[string]*phasedRequest
}

// phasedRequest is a request with the phases read so far.
type phasedRequest struct {
	request
	prefilled, decoded bool
}

// readPhases reads a table of phases. It has no arrival and queue times: arrivals are the start of
// prefill.
func readPhases(f *file, r *Recording) error {
	s, err := textio.NewTable(f.Name, f, phaseColumns)
	if err != nil {
		return err
	}
	p := &phases{Table: s, id: s.RequireColumn("request_id"), kind: s.RequireColumn("phase_type"),
		start: s.RequireColumn("t_start"), end: s.RequireColumn("t_end"),
		prefill: s.RequireColumn("prefill_tokens"), decode: s.RequireColumn("decode_tokens"),
		byID: map[string]*phasedRequest{}}
	if err := forEachRow(s, "rows", p.row); err != nil {
		return err
	}
	run := &Run{Clock: ServerClock, Engine: "vllm"}
	run.warnf("arrival times are missing: time before prefill (the queue, the overhead α0 and α1) is unknown")
	var requests []request
	for _, c := range p.requests {
		if !c.prefilled {
			return f.Errorf("request %s has no prefill row", c.ID)
		}
		c.complete(c.OutputTokens)
		if !c.decoded { // the prefill produced its only token
			c.complete(1)
			c.last = c.first
		}
		if err := c.check(&f.Position, fieldNames{"prefill_tokens of " + c.ID, "decode_tokens of " +
			c.ID, "t_end of prefill of " + c.ID, "t_end of decode of " + c.ID}); err != nil {
			return err
		}
		requests = append(requests, c.request)
	}
	return r.add(run, requests)
}

// row adds the phase of the current row. A preempted request has several rows of a phase: the first
// prefill and the last decode count, and all decode tokens, which are all that it generated.
func (p *phases) row() error {
	id := strings.Clone(p.Value(p.id))
	if id == "" {
		return p.Errorf("request_id is empty")
	}
	start, end := p.Time(p.start), p.Time(p.end)
	if end < start {
		return p.Errorf("t_end must not be before t_start (%g), is %g", start, end)
	}
	prefill, decode := p.Integer(p.prefill), p.Integer(p.decode)
	c := p.byID[id]
	if c == nil {
		c = &phasedRequest{request: newRequest()}
		c.ID = id
		p.byID[id] = c
		p.requests = append(p.requests, c)
	}
	switch kind := p.Value(p.kind); {
	case kind == "prefill" && !c.prefilled:
		c.prefilled, c.InputTokens = true, prefill
		c.at, c.scheduled, c.first = start*1e6, start*1e6, end*1e6
	case kind == "prefill":
	case kind == "decode":
		c.decoded = true
		c.OutputTokens += decode
		if isMissing(c.last) || end*1e6 > c.last {
			c.last = end * 1e6
		}
	default:
		return p.Errorf("phase_type must be prefill or decode, is %q", kind)
	}
	return nil
}
