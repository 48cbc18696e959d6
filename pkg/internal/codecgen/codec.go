package main

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
)

// codec generates the descriptions of objects, the encoders and the decoders.
func (g *generator) codec(objects []*object) {
	g.printf("package stream\n\nimport (\n\"math/bits\"\n\"slices\"\n\"strconv\"\n)\n\n")
	g.printf("// Objects describes all objects on the wire, records first.\nvar Objects = []*Object{\n")
	for _, o := range objects {
		g.printf("object%s,\n", o.typ)
	}
	g.printf("}\n\n")
	for _, o := range objects {
		g.description(o)
	}
	for _, o := range objects {
		if o.has("encode") {
			g.encoder(o)
		}
		if o.has("decode") {
			g.decoder(o, false)
		}
		if o.has("results") {
			g.decoder(o, true)
		}
	}
}

func (g *generator) description(o *object) {
	g.printf("var object%s = describe[%s](%q, %q, fieldsOf%s[:])\n\n", o.typ, o.typ, o.name, o.doc, o.typ)
	g.printf("var fieldsOf%s = [...]Field{\n", o.typ)
	for _, f := range o.fields {
		g.printf("Field{Name: %q, Doc: %q", f.name, f.doc)
		if f.required {
			g.printf(", Required: true")
		}
		for _, bound := range [][2]string{{"Min", "min"}, {"Max", "max"}, {"OneOf", "oneof"}} {
			if value := f.options[bound[1]]; value != "" {
				g.printf(", %s: %s", bound[0], value)
			}
		}
		g.printf("},\n")
	}
	g.printf("}\n\n")
}

// encoder generates appendT, which appends a T as one JSON object.
func (g *generator) encoder(o *object) {
	g.printf("func append%s(b []byte, v *%s, cache *numberCache) []byte {\n", o.typ, o.typ)
	text := "{" // constant text before the next value
	optional := !o.fields[0].required
	if optional { // each field begins with a comma, of which the first becomes the brace
		g.printf("from := len(b)\n")
		text = ","
	}
	for _, f := range o.fields {
		text += fmt.Sprintf("%q:", f.name)
		if f.name == "kind" {
			text += fmt.Sprintf("%q,", o.name)
			continue
		}
		source := f.encode
		if !f.required {
			source = "if " + f.present + " {\n" + source + "\n}"
		}
		g.printf("%s\n", f.expand(source, "v."+f.goName, text))
		text = ","
	}
	if optional {
		g.printf("if len(b) == from {\nreturn append(b, \"{}\"...)\n}\nb[from] = '{'\n")
	}
	g.printf("return append(b, '}')\n}\n\n")
}

// decoder generates the method decode of an object. Absent fields get the value that stands for
// them; lists keep their memory.
// With results, it is that of a type that has a pointer to the object, which reads only the fields with the option
// result and skips the values of the others.
func (g *generator) decoder(o *object, results bool) {
	receiver, object := "*"+o.typ, "*v"
	if results {
		receiver, object = strings.ToLower(o.typ)+"Result", "*v."+o.typ
	}
	read := func(f *field) string {
		if results && !f.has("result") {
			return "s.skipValue()"
		}
		return f.expand(f.decode, "v."+f.goName, "")
	}
	g.printf("func (v %s) decode(s *scanner) {\n%s = %s{", receiver, object, o.typ)
	for _, f := range o.fields {
		switch {
		case results && f.name != "kind" && !f.has("result"):
		case f.name == "kind":
			g.printf("Kind: %q,", o.name)
		case f.has("fresh"):
			g.printf("%s: %s{},", f.goName, f.typ)
		case strings.HasPrefix(f.typ, "[]"):
			g.printf("%s: v.%s[:0],", f.goName, f.goName)
		case f.absent != "" && !f.required:
			g.printf("%s: %s,", f.goName, f.absent)
		}
	}
	g.printf("}\nseen := uint64(0)\n")
	g.writtenFields(o, read)
	g.printf("if !s.ends(object%s, seen) {\n", o.typ)
	g.printf("it := fieldIterator{object: object%s, seen: seen, next: bits.Len64(seen), started: seen != 0}\n", o.typ)
	g.printf("for s.nextField(&it) {\nswitch f := it.field; it.index {\n")
	for i, f := range o.fields {
		g.printf("case %d: // %s\n", i, f.name)
		g.printf("%s\n", read(f))
	}
	g.printf("}\n}\n}\n")
	if o.has("check") {
		g.printf("v.check(s)\n")
	}
	g.printf("}\n\n")
}

// writtenFields generates the fast path of decode: it reads the fields as a Writer writes them, up to the first that is
// in another place or in another spelling. The loop after it reads the rest. Where the first field is required and is
// not there, none of the others is tried.
func (g *generator) writtenFields(o *object, read func(*field) string) {
	first := "{"
	for i, f := range o.fields {
		key, source := fmt.Sprintf("%s%q:", first, f.name), read(f)
		if f.name == "kind" { // its value is a part of the key
			key, source = key+strconv.Quote(o.name), ""
		}
		g.printf("if %s {\nseen |= 1 << %d\n", atKey(key), i)
		if strings.Contains(source, "(f)") || strings.Contains(source, "(f,") {
			g.printf("f := &fieldsOf%s[%d]\n", o.typ, i)
		}
		g.printf("%s\n", source)
		if first = ","; i > 0 || !f.required {
			g.printf("}\n")
		}
	}
	if o.fields[0].required {
		g.printf("}\n")
	}
}

// atKey is the call that moves past a key. Most keys are compared as two words, its first and its last eight bytes.
func atKey(key string) string {
	switch n := len(key); {
	case n < 8:
		return fmt.Sprintf("s.atWord(`%s`, %#x)", key, word(key+"\x00\x00\x00\x00\x00\x00\x00"))
	case n <= 16:
		return fmt.Sprintf("s.atWords(`%s`, %#x, %#x)", key, word(key), word(key[n-8:]))
	default:
		return fmt.Sprintf("s.atKey(`%s`, %#x)", key, word(key))
	}
}

// word is the first eight bytes of s as a number.
func word(s string) uint64 { return binary.LittleEndian.Uint64([]byte(s)) }
