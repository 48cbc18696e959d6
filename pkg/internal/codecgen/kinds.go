package main

import "strings"

// kind says how the fields of a Go type are encoded, decoded and kept in a table, as Go source in which
// $v is the field, $key its name as JSON text after the text before it, $string the method of the
// scanner that reads its strings, $T the type that it points to or lists, and $row the type of T's rows.
type kind struct {
	max    string // bound of the integers
	absent string // value of an absent field if it is not the zero value

	encode  string
	present string // whether a field that may be absent is written
	decode  string

	// row is the type of the elements of a list in a table if it is not theirs; toRow and fromRow
	// convert lists.
	row, toRow, fromRow string
}

// kinds are the kinds of the Go types of the fields that have an encoder, a decoder or a column.
var kinds = map[string]kind{
	"string": {encode: "b = appendString(append(b, `$key`...), $v)", present: `$v != ""`,
		decode: "$v = s.$string(f)"},
	"int64": {max: "maxExact", encode: "b = appendInt(b, `$key`, $v)", present: "$v != 0",
		decode: "$v = s.integer(f)"},
	"Micros": {max: "maxExact", absent: "Never", encode: "b = appendInt(b, `$key`, int64($v))",
		present: "!$v.IsZero()", decode: "$v = Micros(s.integer(f))"},
	"Index": {max: "maxIndex", absent: "NoIndex", encode: "b = appendInt(b, `$key`, int64($v))",
		present: "!$v.IsZero()", decode: "$v = Index(s.integer(f))"},
	"Number": {absent: "NoNumber", encode: "b = cache.append(append(b, `$key`...), float64($v))",
		present: "!$v.IsZero()", decode: "$v = Number(s.float(f))"},
	"float64": {encode: "b = cache.append(append(b, `$key`...), $v)", decode: "$v = s.float(f)"},
	"bool":    {encode: "b = append(b, `$keytrue`...)", present: "$v", decode: "$v = s.boolean(f)"},
	"*bool": {encode: "b = strconv.AppendBool(append(b, `$key`...), *$v)", present: "$v != nil",
		decode: "$v = BoolPtr(s.boolean(f))"},
	"*float64": {encode: "b = cache.append(append(b, `$key`...), *$v)", present: "$v != nil",
		decode: "x := s.float(f)\n$v = &x"},

	"[]string": list("appendString(b, $v[i])", "$v = append($v, s.$string(f))",
		kind{toRow: "append([]string(nil), $v...)", fromRow: "$v"}), // an empty list is null
	"[]float64": list("cache.append(b, $v[i])", "$v = append($v, s.float(f))",
		kind{toRow: "append([]float64(nil), $v...)", fromRow: "$v"}),
	"[]int64": list("strconv.AppendInt(b, $v[i], 10)", "$v = append($v, s.integer(f))"+locateError,
		kind{max: "maxExact"}),
	"[]Index": list("strconv.AppendInt(b, int64($v[i]), 10)",
		"$v = append($v, Index(s.integer(&stepIndexField)))"+locateError, kind{}),
	"[][2]int64": list("appendPair(b, $v[i])", "$v = append($v, s.pair())"+locateError,
		kind{row: "gapRow", toRow: "convert($v, rowOfGap)", fromRow: "convert($v, (*gapRow).pair)"}),
}

var (
	objectPointer = kind{encode: "b = append$T(append(b, `$key`...), $v, cache)", present: "$v != nil",
		decode: "$v = new($T)\n$v.decode(s)"}
	objectList = list("append$T(b, &$v[i], cache)",
		"$v = slices.Grow($v, 1)[:n+1]\n$v[n].decode(s)"+locateError,
		kind{row: "$row", toRow: "convert($v, rowOf$T)", fromRow: "convert($v, (*$row).record)"})
)

// locateError makes an error in an element of a list name its index.
const locateError = "\nif s.err != nil {\ns.inElement(f, n)\n}"

// list is the kind of a list with an expression that appends its element i to b, a statement that reads
// its element n, and its table columns.
func list(element, read string, k kind) kind {
	k.encode = "b = append(b, `$key[`...)\nfor i := range $v {\nif i > 0 {\nb = append(b, ',')\n}\nb = " +
		element + "\n}\nb = append(b, ']')"
	k.present = "len($v) > 0"
	k.decode = "for n := 0; s.nextElement(f, n); n++ {\n" + read + "\n}"
	return k
}

// kindOf returns no encoder, decoder or column for a type of which no object with any of them has fields.
func kindOf(typ string) kind {
	if k, found := kinds[typ]; found {
		return k
	}
	switch typ[0] {
	case '*':
		return objectPointer
	case '[':
		return objectList
	}
	return kind{}
}

// expand replaces what stands for the parts of f in source text.
func (f *field) expand(source, value, key string) string {
	reader := "internedString"
	switch {
	case f.options["oneof"] != "":
		reader = "choice"
	case f.has("shortlived"):
		reader = "shortLivedString"
	case f.has("unique"):
		reader = "uniqueString"
	}
	element := strings.TrimLeft(f.typ, "[]*")
	return strings.NewReplacer("$v", value, "$key", key, "$string", reader, "$T", element, "$row", rowName(element)).
		Replace(source)
}
