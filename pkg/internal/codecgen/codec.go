package main

import (
	"bytes"
	"fmt"
	"go/format"
	"strings"
)

// generator writes the source of one file.
type generator struct {
	bytes.Buffer
	objects map[string]*object // by type
}

func newGenerator(objects []*object) *generator {
	g := &generator{objects: map[string]*object{}}
	for _, o := range objects {
		g.objects[o.typ] = o
	}
	g.WriteString(header)
	return g
}

func (g *generator) printf(format string, args ...any) { fmt.Fprintf(g, format, args...) }

// codec generates the descriptions of objects, the encoders and the decoders.
func codec(objects []*object) ([]byte, error) {
	g := newGenerator(objects)
	g.printf("package stream\n\nimport (\n\"slices\"\n\"strconv\"\n)\n\n")
	g.printf("// Objects describes all objects on the wire, records first.\nvar Objects = []*Object{\n")
	for _, o := range objects {
		g.printf("%s,\n", o.variable())
	}
	g.printf("}\n\n")
	for _, o := range objects {
		g.description(o)
	}
	for _, o := range objects {
		if o.encode {
			if !o.fields[0].required {
				return nil, fmt.Errorf("%s: an encoder needs a required first field", o.typ)
			}
			g.encoder(o)
		}
		if o.decode {
			g.decoder(o)
		}
	}
	return format.Source(g.Bytes())
}

// variable is the name of the variable that describes o.
func (o *object) variable() string {
	first, rest, _ := strings.Cut(o.name, "_")
	return first + strings.ReplaceAll(title(rest), "_", "") + "Object"
}

// title capitalizes the first letter of each word of a name with underscores.
func title(name string) string {
	words := strings.Split(name, "_")
	for i, w := range words {
		if w != "" {
			words[i] = strings.ToUpper(w[:1]) + w[1:]
		}
	}
	return strings.Join(words, "")
}

func (g *generator) description(o *object) {
	g.printf("var %s = describe[%s](%q, %q,\n", o.variable(), o.typ, o.name, o.doc)
	for _, f := range o.fields {
		g.printf("Field{Name: %q, Doc: %q", f.name, f.doc)
		if f.required {
			g.printf(", Required: true")
		}
		if f.min != "" {
			g.printf(", Min: %s", f.min)
		}
		if f.max != "" {
			g.printf(", Max: %s", f.max)
		}
		if f.oneOf != "" {
			g.printf(", OneOf: %s", f.oneOf)
		}
		g.printf("},\n")
	}
	g.printf(")\n\n")
}

// hasFloats reports whether the encoder of o needs the cache of numbers.
func (g *generator) hasFloats(o *object) bool {
	for _, f := range o.fields {
		element := strings.TrimPrefix(f.typ, "[]")
		if element == "float64" || element == "Number" {
			return true
		}
		if of := g.objects[element]; of != nil && g.hasFloats(of) {
			return true
		}
	}
	return false
}
