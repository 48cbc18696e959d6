package parquet

import (
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

var update = flag.Bool("update", false, "write the page of columns anew")

const page = "../../schemas/tables.md"

// tables are the tables, with the type of their rows and of their records.
var tables = []struct {
	name        string
	row, record reflect.Type
}{
	{"outcomes", reflect.TypeFor[outcomeRow](), reflect.TypeFor[stream.Outcome]()},
	{"decisions", reflect.TypeFor[decisionRow](), reflect.TypeFor[stream.Decision]()},
}

// The columns are the fields of the wire, null where the wire may have nothing, and
// so are those of what is in them.
func TestColumnsAreTheFieldsOfTheWire(t *testing.T) {
	for _, of := range tables {
		schema := parquet.SchemaOf(reflect.New(of.row).Interface())
		sameFields(t, of.name, schema.Fields(), of.record)
	}
}

// sameFields compares columns with the fields of the record type typ.
func sameFields(t *testing.T, at string, columns []parquet.Field, typ reflect.Type) {
	t.Helper()
	fields := object(t, typ).Fields
	if fields[0].Name == "kind" {
		fields = fields[1:]
	}
	for i, f := range fields {
		if i == len(columns) || columns[i].Name() != f.Name || columns[i].Optional() == f.Required {
			t.Fatalf("%s: field %s (required %v) is not column %d: give the row that field, in that place", at, f.Name, f.Required, i)
		}
		if of := elementOf(typ, f.Name); of != nil {
			sameFields(t, at+"."+f.Name, element(columns[i]).Fields(), of)
		}
	}
	if len(columns) > len(fields) {
		t.Fatalf("%s: no field is column %s", at, columns[len(fields)].Name())
	}
}

// object is what the wire says of a type.
func object(t *testing.T, typ reflect.Type) *stream.Object {
	t.Helper()
	at := slices.IndexFunc(stream.Objects, func(o *stream.Object) bool { return o.Type == typ })
	if at < 0 {
		t.Fatalf("%s is not among stream.Objects", typ)
	}
	return stream.Objects[at]
}

// elementOf is the type of the structs in the list that is the field of that name,
// nil if it is none of structs.
func elementOf(typ reflect.Type, name string) reflect.Type {
	for i := range typ.NumField() {
		f := typ.Field(i)
		if tag, _, _ := strings.Cut(f.Tag.Get("json"), ","); tag == name && f.Type.Kind() == reflect.Slice && f.Type.Elem().Kind() == reflect.Struct {
			return f.Type.Elem()
		}
	}
	return nil
}

// element is what a list is of.
func element(list parquet.Node) parquet.Node { return list.Fields()[0].Fields()[0] }

// The page of columns says what files have.
func TestPageOfColumns(t *testing.T) {
	var b strings.Builder
	b.WriteString("# Columns of the tables\n\nWritten by `go test ./pkg/parquet -update`. `blis-sim -o DIR/` writes both tables, `-o FILE.parquet` the outcomes alone.\n" +
		"Each row is a record of the stream, under the same names; what may be absent there is null here.\n")
	for _, of := range tables {
		o := object(t, of.record)
		fmt.Fprintf(&b, "\n## %s.parquet\n\n%s\n\n| column | type | null | meaning |\n|---|---|---|---|\n", of.name, o.Doc)
		describe(t, &b, "", parquet.SchemaOf(reflect.New(of.row).Interface()).Fields(), of.record)
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
		t.Errorf("%s is not what the tables are (-); run go test ./pkg/parquet -update:\n%s", page, diff)
	}
}

// gapDocs are of the columns of itl_us, which are pairs on the wire.
var gapDocs = map[string]string{"gap_us": "The gap.", "count": "How often in a row."}

// describe writes a line for each column, and for each in a list of groups.
func describe(t *testing.T, b *strings.Builder, at string, columns []parquet.Field, typ reflect.Type) {
	t.Helper()
	for _, c := range columns {
		doc := gapDocs[c.Name()]
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
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", at+c.Name(), typeWord(c), null, doc)
		if !c.Leaf() && !element(c).Leaf() {
			var of reflect.Type
			if typ != nil {
				of = elementOf(typ, c.Name())
			}
			describe(t, b, at+c.Name()+"[].", element(c).Fields(), of)
		}
	}
}

// typeWord names a column's type as readers of tables do.
func typeWord(c parquet.Node) string {
	if !c.Leaf() {
		if element(c).Leaf() {
			return "list of " + typeWord(element(c))
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
