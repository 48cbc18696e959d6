package main

import (
	"fmt"
	"go/format"
	"strings"
)

// tables are the types of the records that have a table, and of their parts.
var tables = []string{"Outcome", "Decision", "Candidate"}

// rows generates, for each type with a table, the type of its rows and the conversions
// in both directions.
func rows(objects []*object) ([]byte, error) {
	g := newGenerator(objects)
	g.printf("package parquet\n\nimport \"blis/pkg/stream\"\n\n")
	for _, typ := range tables {
		o := g.objects[typ]
		if o == nil {
			return nil, fmt.Errorf("no type %s has a directive", typ)
		}
		g.rowType(o)
		g.toRow(o)
		g.fromRow(o)
	}
	return format.Source(g.Bytes())
}

// rowName is the name of the type of rows of the records of type typ.
func rowName(typ string) string { return strings.ToLower(typ[:1]) + typ[1:] + "Row" }

// columns are the fields of o that have a column.
func (o *object) columns() []*field {
	if o.fields[0].name == "kind" {
		return o.fields[1:]
	}
	return o.fields
}

func (g *generator) rowType(o *object) {
	g.printf("// %s is a row, or a part of one, for a stream.%s.\n", rowName(o.typ), o.typ)
	g.printf("type %s struct {\n", rowName(o.typ))
	for _, f := range o.columns() {
		typ, options := f.column()
		g.printf("%s %s `parquet:\"%s%s\"`\n", f.goName, typ, f.name, options)
	}
	g.printf("}\n\n")
}

// column is the Go type of a column of f, and its options in the tag.
func (f *field) column() (typ, options string) {
	switch f.typ {
	case "string":
		typ = "string"
	case "int64", "Micros":
		typ = "int64"
	case "Index":
		typ = "int32"
	case "float64", "Number":
		typ = "float64"
	case "bool", "*bool":
		typ = "bool"
	case "[][2]int64":
		return "[]gapRow", ",optional,list"
	default:
		element := strings.TrimPrefix(f.typ, "[]")
		if element != "string" && element != "float64" {
			element = rowName(element)
		}
		return "[]" + element, ",optional,list"
	}
	if !f.required {
		typ = "*" + typ
	}
	// A pointer is optional in any case; the library wants it said for these to write
	// zero values as null.
	// A pointer is optional even without this option, which keeps the schema as it is.
	if !f.required && !f.omitzero && f.typ != "*bool" {
		options = ",optional"
	}
	if f.typ == "string" && !f.unique && !f.nodict {
		options += ",dict"
	}
	return typ, options
}

// toRow generates rowOfT, which converts a record to a row.
func (g *generator) toRow(o *object) {
	g.printf("func rowOf%s(v *stream.%s) %s {\nreturn %s{\n", o.typ, o.typ, rowName(o.typ), rowName(o.typ))
	for _, f := range o.columns() {
		g.printf("%s: %s,\n", f.goName, f.toColumn("v."+f.goName))
	}
	g.printf("}\n}\n\n")
}

func (f *field) toColumn(value string) string {
	if strings.HasPrefix(f.typ, "[]") {
		switch element := f.typ[2:]; element {
		case "string", "float64":
			return "append([]" + element + "(nil), " + value + "...)" // an empty list is null
		case "[2]int64":
			return "convert(" + value + ", rowOfGap)"
		default:
			return "convert(" + value + ", rowOf" + element + ")"
		}
	}
	switch {
	case f.typ == "Micros" && f.required:
		return "int64(" + value + ")"
	case f.typ == "Micros":
		return "optionalMicros(" + value + ")"
	case f.typ == "Index" && f.required:
		return "int32(" + value + ")"
	case f.typ == "Index":
		return "optionalIndex(" + value + ")"
	case f.typ == "Number":
		return "optionalNumber(" + value + ")"
	case f.required || f.typ[0] == '*':
		return value
	}
	return "optional(" + value + ")"
}

// fromRow generates the method record of a row, which converts it to a record.
func (g *generator) fromRow(o *object) {
	g.printf("func (r *%s) record() stream.%s {\nreturn stream.%s{\n", rowName(o.typ), o.typ, o.typ)
	if o.record {
		g.printf("Kind: %q,\n", o.name)
	}
	for _, f := range o.columns() {
		g.printf("%s: %s,\n", f.goName, f.fromColumn("r."+f.goName))
	}
	g.printf("}\n}\n\n")
}

func (f *field) fromColumn(value string) string {
	if strings.HasPrefix(f.typ, "[]") {
		switch element := f.typ[2:]; element {
		case "string", "float64":
			return value
		case "[2]int64":
			return "convert(" + value + ", (*gapRow).pair)"
		default:
			return "convert(" + value + ", (*" + rowName(element) + ").record)"
		}
	}
	stream := "stream." + f.typ + "(" + value + ")"
	switch {
	case f.typ == "Micros" || f.typ == "Index":
		if f.required {
			return stream
		}
		return strings.ToLower(f.typ) + "Of(" + value + ")"
	case f.typ == "Number":
		return "numberOf(" + value + ")"
	case f.required || f.typ[0] == '*':
		return value
	}
	return "valueOf(" + value + ")"
}
