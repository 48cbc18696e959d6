package schemas_test

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"blis/pkg/dist"
	"blis/pkg/gen"
	"blis/pkg/stream"

	gocmp "github.com/google/go-cmp/cmp"
)

// specPage is the reference page of workload specs: every field that a spec can
// have, with its type and what the comments on the Go types say of it.
const specPage = "spec.md"

func TestSpecPage(t *testing.T) {
	want := newPage(t).write()
	if *update {
		if err := os.WriteFile(specPage, []byte(want), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	have, err := os.ReadFile(specPage)
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(string(have), want); diff != "" {
		t.Errorf("%s is not what the types say (go test ./schemas -update writes it anew):\n%s", specPage, diff)
	}
}

// page is the reference being written.
type page struct {
	*testing.T
	// docs are the comments on types ("gen.Spec") and on fields ("gen.Spec.Seed").
	docs map[string]string
	// names are the titles of the types that have a section, in its order.
	names map[reflect.Type]string
	order []reflect.Type
	// fields are the names of fields in files, by their names in Go.
	fields map[string]string
}

// newPage reads the comments and gives every type that a spec leads to a title:
// the path of the first field that has it.
func newPage(t *testing.T) *page {
	t.Helper()
	p := &page{T: t, docs: map[string]string{}, names: map[reflect.Type]string{}, fields: map[string]string{}}
	p.read("gen")
	p.read("dist")
	for _, o := range stream.Objects {
		p.docs[o.Type.String()] = o.Doc
		for i, f := range o.Fields {
			p.docs[o.Type.String()+"."+o.Type.Field(i).Name] = f.Doc
		}
	}
	p.names[reflect.TypeFor[dist.Spec]()] = "distribution" // many fields have it
	p.visit(reflect.TypeFor[gen.Spec](), "The spec")
	p.order = append(p.order, reflect.TypeFor[dist.Spec]())
	p.add(reflect.TypeFor[dist.Spec](), "")
	return p
}

// read takes the comments of a package.
func (p *page) read(name string) {
	p.Helper()
	files, err := filepath.Glob("../pkg/" + name + "/*.go")
	if err != nil || len(files) == 0 {
		p.Fatalf("no files of package %s: %v", name, err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			p.Fatal(err)
		}
		for _, d := range parsed.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.TYPE {
				continue
			}
			for _, s := range g.Specs {
				s := s.(*ast.TypeSpec)
				at := name + "." + s.Name.Name
				p.docs[at] = cmp.Or(s.Doc.Text(), g.Doc.Text())
				if of, ok := s.Type.(*ast.StructType); ok {
					for _, f := range of.Fields.List {
						for _, n := range f.Names {
							p.docs[at+"."+n.Name] = f.Doc.Text()
						}
					}
				}
			}
		}
	}
}

// visit gives typ and what it leads to their titles.
func (p *page) visit(typ reflect.Type, path string) {
	typ = inner(typ)
	if typ.Kind() != reflect.Struct || p.names[typ] != "" {
		return
	}
	p.names[typ] = path
	p.order = append(p.order, typ)
	p.add(typ, strings.TrimPrefix(path, "The spec"))
}

// add visits the fields of typ, which stand at path.
func (p *page) add(typ reflect.Type, path string) {
	for f := range fieldsOf(typ) {
		name := nameOf(f)
		p.fields[f.Name] = name
		at := strings.TrimPrefix(path+"."+name, ".")
		switch f.Type.Kind() {
		case reflect.Slice:
			at += "[]"
		case reflect.Map:
			at += ".*"
		}
		p.visit(f.Type, at)
	}
}

// fieldsOf yields the fields of a struct that files have.
func fieldsOf(typ reflect.Type) func(func(reflect.StructField) bool) {
	return func(yield func(reflect.StructField) bool) {
		for i := range typ.NumField() {
			if f := typ.Field(i); f.IsExported() && !f.Anonymous && !yield(f) {
				return
			}
		}
	}
}

func nameOf(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
	return name
}

// inner is what a type holds, or points to.
func inner(typ reflect.Type) reflect.Type {
	for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice || typ.Kind() == reflect.Map {
		typ = typ.Elem()
	}
	return typ
}

func (p *page) write() string {
	var b strings.Builder
	b.WriteString("# Workload specs\n\nWhat a spec of `blis-gen` may say, in YAML or JSON. This page is made from the Go types\n(`go test ./schemas -update`), as is `spec.schema.json`. Lengths are in tokens, times in µs.\n")
	for _, typ := range p.order {
		title := p.names[typ]
		if title != "The spec" && title != "distribution" {
			title = "`" + title + "`"
		}
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n| field | type | meaning |\n|---|---|---|\n", title, p.intro(typ))
		p.rows(&b, typ)
		if !strings.Contains(fmt.Sprint(typ), "Component") {
			continue
		}
		fmt.Fprintf(&b, "| … | | and the fields of a %s |\n", p.link(reflect.TypeFor[dist.Spec]()))
	}
	b.WriteString("\n## Choices\n\n| where | name | meaning |\n|---|---|---|\n")
	for _, e := range gen.ContextGrowths {
		fmt.Fprintf(&b, "| `multi_turn.context_growth` | `%s` | %s |\n", e.Name, e.Doc)
	}
	for _, e := range gen.Behaviors {
		fmt.Fprintf(&b, "| `behavior.type` | `%s` | %s |\n", e.Name, e.Doc)
	}
	for _, e := range gen.PromptSizes {
		fmt.Fprintf(&b, "| `archetype.typical_prompt_size` | `%s` | %s |\n", e.Name, e.Doc)
	}
	for _, e := range dist.Arrivals {
		fmt.Fprintf(&b, "| `arrival.process` | `%s` | %s |\n", e.Name, e.Doc)
	}
	for _, e := range dist.Profiles {
		fmt.Fprintf(&b, "| `load_profile.type` | `%s` | %s |\n", e.Name, e.Doc)
	}
	for _, e := range dist.Lengths {
		fmt.Fprintf(&b, "| `type` of a distribution | `%s` | %s |\n", e.Name, e.Doc)
	}
	return b.String()
}

// intro is what is said of a type, which the section is about.
func (p *page) intro(typ reflect.Type) string {
	doc := p.docs[key(typ)]
	if rest, ok := strings.CutPrefix(doc, typ.Name()+" "); ok {
		doc = "It " + rest
		if strings.HasPrefix(rest, "are ") || strings.HasPrefix(rest, "say ") {
			doc = "They " + rest
		}
	}
	return p.text(doc)
}

// rows writes a row for each comment, which is about the fields up to the next.
func (p *page) rows(b *strings.Builder, typ reflect.Type) {
	var names, types []string
	meaning := ""
	flush := func() {
		if len(names) > 0 {
			fmt.Fprintf(b, "| %s | %s | %s |\n", strings.Join(names, "<br>"), strings.Join(types, "<br>"), meaning)
		}
		names, types = nil, nil
	}
	for f := range fieldsOf(typ) {
		if doc := p.docs[key(typ)+"."+f.Name]; doc != "" {
			flush()
			meaning = strings.ReplaceAll(p.text(doc), "\n\n", "<br>")
		} else if len(names) == 0 {
			p.Errorf("nothing says what %v.%s means", typ, f.Name)
		}
		names, types = append(names, "`"+nameOf(f)+"`"), append(types, p.typeOf(f.Type))
	}
	flush()
}

// key is what a type is called in docs; those that are defined as another have
// that one's fields.
func key(typ reflect.Type) string {
	if typ == reflect.TypeFor[gen.Class]() {
		return "stream.SLOClass"
	}
	return typ.String()
}

// typeOf is a type in words.
func (p *page) typeOf(typ reflect.Type) string {
	switch typ.Kind() {
	case reflect.Pointer:
		return p.typeOf(typ.Elem())
	case reflect.Slice:
		return "list of " + p.typeOf(typ.Elem())
	case reflect.Map:
		return "by name: " + p.typeOf(typ.Elem())
	case reflect.Struct:
		return p.link(typ)
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true or false"
	case reflect.Float64:
		return "number"
	}
	return "whole number"
}

// link leads to the section of a type.
func (p *page) link(typ reflect.Type) string {
	title := p.names[typ]
	anchor := regexp.MustCompile(`[^a-z0-9_ -]`).ReplaceAllString(strings.ToLower(title), "")
	return fmt.Sprintf("[%s](#%s)", title, strings.ReplaceAll(anchor, " ", "-"))
}

var (
	word = regexp.MustCompile(`\b(?:[A-Z][A-Za-z]*\.)?([A-Z][A-Za-z]+)\b`)
	// table is how comments refer to the choices.
	table = regexp.MustCompile(`\bone of (Arrivals|Behaviors|Lengths|Profiles|PromptSizes)\b`)
	// list is a block that comments set apart.
	list = regexp.MustCompile(`(?m)^\t(\S+) +(.*(?:\n\t {3,}.*)*)$`)
)

// text is a comment for readers of files: fields have the names that they have
// there.
func (p *page) text(doc string) string {
	doc = list.ReplaceAllStringFunc(strings.TrimSpace(doc), func(item string) string {
		m := list.FindStringSubmatch(item)
		return "\n`" + m[1] + "`: " + m[2] + "\n"
	})
	doc = table.ReplaceAllString(doc, "one of [the choices](#choices)")
	doc = word.ReplaceAllStringFunc(doc, func(w string) string {
		m := word.FindStringSubmatch(w)
		if name, ok := p.fields[m[1]]; ok {
			return "`" + name + "`"
		}
		return w
	})
	var paragraphs []string
	for _, part := range strings.Split(doc, "\n\n") {
		if words := strings.Fields(part); len(words) > 0 {
			paragraphs = append(paragraphs, strings.Join(words, " "))
		}
	}
	return strings.Join(paragraphs, "\n\n")
}
