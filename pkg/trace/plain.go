package trace

import (
	"strings"

	"blis/pkg/stream"
	"blis/pkg/textio"
)

// The columns of a plain table with their alternative names.
var (
	plainTimes   = []string{"arrival_s", "timestamp_ms", "arrival_us"}
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
}

func openPlain(in Input, _ Options) (Reader, error) {
	s, err := textio.OpenTable(in, plainColumns)
	if err != nil {
		return nil, err
	}
	p := &plain{Table: s, at: s.RequireTimeColumn(plainTimes...), input: s.RequireColumn(plainInputs...),
		output: s.RequireColumn(plainOutputs...)}
	if s.Err() != nil {
		s.Close()
		return nil, s.Err()
	}
	if others := s.UnusedColumns(p.at, p.input, p.output); len(others) > 0 {
		s.Warnf("unknown columns are ignored: %s", strings.Join(others, ", "))
	}
	return p, nil
}

func (p *plain) Next(a *stream.Arrival) (float64, error) {
	if err := p.Read(); err != nil {
		return 0, err
	}
	r := request(a)
	us := p.TimeUS(p.at)
	r.InputTokens, r.OutputTokens = p.Integer(p.input), p.Integer(p.output)
	return us, p.Err()
}
