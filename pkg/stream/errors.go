package stream

import (
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
	var b strings.Builder
	for _, part := range []string{f.Tool, f.File} {
		if part != "" {
			b.WriteString(part + ": ")
		}
	}
	where := strings.TrimSuffix(b.String(), ": ")
	for _, n := range []int64{f.Line, f.Col} {
		if n > 0 {
			where += ":" + strconv.FormatInt(n, 10)
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
		return fmt.Errorf("%s must be %s, not %s", value.Field, jsonTypeName(value.Type), value.Value)
	}
	msg := strings.TrimPrefix(err.Error(), "json: ")
	if quoted, ok := strings.CutPrefix(msg, "unknown field "); ok {
		if name, err := strconv.Unquote(quoted); err == nil {
			return registry.Unknown("field", name, fieldNames(reflect.TypeOf(v)))
		}
	}
	return errors.New(msg)
}

// jsonTypeName names the JSON type that a t is decoded from.
func jsonTypeName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Float64:
		return "a number"
	case reflect.Uint64:
		return "an integer from 0"
	}
	return "an integer"
}

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
