package main

import (
	"fmt"
	"strings"
)

// encoder generates appendT, which appends a T as one JSON object.
func (g *generator) encoder(o *object) {
	cache := ""
	if g.hasFloats(o) {
		cache = ", cache *numberCache"
	}
	g.printf("func append%s(b []byte, v *%s%s) []byte {\n", o.typ, o.typ, cache)
	literal := "{"
	for i, f := range o.fields {
		if i > 0 {
			literal += ","
		}
		literal += fmt.Sprintf("%q:", f.name)
		if f.name == "kind" {
			literal += fmt.Sprintf("%q", o.name)
			continue
		}
		g.encodeField(f, literal)
		literal = ""
	}
	g.printf("return append(b, '}')\n}\n\n")
}

// encodeField generates the encoding of f, whose value follows the text literal.
func (g *generator) encodeField(f *field, literal string) {
	value := "v." + f.goName
	key := "`" + literal + "`"
	switch f.typ {
	case "string":
		if f.required {
			g.printf("b = appendString(append(b, %s...), %s)\n", key, value)
		} else {
			g.printf("b = appendOptionalString(b, %s, %s)\n", key, value)
		}
	case "int64":
		if f.required {
			g.printf("b = appendInt(b, %s, %s)\n", key, value)
		} else {
			g.printf("b = appendOptionalInt(b, %s, %s)\n", key, value)
		}
	case "Micros", "Index":
		if f.required {
			g.printf("b = appendInt(b, %s, int64(%s))\n", key, value)
		} else {
			g.printf("if !%s.IsZero() {\nb = appendInt(b, %s, int64(%s))\n}\n", value, key, value)
		}
	case "Number":
		g.printf("if !%s.IsZero() {\nb = cache.append(append(b, %s...), float64(%s))\n}\n", value, key, value)
	case "float64":
		g.printf("b = cache.append(append(b, %s...), %s)\n", key, value)
	case "bool":
		g.printf("if %s {\nb = append(b, `%strue`...)\n}\n", value, literal)
	case "*bool":
		g.printf("if %s != nil {\nb = strconv.AppendBool(append(b, %s...), *%s)\n}\n", value, key, value)
	default:
		g.encodeList(f, value, literal)
	}
}

// encodeList generates the encoding of a list; one that is not required is left out if
// it is empty.
func (g *generator) encodeList(f *field, value, literal string) {
	if f.required {
		g.printf("b = append(b, `%s[`...)\n", literal)
		g.printf("for i := range %s {\nif i > 0 {\nb = append(b, ',')\n}\n", value)
		g.printf("b = %s\n}\nb = append(b, ']')\n", g.encodeElement(f, value))
		return
	}
	g.printf("for i := range %s {\nif i == 0 {\nb = append(b, `%s[`...)\n", value, literal)
	g.printf("} else {\nb = append(b, ',')\n}\n")
	g.printf("b = %s\n}\n", g.encodeElement(f, value))
	g.printf("if len(%s) > 0 {\nb = append(b, ']')\n}\n", value)
}

// encodeElement is the expression that encodes element i of a list.
func (g *generator) encodeElement(f *field, list string) string {
	element := strings.TrimPrefix(f.typ, "[]")
	switch element {
	case "string":
		return "appendString(b, " + list + "[i])"
	case "float64":
		return "cache.append(b, " + list + "[i])"
	case "Index":
		return "strconv.AppendInt(b, int64(" + list + "[i]), 10)"
	case "[2]int64":
		return "appendPair(b, " + list + "[i])"
	}
	o := g.objects[element]
	if o == nil || !o.encode {
		panic("codecgen: no encoder for " + f.typ)
	}
	cache := ""
	if g.hasFloats(o) {
		cache = ", cache"
	}
	return fmt.Sprintf("append%s(b, &%s[i]%s)", element, list, cache)
}
