package trace

import (
	"fmt"

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
	b.at, b.model = s.RequireColumn("Timestamp"), s.RequireColumn("Model")
	b.input, b.output = s.RequireColumn("Request tokens"), s.RequireColumn("Response tokens")
	if b.log = s.RequireColumn("Log Type"); s.Err() != nil {
		s.Close()
		return nil, s.Err()
	}
	return b, nil
}

func (b *burstgpt) Next(a *stream.Arrival) (float64, error) {
	for {
		if err := b.Read(); err != nil {
			return 0, err
		}
		seconds := b.Time(b.at)
		r := request(a)
		if r.InputTokens, r.OutputTokens = b.Integer(b.input), b.Integer(b.output); b.Err() != nil {
			return 0, b.Err()
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
	if b.failed == 0 {
		return b.Table.Warnings()
	}
	return append(b.Table.Warnings(), fmt.Sprintf("%s: left out %d requests that failed (no response tokens)", b.Name,
		b.failed))
}
