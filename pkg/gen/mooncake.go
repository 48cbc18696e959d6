package gen

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"strconv"
	"strings"

	"blis/pkg/record"
)

// maxLine bounds the lines of a JSON trace: a prompt of ten million tokens in
// blocks of 16 has hash ids of some 6 MB.
const maxLine = 16 << 20

// mooncake reads the traces of Mooncake (github.com/kvcache-ai/Mooncake), and
// what others wrote in its form. Times are relative already and kept. A hash
// id names a block together with all before it, so that a prompt's segments are
// its ids; tokens past the last id are the request's own.
type mooncake struct {
	lines     *bufio.Scanner
	at        int
	blockSize int64
	row       mooncakeRow
}

// mooncakeRow is one line; nil is absent.
type mooncakeRow struct {
	Timestamp    *float64 `json:"timestamp"` // ms
	InputLength  *int64   `json:"input_length"`
	OutputLength *int64   `json:"output_length"`
	HashIDs      []hashID `json:"hash_ids"`
}

func newMooncake(in io.Reader, blockSize int64) rows {
	lines := bufio.NewScanner(withoutMark(in))
	lines.Buffer(nil, maxLine)
	return &mooncake{lines: lines, blockSize: blockSize}
}

func (m *mooncake) line() int { return m.at }

func (m *mooncake) next(r *record.Request) (float64, error) {
	for {
		m.at++
		if !m.lines.Scan() {
			return 0, m.ending()
		}
		if len(bytes.TrimSpace(m.lines.Bytes())) > 0 {
			break
		}
	}
	if err := m.decode(m.lines.Bytes()); err != nil {
		return 0, err
	}
	ms := *m.row.Timestamp
	if !(ms >= 0) || math.IsInf(ms, 0) {
		return 0, fmt.Errorf("timestamp must be at least 0 ms, is %g", ms)
	}
	r.InputTokens, r.OutputTokens = *m.row.InputLength, *m.row.OutputLength
	return ms * 1000, m.segments(r)
}

// ending says why there are no more lines.
func (m *mooncake) ending() error {
	switch err := m.lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return fmt.Errorf("is longer than %d MiB", maxLine>>20)
	case err != nil:
		return err
	}
	return io.EOF
}

// decode reads one line into m.row.
func (m *mooncake) decode(line []byte) error {
	m.row = mooncakeRow{HashIDs: m.row.HashIDs[:0]}
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&m.row); err != nil {
		var value *json.UnmarshalTypeError
		switch {
		case errors.As(err, &value) && value.Type.Kind() == reflect.Int64:
			return fmt.Errorf("%s takes whole numbers, not %s", value.Field, value.Value)
		case errors.As(err, &value):
			return fmt.Errorf("%s cannot be a %s", value.Field, value.Value)
		}
		return errors.New(strings.TrimPrefix(err.Error(), "json: "))
	}
	if dec.More() {
		return errors.New("there is more on the line after the object")
	}
	for _, field := range []struct {
		name   string
		absent bool
	}{{"timestamp", m.row.Timestamp == nil}, {"input_length", m.row.InputLength == nil}, {"output_length", m.row.OutputLength == nil}} {
		if field.absent {
			return fmt.Errorf("%s must be given", field.name)
		}
	}
	return nil
}

// segments turns the row's hash ids into the prompt of r.
func (m *mooncake) segments(r *record.Request) error {
	left := r.InputTokens
	for i, id := range m.row.HashIDs {
		if left <= 0 {
			return fmt.Errorf("hash_ids has %d ids, but %d blocks of %d tokens hold the whole input of %d tokens (--block-size)",
				len(m.row.HashIDs), i, m.blockSize, r.InputTokens)
		}
		tokens := min(left, m.blockSize)
		r.Prompt = append(r.Prompt, record.Segment{ID: strconv.FormatInt(int64(id), 10), Tokens: tokens})
		left -= tokens
	}
	return nil
}

// hashID is the number of a block. encoding/json would take a null for the
// number that was there before.
type hashID int64

// UnmarshalJSON reads a whole number.
func (h *hashID) UnmarshalJSON(text []byte) error {
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil {
		return fmt.Errorf("hash_ids takes whole numbers, not %s", text)
	}
	*h = hashID(n)
	return nil
}
