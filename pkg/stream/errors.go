package stream

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"blis/pkg/registry"
)

// SyntaxError is an error in a stream. Line counts from 1; 0 means that the error
// concerns no single line.
type SyntaxError struct {
	File string
	Line int
	Msg  string
}

func (e *SyntaxError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %s", e.File, e.Msg)
	}
	return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Msg)
}

// UpstreamError reports that a stream carries an error record instead of results.
// A reader passes Fault on to its own output.
type UpstreamError struct{ Fault ErrorRecord }

func (e *UpstreamError) Error() string {
	f := &e.Fault
	where := f.Tool
	if f.Tool != "" && f.File != "" {
		where += ": "
	}
	where += f.File
	for _, n := range []int64{f.Line, f.Col} {
		if n > 0 {
			where += fmt.Sprintf(":%d", n)
		}
	}
	return where + ": " + f.Msg
}

// describeJSONError rewords an error of encoding/json about a v in the style of
// this package.
func describeJSONError(err error, v any) error {
	var syntax *json.SyntaxError
	var value *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return fmt.Errorf("invalid JSON at column %d: %w", syntax.Offset, err)
	case errors.As(err, &value):
		must := cmp.Or(jsonTypes[value.Type.Kind()], "an integer")
		return fmt.Errorf("%s must be %s, not %s", value.Field, must, value.Value)
	}
	msg := strings.TrimPrefix(err.Error(), "json: ")
	if quoted, ok := strings.CutPrefix(msg, "unknown field "); ok {
		if name, err := strconv.Unquote(quoted); err == nil {
			return registry.Unknown("field", name, fieldNames(reflect.TypeOf(v)))
		}
	}
	return errors.New(msg)
}

// jsonTypes are what kinds of Go values are decoded from; it is an integer for all others.
var jsonTypes = map[reflect.Kind]string{reflect.String: "a string", reflect.Bool: "true or false",
	reflect.Slice: "a list", reflect.Array: "a list", reflect.Struct: "an object", reflect.Map: "an object",
	reflect.Float64: "a number", reflect.Uint64: "an integer from 0"}

// fieldNames lists the JSON names of the fields of t and of nested types, in order.
func fieldNames(t reflect.Type) (names []string) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if name != "" && name != "-" {
			names = append(names, name)
		}
		names = append(names, fieldNames(t.Field(i).Type)...)
	}
	return names
}

// Printable returns name with everything but printable ASCII escaped, so that a
// terminal can show any name found in a stream.
func Printable(name string) string {
	q := strconv.QuoteToASCII(name)
	q = q[1 : len(q)-1]
	return strings.NewReplacer(`\"`, `"`, `\\`, `\`).Replace(q)
}
