package trace

import (
	"encoding/csv"
	"errors"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"blis/pkg/record"
)

// sheet reads a table of comma-separated values whose first line names its
// columns.
type sheet struct {
	place
	text *text
	csv  *csv.Reader
	// header are the names of the columns, row the values of the line at hand.
	header, row []string
}

// openSheet opens a table and reads its first line. columns says which ones a
// line of that format has.
func openSheet(in Input, columns string) (*sheet, error) {
	t, err := in.open()
	if err != nil {
		return nil, err
	}
	s := &sheet{place: place{name: in.Name}, text: t, csv: csv.NewReader(t)}
	s.csv.ReuseRecord = true
	if err := s.readHeader(columns); err != nil {
		t.Close()
		return nil, err
	}
	return s, nil
}

// Close closes the text.
func (s *sheet) Close() error { return s.text.Close() }

func (s *sheet) readHeader(columns string) error {
	err := s.read()
	if err == io.EOF {
		s.line = 1
		return s.Errorf("is missing: the first line must be %s", columns)
	}
	if err != nil {
		return err
	}
	for _, name := range s.row {
		name = strings.TrimSpace(name)
		if slices.Contains(s.header, name) {
			return s.Errorf("the column %q stands there twice", name)
		}
		s.header = append(s.header, name)
	}
	return nil
}

// read moves to the next line; io.EOF after the last.
func (s *sheet) read() (err error) {
	s.row, err = s.csv.Read()
	var bad *csv.ParseError
	if errors.As(err, &bad) {
		s.line = bad.Line
		if errors.Is(err, csv.ErrFieldCount) {
			return s.Errorf("must have the %d columns %s, has %d", len(s.header), strings.Join(s.header, ","), len(s.row))
		}
		return s.Errorf("%v", bad.Err)
	}
	if err == nil {
		s.line, _ = s.csv.FieldPos(0)
	} else if err != io.EOF {
		return &record.SyntaxError{File: s.name, Msg: err.Error()} // of the text below; its line is not known
	}
	return err
}

// column is the place of a column by one of its names; -1 if there is none.
func (s *sheet) column(names ...string) int {
	for _, name := range names {
		if i := slices.Index(s.header, name); i >= 0 {
			return i
		}
	}
	return -1
}

// need is column for one that must be there.
func (s *sheet) need(names ...string) (int, error) {
	i := s.column(names...)
	if i < 0 {
		return i, s.Errorf("a column %s must be there, the line has %s", strings.Join(names, " or "), strings.Join(s.header, ","))
	}
	return i, nil
}

// wanted is a column that must be there, and where its place goes.
type wanted struct {
	name string
	into *int
}

// needAll is need for several.
func (s *sheet) needAll(columns ...wanted) (err error) {
	for _, c := range columns {
		if *c.into, err = s.need(c.name); err != nil {
			return err
		}
	}
	return nil
}

// others names the columns that are in none of the places used.
func (s *sheet) others(used ...int) []string {
	var names []string
	for i, name := range s.header {
		if !slices.Contains(used, i) {
			names = append(names, name)
		}
	}
	return names
}

// value is the text in a column, "" for one that is not there.
func (s *sheet) value(column int) string {
	if column < 0 {
		return ""
	}
	return strings.TrimSpace(s.row[column])
}

// integer is the whole number in a column.
func (s *sheet) integer(column int) (int64, error) {
	n, err := strconv.ParseInt(s.value(column), 10, 64)
	if err != nil {
		return 0, s.Errorf("%s must be a whole number, is %q", s.header[column], s.row[column])
	}
	return n, nil
}

// optional is integer, but 0 where the column or its value is not there.
func (s *sheet) optional(column int) (int64, error) {
	if s.value(column) == "" {
		return 0, nil
	}
	return s.integer(column)
}

// time is the number in a column of times, at least 0.
func (s *sheet) time(column int) (float64, error) {
	v, err := strconv.ParseFloat(s.value(column), 64)
	if err != nil || !(v >= 0) || math.IsInf(v, 0) {
		return 0, s.Errorf("%s must be a number of at least 0, is %q", s.header[column], s.row[column])
	}
	return v, nil
}

// integers reads several columns, each into its place.
func (s *sheet) integers(columns []int, into ...*int64) (err error) {
	for i, column := range columns {
		if *into[i], err = s.integer(column); err != nil {
			return err
		}
	}
	return nil
}

// maxTokens bounds lengths, as the wire does.
const maxTokens = 1<<31 - 1
