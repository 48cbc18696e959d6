package trace

import (
	"slices"
	"strings"
	"time"

	"blis/pkg/stream"
	"blis/pkg/textio"
)

// azureColumns are the columns of the Azure LLM inference traces of 2023 and 2024
// (github.com/Azure/AzurePublicDataset).
var azureColumns = []string{"TIMESTAMP", "ContextTokens", "GeneratedTokens"}

// azureLayouts are the time formats of the traces, without fractions: 2023 has ticks of 100 ns and
// no zone, 2024 has a zone.
var azureLayouts = []string{"2006-01-02 15:04:05", "2006-01-02 15:04:05Z07:00"}

// azure reads an Azure trace. The first row is at 0.
type azure struct {
	*textio.Table
	first time.Time
}

func openAzure(in Input, _ Options) (Reader, error) {
	s, err := textio.OpenTable(in, strings.Join(azureColumns, ","))
	if err != nil {
		return nil, err
	}
	if !slices.Equal(s.Header, azureColumns) {
		defer s.Close()
		return nil, s.Errorf("must be %s, is %s", strings.Join(azureColumns, ","), strings.Join(s.Header, ","))
	}
	return &azure{Table: s}, nil
}

func (a *azure) Next(arrival *stream.Arrival) (float64, error) {
	if err := a.Read(); err != nil {
		return 0, err
	}
	at, err := a.timestamp()
	if err != nil {
		return 0, err
	}
	if a.first.IsZero() {
		a.first = at
	}
	r := request(arrival)
	r.InputTokens, r.OutputTokens = a.Integer(1), a.Integer(2)
	return float64(at.Sub(a.first).Nanoseconds()) / 1000, a.Err()
}

func (a *azure) timestamp() (time.Time, error) {
	for _, layout := range azureLayouts {
		if at, err := time.Parse(layout, a.Row[0]); err == nil {
			return at, nil
		}
	}
	return time.Time{}, a.Errorf("TIMESTAMP must be a time such as 2023-11-16 18:17:03.9799600, is %q", a.Row[0])
}
