package trace

import (
	"blis/pkg/stream"
	"blis/pkg/textio"
)

// burstgptColumns are the columns of all BurstGPT traces; later ones also have Session ID and
// Elapsed time.
const burstgptColumns = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type"

// burstgpt reads the traces of BurstGPT (github.com/HPMLL/BurstGPT). Times are seconds and kept. A
// request without response tokens failed; its output length is unknown, so it is left out. The
// tenant is model/log type, so that a filter can separate conversations from API calls.
type burstgpt struct {
	*textio.Table
	at, model, input, output, log, session int
	// turns counts the requests of each session so far.
	turns  map[string]int64
	failed int64
}

func openBurstGPT(in Input, _ Options) (Reader, error) {
	s, err := textio.OpenTable(in, burstgptColumns)
	if err != nil {
		return nil, err
	}
	b := &burstgpt{Table: s, session: s.Column("Session ID"), turns: map[string]int64{}}
	if err := s.RequireColumns(textio.Ref("Timestamp", &b.at), textio.Ref("Model", &b.model),
		textio.Ref("Request tokens", &b.input), textio.Ref("Response tokens", &b.output),
		textio.Ref("Log Type", &b.log)); err != nil {
		s.Close()
		return nil, err
	}
	return b, nil
}

func (b *burstgpt) Next(a *stream.Arrival) (float64, error) {
	for {
		if err := b.Read(); err != nil {
			return 0, err
		}
		seconds, err := b.Time(b.at)
		if err != nil {
			return 0, err
		}
		r := request(a)
		if err := b.Integers([]int{b.input, b.output}, &r.InputTokens, &r.OutputTokens); err != nil {
			return 0, err
		}
		if r.OutputTokens == 0 {
			b.failed++
			continue
		}
		r.Tenant = b.Value(b.model) + "/" + b.Value(b.log)
		if r.Session = b.Value(b.session); r.Session != "" {
			r.Turn = b.turns[r.Session]
			b.turns[r.Session]++
		}
		return seconds * 1e6, nil
	}
}

// Warnings reports the requests left out.
func (b *burstgpt) Warnings() []string {
	return b.WarningsWithDropped(b.failed, "that failed (no response tokens)")
}
