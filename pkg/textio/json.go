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

	"blis/pkg/limits"
)

// Lines reads JSON objects, one per line.
type Lines struct {
	Position
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
	l.scan.Buffer(nil, limits.Row)
	return l
}

// Read decodes the next non-empty line into row, a pointer to a struct, and rejects unknown fields;
// io.EOF after the last. Fields of row that are still nil pointers must be given.
func (l *Lines) Read(row any) error { return l.decode(row, true) }

// ReadLenient is Read, but ignores unknown fields.
func (l *Lines) ReadLenient(row any) error { return l.decode(row, false) }

func (l *Lines) decode(row any, strict bool) error {
	for {
		l.Line++
		if !l.scan.Scan() {
			switch err := l.scan.Err(); {
			case errors.Is(err, bufio.ErrTooLong):
				return l.Errorf("is longer than %d MiB, the limit", limits.Row>>20)
			case err != nil:
				return l.Errorf("%v", err)
			}
			return io.EOF
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
	fields := reflect.ValueOf(row).Elem()
	for i := range fields.NumField() {
		if f := fields.Field(i); f.Kind() == reflect.Pointer && f.IsNil() {
			return l.Errorf("%s must be given", fields.Type().Field(i).Tag.Get("json"))
		}
	}
	return nil
}

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
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok && nonFiniteNumber.MatchString(syntax.Error()) {
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

// Documents reads a sequence of JSON values in any layout. The text is held in memory.
type Documents struct {
	Position
	text []byte
	dec  *json.Decoder
}

// NewDocuments reads decompressed text; name is used in errors.
func NewDocuments(name string, r io.Reader) (*Documents, error) {
	text, err := limits.ReadAll(r, name, limits.Document)
	if err != nil {
		return nil, err
	}
	return &Documents{Position{Name: name}, text, json.NewDecoder(bytes.NewReader(text))}, nil
}

// Read decodes the next value into v, which may be a part of it; io.EOF after the last. Line is the
// line of the value.
func (d *Documents) Read(v any) error {
	if !d.dec.More() && len(bytes.TrimSpace(d.text[d.dec.InputOffset():])) == 0 {
		return io.EOF
	}
	var value json.RawMessage
	from := int(d.dec.InputOffset())
	if err := d.dec.Decode(&value); err != nil {
		return d.locate(from, json.Unmarshal(d.text[from:], &value))
	}
	from = int(d.dec.InputOffset()) - len(value)
	d.Line = 1 + bytes.Count(d.text[:from], []byte("\n"))
	if err := json.Unmarshal(value, v); err != nil {
		return d.locate(from, err)
	}
	return nil
}

// ReadDocument decodes decompressed text, which must contain exactly one JSON value, into v.
func ReadDocument(name string, r io.Reader, v any) error {
	d, err := NewDocuments(name, r)
	if err != nil {
		return err
	}
	if err := d.Read(v); err == io.EOF {
		return d.Errorf("is empty")
	} else if err != nil {
		return err
	}
	if d.dec.More() {
		d.Line = 1 + bytes.Count(d.text[:d.dec.InputOffset()], []byte("\n"))
		return d.Errorf("unexpected data after the first value")
	}
	return nil
}

// locate adds the line to an error of encoding/json in the value that begins at byte from, and the
// column on a long line.
func (d *Documents) locate(from int, err error) error {
	var syntax *json.SyntaxError
	var value *json.UnmarshalTypeError
	at := int64(0)
	switch {
	case errors.As(err, &syntax):
		at = syntax.Offset
	case errors.As(err, &value):
		at = value.Offset
	}
	end := min(from+int(at), len(d.text))
	before := d.text[:end]
	d.Line = 1 + bytes.Count(before, []byte("\n"))
	if syntax != nil && syntax.Error() == "unexpected end of JSON input" {
		d.Line = 1 + bytes.Count(bytes.TrimRight(before, "\r\n"), []byte("\n"))
		return d.Errorf("the text ends in the middle of a value; is the file truncated?")
	}
	if column := end - bytes.LastIndexByte(before, '\n') - 1; column > 200 {
		return d.Errorf("at column %d: %s", column, JSONMessage(err))
	}
	return d.Errorf("%s", JSONMessage(err))
}
