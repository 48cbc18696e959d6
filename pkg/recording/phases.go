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
	p := &phases{Table: s, byID: map[string]*phasedRequest{}}
	if err := s.RequireColumns(textio.Ref("request_id", &p.id), textio.Ref("phase_type", &p.kind),
		textio.Ref("t_start", &p.start), textio.Ref("t_end", &p.end),
		textio.Ref("prefill_tokens", &p.prefill), textio.Ref("decode_tokens", &p.decode)); err != nil {
		return err
	}
	if err := forEachRow(s, "rows", p.row); err != nil {
		return err
	}
	run := &Run{Clock: ServerClock, Engine: "vllm"}
	run.warnf("arrival times are missing: time before prefill (the queue, the overhead α0 and α1) is unknown")
	var requests []request
	for _, c := range p.requests {
		if !c.prefilled {
			return (&textio.Position{Name: f.Name}).Errorf("request %s has no prefill row", c.ID)
		}
		c.complete(c.OutputTokens)
		if !c.decoded { // the prefill produced its only token
			c.complete(1)
			c.last = c.first
		}
		if err := c.check(&textio.Position{Name: f.Name}, fieldNames{"prefill_tokens of " + c.ID, "decode_tokens of " +
			c.ID, "t_end of prefill of " + c.ID, "t_end of decode of " + c.ID}); err != nil {
			return err
		}
		requests = append(requests, c.request)
	}
	r.Runs = []*Run{run}
	return outcomes(&textio.Position{Name: f.Name}, requests, run)
}

// row adds the phase of the next row. A preempted request has several rows of a phase: the first
// prefill and the last decode count, and all decode tokens, which are all that it generated.
func (p *phases) row() error {
	if err := p.Read(); err != nil {
		return err
	}
	id := strings.Clone(p.Value(p.id))
	if id == "" {
		return p.Errorf("request_id is empty")
	}
	start, err := p.Time(p.start)
	if err != nil {
		return err
	}
	end, err := p.Time(p.end)
	if err != nil {
		return err
	}
	if end < start {
		return p.Errorf("t_end must not be before t_start (%g), is %g", start, end)
	}
	var prefill, decode int64
	if err := p.Integers([]int{p.prefill, p.decode}, &prefill, &decode); err != nil {
		return err
	}
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
