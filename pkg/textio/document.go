package textio

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// Documents reads a sequence of JSON values in any layout. The text is held in memory.
type Documents struct {
	Position
	text []byte
	dec  *json.Decoder
}

// NewDocuments reads decompressed text; name is used in errors.
func NewDocuments(name string, r io.Reader) (*Documents, error) {
	text, err := io.ReadAll(r)
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

// ReadSingle is Read for a text that must contain exactly one value.
func (d *Documents) ReadSingle(v any) error {
	if err := d.Read(v); err == io.EOF {
		return d.Errorf("is empty")
	} else if err != nil {
		return err
	}
	if d.dec.More() {
		d.Line = 1 + bytes.Count(d.text[:d.dec.InputOffset()], []byte("\n"))
		return d.Errorf("unexpected data after the first value")
	}
	d.Line = 0 // later errors are about elements
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
