package main

import (
	"fmt"
	"slices"
	"strings"
)

// tables are the types of the records that have a table, and of their parts.
var tables = []string{"Outcome", "LoadedTokens", "Decision", "Candidate", "Step", "BatchEntry", "SessionOutcome",
	"Anomaly", "Series"}

// derived are columns of a table that follow from the fields of the record: the name of a function in package
// parquet that computes it from the record, by column.
var derived = map[string][]struct{ goName, column, function string }{
	"Outcome": {
		{"TTFTMS", "ttft_ms", "ttftMS"}, {"TPOTMS", "tpot_ms", "tpotMS"},
		{"E2EMS", "e2e_ms", "e2eMS"}, {"QueueMS", "queue_ms", "queueMS"},
	},
}

// rows generates, for each type with a table, the type of its rows and the conversions in both
// directions.
func (g *generator) rows(objects []*object) {
	g.printf("package parquet\n\nimport \"blis/pkg/stream\"\n\n")
	for _, typ := range tables {
		o := objects[slices.IndexFunc(objects, func(o *object) bool { return o.typ == typ })]
		row, columns := rowName(typ), o.fields
		var fields, toRow, fromRow strings.Builder
		if o.record { // all but kind
			columns = columns[1:]
			fmt.Fprintf(&fromRow, "Kind: %q,\n", o.name)
		}
		for _, f := range columns {
			column, options := f.column()
			to, from := f.conversions()
			fmt.Fprintf(&fields, "%s %s `parquet:\"%s%s\"`\n", f.goName, column, f.name, options)
			fmt.Fprintf(&toRow, "%s: %s,\n", f.goName, f.expand(to, "v."+f.goName, ""))
			fmt.Fprintf(&fromRow, "%s: %s,\n", f.goName, f.expand(from, "r."+f.goName, ""))
		}
		for _, d := range derived[typ] {
			fmt.Fprintf(&fields, "%s *float64 `parquet:\"%s\"`\n", d.goName, d.column)
			fmt.Fprintf(&toRow, "%s: %s(v),\n", d.goName, d.function)
		}
		g.printf("// %s is a row, or a part of one, for a stream.%s.\n", row, typ)
		g.printf("type %s struct {\n%s}\n\n", row, &fields)
		g.printf("func rowOf%s(v *stream.%s) %s {\nreturn %s{\n%s}\n}\n\n", typ, typ, row, row, &toRow)
		g.printf("func (r *%s) record() stream.%s {\nreturn stream.%s{\n%s}\n}\n\n", row, typ, typ, &fromRow)
	}
}

// rowName is the name of the type of rows of the records of type typ.
func rowName(typ string) string { return strings.ToLower(typ[:1]) + typ[1:] + "Row" }

// column is the type of a column of f and the options in its tag. A pointer is optional in any case;
// the library needs the option to write zero values of a type as null.
func (f *field) column() (typ, options string) {
	typ = f.typ
	switch {
	case f.row != "":
		return "[]" + f.expand(f.row, "", ""), ",optional,list"
	case f.isObject():
		return "*" + rowName(typ[1:]), ""
	case f.toRow != "":
		return typ, ",optional,list"
	case f.absent != "":
		typ = "stream." + typ
	case !f.required && typ[0] != '*':
		options = ",optional"
	}
	if !f.required && typ[0] != '*' {
		typ = "*" + typ
	}
	if f.typ == "string" && !f.has("unique") && !f.has("nodict") {
		options += ",dict"
	}
	return typ, options
}

// isObject reports whether f points to an object.
func (f *field) isObject() bool {
	_, plain := kinds[f.typ]
	return !plain && f.typ[0] == '*'
}

// conversions are the expressions that convert f to its column and back.
func (f *field) conversions() (toRow, fromRow string) {
	switch {
	case f.isObject():
		return "convertPointer($v, rowOf$T)", "convertPointer($v, (*$row).record)"
	case f.toRow != "":
		return f.toRow, f.fromRow
	case f.required || f.typ[0] == '*':
		return "$v", "$v"
	case f.absent != "":
		return "present($v)", "valueOr($v, stream." + f.absent + ")"
	}
	return "optional($v)", "valueOf($v)"
}
