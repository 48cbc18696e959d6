package trace

import (
	"strings"

	"blis/pkg/stream"
	"blis/pkg/textio"
)

// The columns of a plain table with their alternative names.
var (
	plainTimes = []struct {
		name string
		us   float64 // µs per unit
	}{{"arrival_s", 1e6}, {"timestamp_ms", 1e3}, {"arrival_us", 1}}
	plainInputs  = []string{"input_tokens", "input_length"}
	plainOutputs = []string{"output_tokens", "output_length"}
)

const plainColumns = "arrival_s or timestamp_ms or arrival_us, input_tokens or input_length, output_tokens or " +
	"output_length"

// plain reads a table of arrivals and lengths. Times are kept. Other columns are named in a
// warning.
type plain struct {
	*textio.Table
	at, input, output int
	us                float64 // µs per unit of time
}

func openPlain(in Input, _ Options) (Reader, error) {
	s, err := textio.OpenTable(in, plainColumns)
	if err != nil {
		return nil, err
	}
	p := &plain{Table: s}
	if err := p.findColumns(); err != nil {
		s.Close()
		return nil, err
	}
	if others := s.UnusedColumns(p.at, p.input, p.output); len(others) > 0 {
		s.Warnf("unknown columns are ignored: %s", strings.Join(others, ", "))
	}
	return p, nil
}

// findColumns looks up the columns.
func (p *plain) findColumns() (err error) {
	p.at = -1
	for _, t := range plainTimes {
		at := p.Column(t.name)
		if at >= 0 && p.at >= 0 {
			return p.Errorf("has both %s and %s; remove one of them", p.Header[p.at], t.name)
		}
		if at >= 0 {
			p.at, p.us = at, t.us
		}
	}
	if p.at < 0 {
		_, err = p.RequireColumn("arrival_s", "timestamp_ms", "arrival_us")
		return err
	}
	if p.input, err = p.RequireColumn(plainInputs...); err != nil {
		return err
	}
	p.output, err = p.RequireColumn(plainOutputs...)
	return err
}

func (p *plain) Next(a *stream.Arrival) (float64, error) {
	if err := p.Read(); err != nil {
		return 0, err
	}
	at, err := p.Time(p.at)
	if err != nil {
		return 0, err
	}
	r := request(a)
	return at * p.us, p.Integers([]int{p.input, p.output}, &r.InputTokens, &r.OutputTokens)
}
