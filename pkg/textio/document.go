package textio

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// Documents reads a text of JSON values of any layout, one after the other. The
// text is held in memory.
type Documents struct {
	Position
	text []byte
	dec  *json.Decoder
}

// NewDocuments reads a text that is open and decompressed; errors call it by name.
func NewDocuments(name string, r io.Reader) (*Documents, error) {
	text, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	return &Documents{Position{Name: name}, text, json.NewDecoder(bytes.NewReader(text))}, nil
}

// Read decodes the next value into v, which may have only a part of it; io.EOF
// after the last. Line is where the value begins.
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

// ReadSingle is Read for a text that must hold exactly one value.
func (d *Documents) ReadSingle(v any) error {
	if err := d.Read(v); err == io.EOF {
		return d.Errorf("is empty")
	} else if err != nil {
		return err
	}
	if d.dec.More() {
		d.Line = 1 + bytes.Count(d.text[:d.dec.InputOffset()], []byte("\n"))
		return d.Errorf("there is more after the first value, which must be the only one")
	}
	d.Line = 0 // what follows is about elements, wherever they stand
	return nil
}

// locate is an error of encoding/json in what begins at the byte from, with its
// line; on a line that is long, also with its column.
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
		return d.Errorf("the text ends in the middle of a value: is the file truncated?")
	}
	if column := end - bytes.LastIndexByte(before, '\n') - 1; column > 200 {
		return d.Errorf("at column %d: %s", column, JSONMessage(err))
	}
	return d.Errorf("%s", JSONMessage(err))
}
