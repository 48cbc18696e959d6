package gen

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"blis/pkg/record"
)

// azureColumns are the columns of the Azure LLM inference traces of 2023 and
// 2024 (github.com/Azure/AzurePublicDataset).
var azureColumns = []string{"TIMESTAMP", "ContextTokens", "GeneratedTokens"}

// azureLayouts are how the traces write time, the fraction apart: 2023 has
// ticks of 100 ns and no zone, 2024 has one.
var azureLayouts = []string{"2006-01-02 15:04:05", "2006-01-02 15:04:05Z07:00"}

// azure reads such a trace. The first row is at 0.
type azure struct {
	csv   *csv.Reader
	at    int
	first time.Time
}

func newAzure(in io.Reader, _ int64) rows {
	r := csv.NewReader(withoutMark(in))
	r.FieldsPerRecord = len(azureColumns)
	r.ReuseRecord = true
	return &azure{csv: r}
}

func (a *azure) line() int { return a.at }

func (a *azure) next(r *record.Request) (float64, error) {
	if a.at == 0 {
		if err := a.readHeader(); err != nil {
			return 0, err
		}
	}
	row, err := a.read()
	if err != nil {
		return 0, err
	}
	at, err := azureTime(row[0])
	if err != nil {
		return 0, err
	}
	if a.first.IsZero() {
		a.first = at
	}
	if r.InputTokens, err = strconv.ParseInt(row[1], 10, 64); err != nil {
		return 0, fmt.Errorf("ContextTokens must be a whole number, is %q", row[1])
	}
	if r.OutputTokens, err = strconv.ParseInt(row[2], 10, 64); err != nil {
		return 0, fmt.Errorf("GeneratedTokens must be a whole number, is %q", row[2])
	}
	return float64(at.Sub(a.first).Nanoseconds()) / 1000, nil
}

func (a *azure) readHeader() error {
	row, err := a.read()
	if err == io.EOF {
		a.at = 1
		return fmt.Errorf("is missing: the first line must be %s", strings.Join(azureColumns, ","))
	}
	if err == nil && !slices.Equal(row, azureColumns) {
		err = fmt.Errorf("must be %s, is %s", strings.Join(azureColumns, ","), strings.Join(row, ","))
	}
	return err
}

// read returns the next row; io.EOF after the last.
func (a *azure) read() ([]string, error) {
	row, err := a.csv.Read()
	var bad *csv.ParseError
	if errors.As(err, &bad) {
		a.at = bad.Line
		if errors.Is(err, csv.ErrFieldCount) {
			return nil, fmt.Errorf("must have the %d columns %s, has %d", len(azureColumns), strings.Join(azureColumns, ","), len(row))
		}
		return nil, bad.Err
	}
	if err == nil {
		a.at, _ = a.csv.FieldPos(0)
	}
	return row, err
}

func azureTime(text string) (time.Time, error) {
	for _, layout := range azureLayouts {
		if at, err := time.Parse(layout, text); err == nil {
			return at, nil
		}
	}
	return time.Time{}, fmt.Errorf("TIMESTAMP must be a time such as 2023-11-16 18:17:03.9799600, is %q", text)
}
