package parquet

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"io"
	"reflect"
	"strconv"
	"strings"

	"blis/pkg/stream"
)

// csvWriter writes outcomes as comma-separated values.
type csvWriter struct {
	out   *bufio.Writer
	rows  *csv.Writer
	cells []string
	begun bool
}

// WriteOutcomesCSV begins a CSV file of outcomes with the columns of their Parquet table: a line of names, then
// a line for each outcome. A null is an empty cell. Lists and groups are JSON text. CSV has no metadata.
func WriteOutcomesCSV(w io.Writer) Writer[stream.Outcome] {
	out := bufio.NewWriterSize(w, 1<<16)
	return &csvWriter{out: out, rows: csv.NewWriter(out)}
}

// Metadata does nothing.
func (*csvWriter) Metadata(string, string) {}

// head writes the names of the columns.
func (w *csvWriter) head() error {
	w.begun = true
	typ := reflect.TypeFor[outcomeRow]()
	names := make([]string, typ.NumField())
	for i := range names {
		names[i], _, _ = strings.Cut(typ.Field(i).Tag.Get("parquet"), ",")
	}
	w.cells = make([]string, len(names))
	return w.rows.Write(names)
}

func (w *csvWriter) Write(o *stream.Outcome) error {
	if !w.begun {
		if err := w.head(); err != nil {
			return err
		}
	}
	row := rowOfOutcome(o)
	v := reflect.ValueOf(&row).Elem()
	for i := range w.cells {
		w.cells[i] = cell(v.Field(i))
	}
	return w.rows.Write(w.cells)
}

func (w *csvWriter) Close() error {
	if !w.begun {
		if err := w.head(); err != nil {
			return err
		}
	}
	w.rows.Flush()
	if err := w.rows.Error(); err != nil {
		return err
	}
	return w.out.Flush()
}

// cell is a value as text, "" for null.
func cell(v reflect.Value) string {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return ""
		}
		v = v.Elem()
	}
	switch v.Kind() {
	case reflect.String:
		return v.String()
	case reflect.Int64, reflect.Int32:
		return strconv.FormatInt(v.Int(), 10)
	case reflect.Float64:
		return strconv.FormatFloat(v.Float(), 'g', -1, 64)
	case reflect.Bool:
		return strconv.FormatBool(v.Bool())
	case reflect.Slice:
		if v.Len() == 0 {
			return ""
		}
	}
	switch x := v.Interface().(type) {
	case []gapRow:
		pairs := convert(x, (*gapRow).pair)
		return toJSON(pairs)
	case loadedTokensRow:
		return toJSON(x.record())
	}
	panic("parquet: no CSV form of " + v.Type().String())
}

// toJSON is the JSON text of a list or group of numbers.
func toJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic("parquet: " + err.Error())
	}
	return string(text)
}
