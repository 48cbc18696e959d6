package main

import "strings"

// decoder generates the method decode of an object. That of a record reads a whole line.
func (g *generator) decoder(o *object) {
	result := ""
	if o.record {
		result = " error"
	}
	g.printf("func (v *%s) decode(s *scanner)%s {\n", o.typ, result)
	g.initialValue(o)
	g.printf("it := fieldIterator{object: %s}\n", o.variable())
	g.printf("for s.nextField(&it) {\nswitch f := it.field; it.index {\n")
	for i, f := range o.fields {
		g.printf("case %d: // %s\n", i, f.name)
		g.decodeField(f)
	}
	g.printf("}\n}\n")
	switch {
	case o.record && o.check:
		g.printf("if err := s.endOfLine(); err != nil {\nreturn err\n}\nv.check(s)\nreturn s.err\n")
	case o.record:
		g.printf("return s.endOfLine()\n")
	case o.check:
		g.printf("v.check(s)\n")
	}
	g.printf("}\n\n")
}

// initialValue generates the value that stands for absent fields. Lists keep their memory.
func (g *generator) initialValue(o *object) {
	g.printf("*v = %s{", o.typ)
	for _, f := range o.fields {
		switch {
		case f.name == "kind":
			g.printf("Kind: %q,", o.name)
		case strings.HasPrefix(f.typ, "[]") && !f.fresh:
			g.printf("%s: v.%s[:0],", f.goName, f.goName)
		case !f.omitzero:
		case f.typ == "Micros":
			g.printf("%s: Never,", f.goName)
		case f.typ == "Index":
			g.printf("%s: NoIndex,", f.goName)
		case f.typ == "Number":
			g.printf("%s: noNumber,", f.goName)
		}
	}
	g.printf("}\n")
}

// decodeField generates the decoding of f.
func (g *generator) decodeField(f *field) {
	value := "v." + f.goName
	integer := "s.integer(f)"
	if strings.HasPrefix(f.min, "-") {
		integer = "s.signed(f)"
	}
	switch {
	case f.name == "kind":
		g.printf("s.kind(f)\n")
	case f.decoder != "":
		g.printf("v.%s(s, f)\n", f.decoder)
	case f.typ == "string":
		g.printf("%s = s.%s(f)\n", value, f.stringReader())
	case f.typ == "int64":
		g.printf("%s = %s\n", value, integer)
	case f.typ == "Micros" || f.typ == "Index":
		g.printf("%s = %s(%s)\n", value, f.typ, integer)
	case f.typ == "Number":
		g.printf("%s = Number(s.float(f))\n", value)
	case f.typ == "float64":
		g.printf("%s = s.float(f)\n", value)
	case f.typ == "bool":
		g.printf("%s = s.boolean(f)\n", value)
	case f.typ == "*bool":
		g.printf("%s = BoolPtr(s.boolean(f))\n", value)
	case f.typ == "*float64":
		g.printf("x := s.float(f)\n%s = &x\n", value)
	case f.typ[0] == '*':
		g.printf("%s = new(%s)\n%s.decode(s)\n", value, f.typ[1:], value)
	default:
		g.decodeList(f, value)
	}
}

// stringReader is the method of the scanner that reads a string of f.
func (f *field) stringReader() string {
	if f.unique {
		return "uniqueString"
	}
	return "internedString"
}

// decodeList generates the decoding of a list. An error in an element names its index,
// except for plain strings and numbers.
func (g *generator) decodeList(f *field, value string) {
	if f.fresh {
		g.printf("%s = %s{}\n", value, f.typ)
	}
	element := strings.TrimPrefix(f.typ, "[]")
	read := map[string]string{"string": "s." + f.stringReader() + "(f)", "float64": "s.float(f)"}[element]
	if read != "" {
		g.printf("for n := 0; s.nextElement(f, n); n++ {\n%s = append(%s, %s)\n}\n", value, value, read)
		return
	}
	switch element {
	case "[2]int64":
		g.printf("%s = s.pairs(f, %s)\n", value, value)
		return
	case "Index":
		g.printf("%s = s.indexes(f, %s)\n", value, value)
		return
	}
	if o := g.objects[element]; o == nil || !o.decode {
		panic("codecgen: no decoder for " + f.typ)
	}
	g.printf("for n := 0; s.nextElement(f, n); n++ {\n%s = slices.Grow(%s, 1)[:n+1]\n", value, value)
	g.printf("if %s[n].decode(s); s.err != nil {\ns.inElement(f, n)\n}\n}\n", value)
}
