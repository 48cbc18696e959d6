package recording

import (
	"strings"

	"blis/pkg/textio"
)

const phaseColumns = "request_id,phase_type,t_start,t_end,prefill_tokens,decode_tokens"

func isPhases(h *head) bool { return h.has("phase_type", "t_start", "t_end") }

// phases are those of a table of what vLLM's engine did for each request: rows of
// prefill and decode, with times in s.
type phases struct {
	*textio.Sheet
	id, kind, start, end, prefill, decode int
	calls                                 []*phased
	byID                                  map[string]*phased
}

// phased is a request of which some phases are known.
type phased struct {
	call
	prefilled, decoded bool
}

// readPhases reads such a table. When requests came is not in it, nor the queue:
// arrivals stand for the start of prefill.
func readPhases(f *file, r *Recording) error {
	s, err := textio.NewSheet(f.Name, f, phaseColumns)
	if err != nil {
		return err
	}
	p := &phases{Sheet: s, byID: map[string]*phased{}}
	if err := s.NeedAll(textio.Want("request_id", &p.id), textio.Want("phase_type", &p.kind), textio.Want("t_start", &p.start), textio.Want("t_end", &p.end),
		textio.Want("prefill_tokens", &p.prefill), textio.Want("decode_tokens", &p.decode)); err != nil {
		return err
	}
	if err := eachRow(s, "rows", p.row); err != nil {
		return err
	}
	run := &Run{Clock: ServerClock, Engine: "vllm"}
	run.warnf("when requests came is not said, only when prefill began: what was before it (the queue, the overhead α0 and α1) cannot be told")
	var calls []call
	for _, c := range p.calls {
		if !c.prefilled {
			return (&textio.Place{Name: f.Name}).Errorf("request %s has no row of prefill", c.ID)
		}
		c.complete(c.OutputTokens)
		if !c.decoded { // its only token came with the prefill
			c.complete(1)
			c.last = c.first
		}
		if err := c.check(&textio.Place{Name: f.Name}, words{"prefill_tokens of " + c.ID, "decode_tokens of " + c.ID, "t_end of prefill of " + c.ID, "t_end of decode of " + c.ID}); err != nil {
			return err
		}
		calls = append(calls, c.call)
	}
	r.Runs = []*Run{run}
	return outcomes(&textio.Place{Name: f.Name}, calls, run)
}

// row takes the phase of the next row. A request that was preempted has several
// of a kind: its first prefill and its last decode count, and all tokens of
// decode, which are all that it generated.
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
		c = &phased{call: newCall()}
		c.ID = id
		p.byID[id] = c
		p.calls = append(p.calls, c)
	}
	switch kind := p.Value(p.kind); {
	case kind == "prefill" && !c.prefilled:
		c.prefilled, c.InputTokens = true, prefill
		c.at, c.scheduled, c.first = start*1e6, start*1e6, end*1e6
	case kind == "prefill":
	case kind == "decode":
		c.decoded = true
		c.OutputTokens += decode
		if isAbsent(c.last) || end*1e6 > c.last {
			c.last = end * 1e6
		}
	default:
		return p.Errorf("phase_type must be prefill or decode, is %q", kind)
	}
	return nil
}
