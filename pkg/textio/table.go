package textio

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"blis/pkg/limits"
	"blis/pkg/stream"
)

// Table reads a table whose first line has the column names. Column names are matched
// case-insensitively. It keeps the first error of a missing column or an invalid value, which Err
// returns.
type Table struct {
	Position
	csv   *csv.Reader
	limit *limits.Reader
	// Header holds the column names and Row the current values, which are valid until the next
	// Read.
	Header, Row []string
	err         error
}

// OpenTable opens a table and reads its header. columns describes the expected header in errors.
func OpenTable(in Input, columns string) (*Table, error) {
	t, err := in.Open()
	if err != nil {
		return nil, err
	}
	s, err := NewTable(in.Name, t, columns)
	if err != nil {
		t.Close()
		return nil, err
	}
	s.text = t
	return s, nil
}

// NewTable is OpenTable for decompressed text; name is used in errors.
func NewTable(name string, r io.Reader, columns string) (*Table, error) {
	limit := limits.NewReader(r, "a row", limits.Row)
	text := bufio.NewReaderSize(limit, headerSize)
	begin, _ := text.Peek(headerSize) // an error occurs again below
	if trimmed := bytes.TrimSpace(begin); len(trimmed) > 0 && (trimmed[0] == '{' || trimmed[0] == '[') {
		return nil, &stream.SyntaxError{File: name, Line: 1, Msg: "is JSON, not a table; the first line must be " +
			columns}
	}
	s := &Table{Position: Position{Name: name}, limit: limit, csv: csv.NewReader(text)}
	s.csv.Comma = Separator(begin)
	s.csv.ReuseRecord = true
	return s, s.readHeader(columns)
}

// headerSize is the size of the beginning of a table in which its separator is detected.
const headerSize = 4 << 10

// Separator detects the separator of a table: a tab or a semicolon if the first line has no comma,
// else a comma.
func Separator(text []byte) rune {
	line, _, _ := bytes.Cut(bytes.TrimLeft(text, "\r\n"), []byte("\n"))
	for _, c := range ",\t;" {
		if bytes.ContainsRune(line, c) {
			return c
		}
	}
	return ','
}

// Err returns the first error of the methods that have no error result.
func (s *Table) Err() error { return s.err }

func (s *Table) fail(format string, args ...any) {
	if s.err == nil {
		s.err = s.Errorf(format, args...)
	}
}

func (s *Table) readHeader(columns string) error {
	err := s.Read()
	if err == io.EOF {
		s.Line = 1
		return s.Errorf("is missing: the first line must be %s", columns)
	}
	if err != nil {
		return err
	}
	for _, name := range s.Row {
		name = strings.TrimSpace(name)
		if slices.Contains(s.Header, name) {
			return s.Errorf("duplicate column %q", name)
		}
		s.Header = append(s.Header, name)
	}
	return nil
}

// Read moves to the next line; io.EOF after the last.
func (s *Table) Read() (err error) {
	s.limit.Next()
	s.Row, err = s.csv.Read()
	if bad, ok := errors.AsType[*csv.ParseError](err); ok {
		s.Line = bad.Line
		if errors.Is(err, csv.ErrFieldCount) {
			return s.Errorf("must have the %d columns %s, has %d", len(s.Header), strings.Join(s.Header, ","),
				len(s.Row))
		}
		return s.Errorf("%v", bad.Err)
	}
	if err == nil {
		s.Line, _ = s.csv.FieldPos(0)
	} else if err != io.EOF {
		return &stream.SyntaxError{File: s.Name, Msg: err.Error()} // of the underlying text; the line is unknown
	}
	return err
}

// Column returns the index of a column by one of its names; -1 if it is absent.
func (s *Table) Column(names ...string) int {
	for _, name := range names {
		if i := slices.Index(s.Header, name); i >= 0 {
			return i
		}
	}
	for _, name := range names {
		if i := slices.IndexFunc(s.Header, func(h string) bool { return strings.EqualFold(h, name) }); i >= 0 {
			return i
		}
	}
	return -1
}

// RequireColumn is Column, but a missing column is an error.
func (s *Table) RequireColumn(names ...string) int {
	i := s.Column(names...)
	if i < 0 {
		s.fail("the column %s is missing, the line has %s", strings.Join(names, " or "), strings.Join(s.Header, ","))
	}
	return i
}

// TimeColumn is Column for times, but two such columns are an error.
func (s *Table) TimeColumn(names ...string) int {
	found := -1
	for _, name := range names {
		i := s.Column(name)
		if i >= 0 && found >= 0 {
			s.fail("has both %s and %s; remove one of them", s.Header[found], name)
		}
		found = max(found, i)
	}
	return found
}

// RequireTimeColumn is TimeColumn, but a missing column is an error.
func (s *Table) RequireTimeColumn(names ...string) int {
	s.TimeColumn(names...)
	return s.RequireColumn(names...)
}

// Unit is the unit of a time column in µs: its name contains _us or _ms, or the unit is s.
func (s *Table) Unit(column int) float64 {
	switch name := strings.ToLower(s.Header[column]); {
	case strings.Contains(name, "_us"):
		return 1
	case strings.Contains(name, "_ms"):
		return 1e3
	}
	return 1e6
}

// UnusedColumns returns the names of the columns that are not in used.
func (s *Table) UnusedColumns(used ...int) []string {
	var names []string
	for i, name := range s.Header {
		if !slices.Contains(used, i) {
			names = append(names, name)
		}
	}
	return names
}

// Value is the text in a column; "" if the column is absent.
func (s *Table) Value(column int) string {
	if column < 0 {
		return ""
	}
	return strings.TrimSpace(s.Row[column])
}

// Integer is the integer in a column, which may be written as 512.0.
func (s *Table) Integer(column int) int64 {
	whole, fraction, _ := strings.Cut(s.Value(column), ".")
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || strings.Trim(fraction, "0") != "" {
		s.fail("%s must be an integer, is %q", s.Header[column], s.Row[column])
		return 0
	}
	return n
}

// Optional is Integer, but 0 if the column or its value is absent.
func (s *Table) Optional(column int) int64 {
	if s.Value(column) == "" {
		return 0
	}
	return s.Integer(column)
}

// Time is the time in a column, at least 0.
func (s *Table) Time(column int) float64 {
	v, err := strconv.ParseFloat(s.Value(column), 64)
	if err != nil || !(v >= 0) || math.IsInf(v, 0) {
		s.fail("%s must be a number of at least 0, is %q", s.Header[column], s.Row[column])
		return 0
	}
	return v
}

// TimeUS is the time in a column, at least 0, in µs.
func (s *Table) TimeUS(column int) float64 { return s.Time(column) * s.Unit(column) }

// MaxTokens bounds lengths, as records do.
const MaxTokens = 1<<31 - 1
