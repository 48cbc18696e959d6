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

// maxLine bounds the lines of a JSON trace: a prompt of ten million tokens in blocks of 16 has
// about 6 MB of hash ids.
const maxLine = 16 << 20

// Lines reads JSON objects, one per line.
type Lines struct {
	Position
	text *Text // nil if the caller closes it
	scan *bufio.Scanner
}

// OpenLines opens a file of JSON lines.
func OpenLines(in Input) (*Lines, error) {
	t, err := in.Open()
	if err != nil {
		return nil, err
	}
	l := NewLines(in.Name, t)
	l.text = t
	return l, nil
}

// NewLines reads decompressed text; name is used in errors.
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

// Read decodes the next non-empty line into row and rejects unknown fields; io.EOF after the last.
func (l *Lines) Read(row any) error { return l.decode(row, true) }

// ReadLenient is Read, but ignores unknown fields.
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
		return l.Errorf("unexpected data after the object")
	}
	return nil
}

// endError returns why there are no more lines.
func (l *Lines) endError() error {
	switch err := l.scan.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return l.Errorf("is longer than %d MiB", maxLine>>20)
	case err != nil:
		return l.Errorf("%v", err)
	}
	return io.EOF
}

// Require reports the first missing field.
func (l *Lines) Require(fields ...Field) error {
	for _, f := range fields {
		if f.missing {
			return l.Errorf("%s must be given", f.name)
		}
	}
	return nil
}

// Field is a field of a row that may be missing.
type Field struct {
	name    string
	missing bool
}

// MissingIf returns a field and whether it is missing.
func MissingIf(name string, missing bool) Field { return Field{name, missing} }

// Time validates a time; unit is used in errors.
func (l *Lines) Time(name string, v float64, unit string) error {
	if !(v >= 0) || math.IsInf(v, 0) {
		return l.Errorf("%s must be at least 0 %s, is %g", name, unit, v)
	}
	return nil
}

// nonFiniteNumber matches errors of encoding/json about NaN, Infinity and -Infinity.
var nonFiniteNumber = regexp.MustCompile(`^invalid character '[NI]' (looking for beginning of value|in ` +
	`numeric literal)`)

// JSONMessage rephrases an error of encoding/json for users.
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
		return value.Field + " must be an integer, not " + value.Value
	default:
		return value.Field + " cannot be " + withArticle(value.Value)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return "ends in the middle of a value"
	}
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) && nonFiniteNumber.MatchString(syntax.Error()) {
		return "NaN and Infinity are not valid JSON (Python writes them); use null for missing values"
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
