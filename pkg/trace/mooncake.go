package trace

import (
	"blis/pkg/stream"
	"blis/pkg/textio"
)

// mooncake reads the traces of Mooncake (github.com/kvcache-ai/Mooncake) and others in that format.
// Times are already relative and kept.
type mooncake struct {
	*textio.Lines
	blocks blocks
	row    mooncakeRow
}

// mooncakeRow is one line; nil means absent.
type mooncakeRow struct {
	Timestamp    *float64 `json:"timestamp"` // ms
	InputLength  *int64   `json:"input_length"`
	OutputLength *int64   `json:"output_length"`
	HashIDs      hashIDs  `json:"hash_ids"`
}

func openMooncake(in Input, o Options) (Reader, error) {
	l, err := textio.OpenLines(in)
	if err != nil {
		return nil, err
	}
	return &mooncake{Lines: l, blocks: blocks{size: o.BlockSize}}, nil
}

func (m *mooncake) Next(a *stream.Arrival) (float64, error) {
	m.row = mooncakeRow{HashIDs: m.row.HashIDs[:0]}
	err := m.Read(&m.row)
	if err == nil {
		err = m.Require(textio.MissingIf("timestamp", m.row.Timestamp == nil), textio.MissingIf("input_length",
			m.row.InputLength == nil), textio.MissingIf("output_length", m.row.OutputLength == nil))
	}
	if err != nil {
		return 0, err
	}
	ms := *m.row.Timestamp
	if err := m.Time("timestamp", ms, "ms"); err != nil {
		return 0, err
	}
	r := request(a)
	r.InputTokens, r.OutputTokens = *m.row.InputLength, *m.row.OutputLength
	return ms * 1000, m.blocks.prompt(&m.Position, r, m.row.HashIDs, true)
}

// Warnings reports suspicious content.
func (m *mooncake) Warnings() []string { return m.blocks.warnings(&m.Position) }
