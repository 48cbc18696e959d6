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

	"blis/pkg/stream"
)

// Table reads a table whose first line names its columns, of values separated as
// Separator finds. Names are found in capitals or not.
type Table struct {
	Position
	text *Text // nil where somebody else closes it
	csv  *csv.Reader
	// Header are the names of the columns, Row the values of the line at hand, until
	// the next one is read.
	Header, Row []string
}

// OpenTable opens a table and reads its first line. columns says which ones a
// line of that format has.
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

// NewTable is OpenSheet for a text that is open and decompressed; errors call it
// by name.
func NewTable(name string, r io.Reader, columns string) (*Table, error) {
	text := bufio.NewReaderSize(r, headerSize)
	begin, _ := text.Peek(headerSize) // what is wrong shows again
	if trimmed := bytes.TrimSpace(begin); len(trimmed) > 0 && (trimmed[0] == '{' || trimmed[0] == '[') {
		return nil, &stream.SyntaxError{File: name, Line: 1, Msg: "is JSON, and no table; the first line must be " + columns}
	}
	s := &Table{Position: Position{Name: name}, csv: csv.NewReader(text)}
	s.csv.Comma = Separator(begin)
	s.csv.ReuseRecord = true
	return s, s.readHeader(columns)
}

// headerSize is how much of a table its separator is looked for in.
const headerSize = 4 << 10

// Separator is what stands between the values of a table that begins with text: a
// tab or a semicolon if there is no comma in its first line, else a comma.
func Separator(text []byte) rune {
	line, _, _ := bytes.Cut(bytes.TrimLeft(text, "\r\n"), []byte("\n"))
	for _, c := range ",\t;" {
		if bytes.ContainsRune(line, c) {
			return c
		}
	}
	return ','
}

// Close closes the text that OpenSheet opened.
func (s *Table) Close() error {
	if s.text == nil {
		return nil
	}
	return s.text.Close()
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
			return s.Errorf("the column %q stands there twice", name)
		}
		s.Header = append(s.Header, name)
	}
	return nil
}

// Read moves to the next line; io.EOF after the last.
func (s *Table) Read() (err error) {
	s.Row, err = s.csv.Read()
	var bad *csv.ParseError
	if errors.As(err, &bad) {
		s.Line = bad.Line
		if errors.Is(err, csv.ErrFieldCount) {
			return s.Errorf("must have the %d columns %s, has %d", len(s.Header), strings.Join(s.Header, ","), len(s.Row))
		}
		return s.Errorf("%v", bad.Err)
	}
	if err == nil {
		s.Line, _ = s.csv.FieldPos(0)
	} else if err != io.EOF {
		return &stream.SyntaxError{File: s.Name, Msg: err.Error()} // of the text below; its line is not known
	}
	return err
}

// Column is the place of a column by one of its names; -1 if there is none.
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

// RequireColumn is Column for one that must be there.
func (s *Table) RequireColumn(names ...string) (int, error) {
	i := s.Column(names...)
	if i < 0 {
		return i, s.Errorf("a column %s must be there, the line has %s", strings.Join(names, " or "), strings.Join(s.Header, ","))
	}
	return i, nil
}

// ColumnRef is a column that must be there, and where its place goes.
type ColumnRef struct {
	name  string
	index *int
}

// Ref is the column called name.
func Ref(name string, index *int) ColumnRef { return ColumnRef{name, index} }

// RequireColumns is Need for several.
func (s *Table) RequireColumns(columns ...ColumnRef) (err error) {
	for _, c := range columns {
		if *c.index, err = s.RequireColumn(c.name); err != nil {
			return err
		}
	}
	return nil
}

// UnusedColumns names the columns that are in none of the places used.
func (s *Table) UnusedColumns(used ...int) []string {
	var names []string
	for i, name := range s.Header {
		if !slices.Contains(used, i) {
			names = append(names, name)
		}
	}
	return names
}

// Value is the text in a column, "" for one that is not there.
func (s *Table) Value(column int) string {
	if column < 0 {
		return ""
	}
	return strings.TrimSpace(s.Row[column])
}

// Integer is the whole number in a column, also one that is written as 512.0.
func (s *Table) Integer(column int) (int64, error) {
	whole, fraction, _ := strings.Cut(s.Value(column), ".")
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || strings.Trim(fraction, "0") != "" {
		return 0, s.Errorf("%s must be a whole number, is %q", s.Header[column], s.Row[column])
	}
	return n, nil
}

// Optional is Integer, but 0 where the column or its value is not there.
func (s *Table) Optional(column int) (int64, error) {
	if s.Value(column) == "" {
		return 0, nil
	}
	return s.Integer(column)
}

// Time is the number in a column of times, at least 0.
func (s *Table) Time(column int) (float64, error) {
	v, err := strconv.ParseFloat(s.Value(column), 64)
	if err != nil || !(v >= 0) || math.IsInf(v, 0) {
		return 0, s.Errorf("%s must be a number of at least 0, is %q", s.Header[column], s.Row[column])
	}
	return v, nil
}

// Integers reads several columns, each into its place.
func (s *Table) Integers(columns []int, into ...*int64) (err error) {
	for i, column := range columns {
		if *into[i], err = s.Integer(column); err != nil {
			return err
		}
	}
	return nil
}

// MaxTokens bounds lengths, as the wire does.
const MaxTokens = 1<<31 - 1
