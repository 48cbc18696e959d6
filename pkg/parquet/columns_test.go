package parquet

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"blis/pkg/stream"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"
)

var update = flag.Bool("update", false, "rewrite the page of columns")

const page = "../../schemas/tables.md"

// tables lists the tables with the types of their rows and records.
var tables = []struct {
	name        string
	row, record reflect.Type
}{
	{"outcomes", reflect.TypeFor[outcomeRow](), reflect.TypeFor[stream.Outcome]()},
	{"decisions", reflect.TypeFor[decisionRow](), reflect.TypeFor[stream.Decision]()},
	{"steps", reflect.TypeFor[stepRow](), reflect.TypeFor[stream.Step]()},
	{"sessions", reflect.TypeFor[sessionOutcomeRow](), reflect.TypeFor[stream.SessionOutcome]()},
	{"anomalies", reflect.TypeFor[anomalyRow](), reflect.TypeFor[stream.Anomaly]()},
}

// Columns are the fields on the wire, also in nested lists, and nullable if the field
// may be absent.
func TestColumnsEqualWireFields(t *testing.T) {
	for _, table := range tables {
		schema := parquet.SchemaOf(reflect.New(table.row).Interface())
		columns := schema.Fields()
		if table.name == "outcomes" {
			n := len(columns) - len(derivedDocs)
			for i, c := range columns[n:] {
				if c.Name() != derivedDocs[i].name || !c.Optional() {
					t.Errorf("column %s is not %s", c.Name(), derivedDocs[i].name)
				}
			}
			columns = columns[:n]
		}
		compareFields(t, table.name, columns, table.record)
	}
}

// compareFields compares columns with the fields of the record type typ.
func compareFields(t *testing.T, at string, columns []parquet.Field, typ reflect.Type) {
	t.Helper()
	fields := object(t, typ).Fields
	if fields[0].Name == "kind" {
		fields = fields[1:]
	}
	for i, f := range fields {
		if i == len(columns) ||
			columns[i].Name() != f.Name || columns[i].Optional() == f.Required && !isList(columns[i]) {
			t.Fatalf("%s: field %s (required %v) is not column %d: run go generate ./pkg/stream",
				at, f.Name, f.Required, i)
		}
		if of := elementOf(typ, f.Name); of != nil {
			in := parquet.Node(columns[i])
			if isList(in) {
				in = element(in)
			}
			compareFields(t, at+"."+f.Name, in.Fields(), of)
		}
	}
	if len(columns) > len(fields) {
		t.Fatalf("%s: column %s is not a field", at, columns[len(fields)].Name())
	}
}

// object is the description of a record type on the wire.
func object(t *testing.T, typ reflect.Type) *stream.Object {
	t.Helper()
	at := slices.IndexFunc(stream.Objects, func(o *stream.Object) bool { return o.Type == typ })
	if at < 0 {
		t.Fatalf("%s is not among stream.Objects", typ)
	}
	return stream.Objects[at]
}

// elementOf is the element type of the field of that name, nil if it is no group or list of
// structs.
func elementOf(typ reflect.Type, name string) reflect.Type {
	for i := range typ.NumField() {
		f := typ.Field(i)
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		list := f.Type.Kind() == reflect.Slice || f.Type.Kind() == reflect.Pointer
		if tag == name && list && f.Type.Elem().Kind() == reflect.Struct {
			return f.Type.Elem()
		}
	}
	return nil
}

// isList reports whether a column that is no leaf is a list; else it is a group.
func isList(c parquet.Node) bool { return len(c.Fields()) == 1 && c.Fields()[0].Repeated() }

// element is the element type of a list.
func element(list parquet.Node) parquet.Node { return list.Fields()[0].Fields()[0] }

// The page of columns describes the tables as they are.
func TestPageOfColumnsIsCurrent(t *testing.T) {
	var b strings.Builder
	b.WriteString("# Columns of the tables\n\nWritten by `go test ./pkg/parquet -update`. " +
		"`blis-sim -o DIR/` writes all tables, `-o FILE.parquet` and `-o FILE.csv` only the outcomes.\n" +
		"Each row is a record of the stream and has the same field names. " +
		"A field that may be absent there is null here, and so is an empty list.\n" +
		"metrics.parquet has the columns `path` and `value`: a row for each metric, " +
		"such as `ttft.p99`.\nsteps.parquet exists with `--trace full`.\n\n" +
		"The metadata of a table are `blis.stream_version`, and records of the run as JSON: `blis.header` and " +
		"`blis.end`; in outcomes.parquet also `blis.metrics`.\n")
	for _, table := range tables {
		o := object(t, table.record)
		fmt.Fprintf(&b, "\n## %s.parquet\n\n%s\n\n", table.name, o.Doc)
		b.WriteString("| column | type | null | meaning |\n|---|---|---|---|\n")
		describe(t, &b, "", parquet.SchemaOf(reflect.New(table.row).Interface()).Fields(), table.record)
	}
	if *update {
		if err := os.WriteFile(page, []byte(b.String()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(b.String(), string(have)); diff != "" {
		t.Errorf("%s is not current; run go test ./pkg/parquet -update:\n%s", page, diff)
	}
}

// gapDocs describe the columns of itl_us, which is a list of pairs on the wire.
var gapDocs = map[string]string{"gap_us": "Gap, in µs.", "count": "Number of equal gaps in a row."}

// describe writes a line for each column, including those in lists of groups.
func describe(t *testing.T, b *strings.Builder, at string, columns []parquet.Field, typ reflect.Type) {
	t.Helper()
	for _, c := range columns {
		doc := gapDocs[c.Name()]
		for _, d := range derivedDocs {
			if at == "" && d.name == c.Name() {
				doc = d.doc
			}
		}
		if typ != nil {
			for _, f := range object(t, typ).Fields {
				if f.Name == c.Name() {
					doc = f.Doc
				}
			}
		}
		null := ""
		if c.Optional() {
			null = "yes"
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", at+c.Name(), typeName(c), null, doc)
		var of reflect.Type
		if typ != nil {
			of = elementOf(typ, c.Name())
		}
		switch {
		case c.Leaf():
		case !isList(c):
			describe(t, b, at+c.Name()+".", c.Fields(), of)
		case !element(c).Leaf():
			describe(t, b, at+c.Name()+"[].", element(c).Fields(), of)
		}
	}
}

// typeName names a column's type in Parquet terms.
func typeName(c parquet.Node) string {
	if !c.Leaf() {
		if !isList(c) {
			return "group"
		}
		if element(c).Leaf() {
			return "list of " + typeName(element(c))
		}
		return "list of groups"
	}
	switch c.Type().Kind() {
	case parquet.ByteArray:
		return "string"
	case parquet.Boolean:
		return "boolean"
	}
	return strings.ToLower(c.Type().Kind().String())
}

// TestReadColumns reads columns of a table by name, as those of other programs.
func TestReadColumns(t *testing.T) {
	var file bytes.Buffer
	w := WriteOutcomes(&file)
	met, missed := true, false
	for i, o := range []*stream.Outcome{{ID: "a", SLOMet: &met}, {ID: "b", SLOMet: &missed}, {ID: "c"}} {
		o.InputTokens, o.OutputTokens = int64(10+i), 2
		o.FirstTokenUS, o.CompletedUS = stream.Micros(1500*i), 9000
		o.ClearPrefill()
		must(t, w.Write(o))
	}
	must(t, w.Close())
	columns, n, err := ReadColumns(bytes.NewReader(file.Bytes()), int64(file.Len()), "id", "input_tokens", "ttft_ms",
		"slo_met", "absent")
	want := map[string]Column{"id": {Texts: []string{"a", "b", "c"}}, "input_tokens": {Numbers: []float64{10, 11, 12}},
		"ttft_ms": {Numbers: []float64{0, 1.5, 3}}, "slo_met": {Numbers: []float64{1, 0, 0}}}
	if err != nil || n != 3 || !reflect.DeepEqual(columns, want) {
		t.Errorf("%d rows of %v: %v", n, columns, err)
	}
	if _, _, err := ReadColumns(bytes.NewReader([]byte("text")), 4, "id"); err == nil {
		t.Error("a text is read as a table")
	}
}
