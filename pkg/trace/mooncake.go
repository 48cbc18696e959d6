package trace

import "blis/pkg/stream"

// mooncake reads the traces of Mooncake (github.com/kvcache-ai/Mooncake) and others in that format.
// Times are already relative and kept.
type mooncake struct {
	hashedLines
	row mooncakeRow
}

// mooncakeRow is one line; the pointers must be given.
type mooncakeRow struct {
	Timestamp    *float64 `json:"timestamp"` // ms
	InputLength  *int64   `json:"input_length"`
	OutputLength *int64   `json:"output_length"`
	HashIDs      hashIDs  `json:"hash_ids"`
}

func openMooncake(in Input, o Options) (Reader, error) {
	l, err := openHashedLines(in, o)
	return &mooncake{hashedLines: l}, err
}

func (m *mooncake) Next(a *stream.Arrival) (float64, error) {
	m.row = mooncakeRow{HashIDs: m.row.HashIDs[:0]}
	if err := m.Read(&m.row); err != nil {
		return 0, err
	}
	ms := *m.row.Timestamp
	if err := m.Time("timestamp", ms, "ms"); err != nil {
		return 0, err
	}
	r := request(a)
	r.InputTokens, r.OutputTokens = *m.row.InputLength, *m.row.OutputLength
	return ms * 1000, m.prompt(r, m.row.HashIDs, true)
}
