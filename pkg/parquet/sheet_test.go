package parquet

import (
	"bytes"
	"reflect"
	"testing"
)

// TestSheet: columns are in the order in which rows have them first, and in a Parquet table by name. A column with a
// text has texts, and what a row lacks is null.
func TestSheet(t *testing.T) {
	var s Sheet
	s.Add([]Cell{{Column: "z", Number: 1.5}, {Column: "run", Text: "a"}, {Column: "z", Number: 2.5}})
	s.Add([]Cell{{Column: "run", Number: 7}, {Column: "late", Number: 3}, {Column: "last", Text: "x"}})
	s.Add([]Cell{{Column: "last", Text: "y"}, {Column: "z", Number: 0}})
	var text, table bytes.Buffer
	must(t, s.WriteCSV(&text))
	if want := "z,run,late,last\n2.5,a,,\n,7,3,x\n0,,,y\n"; text.String() != want {
		t.Errorf("got\n%s\nwant\n%s", text.String(), want)
	}
	must(t, s.WriteParquet(&table))
	columns, n, err := ReadColumns(bytes.NewReader(table.Bytes()), int64(table.Len()), "z", "run", "late", "last")
	want := map[string]Column{"z": {Numbers: []float64{2.5, 0, 0}}, "run": {Texts: []string{"a", "7", ""}},
		"late": {Numbers: []float64{0, 3, 0}}, "last": {Texts: []string{"", "x", "y"}}}
	if err != nil || n != 3 || !reflect.DeepEqual(columns, want) {
		t.Errorf("%d rows of %v: %v", n, columns, err)
	}
}
