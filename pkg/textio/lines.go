package textio

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"reflect"
	"regexp"
	"strings"
)

// maxLine bounds the lines of a JSON trace: a prompt of ten million tokens in
// blocks of 16 has hash ids of some 6 MB.
const maxLine = 16 << 20

// Lines reads a text of JSON objects, one a line.
type Lines struct {
	Position
	text *Text // nil where somebody else closes it
	scan *bufio.Scanner
}

// OpenLines opens such a text.
func OpenLines(in Input) (*Lines, error) {
	t, err := in.Open()
	if err != nil {
		return nil, err
	}
	l := NewLines(in.Name, t)
	l.text = t
	return l, nil
}

// NewLines reads a text that is open and decompressed; errors call it by name.
func NewLines(name string, r io.Reader) *Lines {
	l := &Lines{Position: Position{Name: name}, scan: bufio.NewScanner(r)}
	l.scan.Buffer(nil, maxLine)
	return l
}

// Close closes the text that OpenLines opened.
func (l *Lines) Close() error {
	if l.text == nil {
		return nil
	}
	return l.text.Close()
}

// Read decodes the next line that is not empty into row, in which nothing may
// be unknown; io.EOF after the last.
func (l *Lines) Read(row any) error { return l.decode(row, true) }

// ReadLenient is Read for objects of which row has only a part.
func (l *Lines) ReadLenient(row any) error { return l.decode(row, false) }

func (l *Lines) decode(row any, strict bool) error {
	for {
		l.Line++
		if !l.scan.Scan() {
			return l.endError()
		}
		if len(bytes.TrimSpace(l.scan.Bytes())) > 0 {
			break
		}
	}
	dec := json.NewDecoder(bytes.NewReader(l.scan.Bytes()))
	if strict {
		dec.DisallowUnknownFields()
	}
	if err := dec.Decode(row); err != nil {
		return l.Errorf("%s", JSONMessage(err))
	}
	if dec.More() {
		return l.Errorf("there is more on the line after the object")
	}
	return nil
}

// endError says why there are no more lines.
func (l *Lines) endError() error {
	switch err := l.scan.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return l.Errorf("is longer than %d MiB", maxLine>>20)
	case err != nil:
		return l.Errorf("%v", err)
	}
	return io.EOF
}

// Require reports the first of some fields that is absent.
func (l *Lines) Require(fields ...Field) error {
	for _, f := range fields {
		if f.missing {
			return l.Errorf("%s must be given", f.name)
		}
	}
	return nil
}

// Field is one of a row, and whether it is absent.
type Field struct {
	name    string
	missing bool
}

// MissingIf is the field called name.
func MissingIf(name string, missing bool) Field { return Field{name, missing} }

// Time checks a time of a row in some unit.
func (l *Lines) Time(name string, v float64, unit string) error {
	if !(v >= 0) || math.IsInf(v, 0) {
		return l.Errorf("%s must be at least 0 %s, is %g", name, unit, v)
	}
	return nil
}

// nonFiniteNumber is what encoding/json says of NaN, Infinity and -Infinity.
var nonFiniteNumber = regexp.MustCompile(`^invalid character '[NI]' (looking for beginning of value|in numeric literal)`)

// JSONMessage is what an error of encoding/json says, in our words.
func JSONMessage(err error) string {
	var value *json.UnmarshalTypeError
	switch {
	case !errors.As(err, &value):
	case value.Field == "" && value.Type.Kind() == reflect.Struct:
		return "must be an object, not " + value.Value
	case value.Field == "" && value.Type.Kind() == reflect.Slice:
		return "must be a list, not " + value.Value
	case value.Field == "":
		return "cannot be " + withArticle(value.Value)
	case value.Type.Kind() == reflect.Int64:
		return value.Field + " takes whole numbers, not " + value.Value
	default:
		return value.Field + " cannot be " + withArticle(value.Value)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return "ends in the middle of a value"
	}
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) && nonFiniteNumber.MatchString(syntax.Error()) {
		return "NaN and Infinity, which Python writes, are no numbers in JSON: null is what was not measured"
	}
	return strings.TrimPrefix(err.Error(), "json: ")
}

// withArticle is a kind of value with its article.
func withArticle(kind string) string {
	if strings.HasPrefix(kind, "a") || strings.HasPrefix(kind, "o") {
		return "an " + kind
	}
	return "a " + kind
}
