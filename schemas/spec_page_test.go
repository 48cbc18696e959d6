package schemas_test

import (
	"fmt"
	"io"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"blis/pkg/dist"
	"blis/pkg/gen"
	"blis/pkg/stream"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"
)

// specPage is the reference page of workload specs. People write its texts, examples, defaults and meanings of
// fields. The types of fields and the tables of choices follow from the code; -update rewrites them. The schema of
// specs takes its descriptions from the page.
const specPage = "spec.md"

// specIntro is the beginning of the page. Its code block is a complete spec.
const specIntro = "testdata/spec_intro.md"

// specChoices returns the names that a field can have with their meanings, by the path of the field.
func specChoices() map[string][][2]string {
	choices := map[string][][2]string{}
	add := func(path, name, doc string) { choices[path] = append(choices[path], [2]string{name, doc}) }
	for _, e := range dist.Lengths {
		add("clients[].input_distribution.type", e.Name, e.Doc)
	}
	for _, e := range dist.Arrivals {
		add("clients[].arrival.process", e.Name, e.Doc)
	}
	for _, e := range dist.Profiles {
		add("load_profile.type", e.Name, e.Doc)
	}
	for _, e := range stream.Classes {
		doc := fmt.Sprintf("%s (tier %s, priority %g)", e.Doc, e.Value.Tier, e.Value.Priority)
		add("slo_classes[].name", e.Name, doc)
	}
	for _, e := range gen.ContextGrowths {
		add("clients[].multi_turn.context_growth", e.Name, e.Doc)
	}
	for _, e := range gen.Behaviors {
		add("clients[].behavior.type", e.Name, e.Doc)
	}
	for _, e := range gen.PromptSizes {
		add("clients[].archetype.typical_prompt_size", e.Name, e.Doc)
	}
	return choices
}

// specDoc documents one object of a spec.
type specDoc struct {
	Type reflect.Type
	// Title is a heading. An object without one is part of the section before.
	Title string
	// Path is the first place of the object in a spec, such as clients[].arrival; "" is the spec itself.
	Path string
	// Text introduces the object. Example is a field of a client or of the spec, with its value.
	Text, Example string
	Fields        []fieldDoc
}

// fieldDoc documents one field: its name, the value of a field that is left out, and the meaning.
type fieldDoc struct{ Name, Default, Text string }

// The parts of the page.
var (
	specHeading = regexp.MustCompile("(?m)^(?:## (.+)(?:\n\nPath: `(.*)`)?|### `(.+)`)\n")
	specField   = regexp.MustCompile("(?m)^\\| `(.+?)` \\| (.*?) \\| (.*?) \\| (.*) \\|$")
)

// readSpecDocs reads the objects that the page documents, in order.
func readSpecDocs(t *testing.T) (docs []specDoc) {
	t.Helper()
	page, err := os.ReadFile(specPage)
	if err != nil {
		t.Fatal(err)
	}
	_, body, _ := strings.Cut(string(page), "\n## The spec\n")
	body = "## The spec\n" + body
	headings := specHeading.FindAllStringSubmatchIndex(body, -1)
	for i, at := range headings {
		end := len(body)
		if i+1 < len(headings) {
			end = headings[i+1][0]
		}
		heading, section := specHeading.FindStringSubmatch(body[at[0]:at[1]]), body[at[1]:end]
		d := specDoc{Title: heading[1], Path: heading[2] + heading[3]}
		if d.Title == "Distributions" { // they have many places
			d.Path = "clients[].input_distribution"
		}
		d.Type = specTypeAt(t, d.Path)
		text, table, _ := strings.Cut(section, "| field | type | default | meaning |\n")
		text, example, _ := strings.Cut(text, "```yaml\n")
		d.Text = strings.TrimSpace(text)
		d.Example, _, _ = strings.Cut(example, "\n```")
		for _, row := range specField.FindAllStringSubmatch(table, -1) {
			d.Fields = append(d.Fields, fieldDoc{row[1], row[3], row[4]})
		}
		docs = append(docs, d)
	}
	return docs
}

// specTypeAt returns the type of the object at a path of a spec.
func specTypeAt(t *testing.T, path string) reflect.Type {
	t.Helper()
	typ := reflect.TypeFor[gen.Spec]()
	for name := range strings.FieldsFuncSeq(path, func(r rune) bool { return r == '.' }) {
		if name == "*" {
			typ = typ.Elem()
			continue
		}
		field, ok := typ.FieldByNameFunc(func(n string) bool {
			f, _ := typ.FieldByName(n)
			tag, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
			return tag == strings.TrimSuffix(name, "[]")
		})
		if !ok {
			t.Fatalf("%s documents %s, but %s has no field %s", specPage, path, typ, name)
		}
		for typ = field.Type; typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice; {
			typ = typ.Elem()
		}
	}
	return typ
}

func TestSpecPage(t *testing.T) {
	want := specPageText(t)
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
		t.Errorf("%s is outdated (go test ./schemas -update regenerates it):\n%s", specPage, diff)
	}
}

// specPageText generates the page.
func specPageText(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString(readIntro(t))
	choices, docs := specChoices(), readSpecDocs(t)
	for _, d := range docs {
		switch {
		case d.Title == "":
			fmt.Fprintf(&b, "\n### `%s`\n", d.Path)
		case d.Path == "" || d.Type == reflect.TypeFor[dist.Spec]():
			fmt.Fprintf(&b, "\n## %s\n", d.Title)
		default:
			fmt.Fprintf(&b, "\n## %s\n\nPath: `%s`\n", d.Title, d.Path)
		}
		if d.Text != "" {
			fmt.Fprintf(&b, "\n%s\n", d.Text)
		}
		if d.Example != "" {
			fmt.Fprintf(&b, "\n```yaml\n%s\n```\n", d.Example)
		}
		b.WriteString("\n| field | type | default | meaning |\n|---|---|---|---|\n")
		for i, f := range specFields(d.Type) {
			if i < len(d.Fields) { // TestSpecFieldsAreDocumented reports missing ones
				doc := d.Fields[i]
				fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", doc.Name, specType(docs, f.Type), doc.Default, doc.Text)
			}
		}
		if d.Type == reflect.TypeFor[dist.Component]() {
			fmt.Fprintf(&b, "| … | | | and the fields of a %s |\n", specType(docs, reflect.TypeFor[dist.Spec]()))
		}
		for _, f := range d.Fields {
			writeChoices(&b, d, f.Name, choices[strings.TrimPrefix(d.Path+"."+f.Name, ".")])
		}
	}
	return b.String()
}

// writeChoices writes the table of names that a field can have, if any. Fields and parameters in it are set as code.
func writeChoices(b *strings.Builder, d specDoc, field string, list [][2]string) {
	if list == nil {
		return
	}
	names := []string{"value", "mean", "std_dev", "alpha", "minimum", "min", "max"}
	for _, f := range d.Fields {
		if f.Name != "values" { // also a word in the meanings
			names = append(names, f.Name)
		}
	}
	code := regexp.MustCompile(`\b(` + strings.Join(names, "|") + `)\b`)
	fmt.Fprintf(b, "\n| `%s` | meaning |\n|---|---|\n", field)
	for _, c := range list {
		if d.Type != reflect.TypeFor[gen.Class]() {
			c[1] = code.ReplaceAllString(c[1], "`$1`")
		}
		fmt.Fprintf(b, "| `%s` | %s |\n", c[0], c[1])
	}
}

// readIntro returns the beginning of the page.
func readIntro(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(specIntro)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// specType is a type in words, with a link to its section.
func specType(docs []specDoc, typ reflect.Type) string {
	switch typ.Kind() {
	case reflect.Pointer:
		return specType(docs, typ.Elem())
	case reflect.Slice:
		return "list of " + plural(specType(docs, typ.Elem()))
	case reflect.Map:
		return "map of names to " + plural(specType(docs, typ.Elem()))
	case reflect.Struct:
		for _, d := range docs {
			if d.Type != typ {
				continue
			}
			if typ == reflect.TypeFor[dist.Spec]() {
				return "[distribution](#distributions)"
			}
			if d.Title != "" {
				return fmt.Sprintf("[object](#%s)", strings.ReplaceAll(strings.ToLower(d.Title), " ", "-"))
			}
			return fmt.Sprintf("[object](#%s)", regexp.MustCompile(`[^a-z0-9_]`).ReplaceAllString(d.Path, ""))
		}
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "boolean"
	case reflect.Float64:
		return "number"
	}
	return "integer"
}

// plural is the plural of a type in words.
func plural(typ string) string {
	if rest, ok := strings.CutPrefix(typ, "list of"); ok {
		return "lists of" + rest
	}
	if strings.HasPrefix(typ, "[") {
		return strings.Replace(typ, "]", "s]", 1)
	}
	return typ + "s"
}

// specFields returns the fields of an object that a file can have.
func specFields(typ reflect.Type) (fields []reflect.StructField) {
	for i := range typ.NumField() {
		if f := typ.Field(i); f.IsExported() && !f.Anonymous {
			fields = append(fields, f)
		}
	}
	return fields
}

// Every field of every object in a spec is documented, in order, with a meaning and a default.
func TestSpecFieldsAreDocumented(t *testing.T) {
	docs := map[reflect.Type]specDoc{}
	for _, d := range readSpecDocs(t) {
		if _, duplicate := docs[d.Type]; duplicate {
			t.Errorf("%s is documented twice", d.Type)
		}
		docs[d.Type] = d
	}
	visited := map[reflect.Type]bool{}
	var visit func(typ reflect.Type)
	visit = func(typ reflect.Type) {
		for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice || typ.Kind() == reflect.Map {
			typ = typ.Elem()
		}
		if typ.Kind() != reflect.Struct || visited[typ] {
			return
		}
		visited[typ] = true
		d, ok := docs[typ]
		if !ok {
			t.Errorf("%s is not documented", typ)
			return
		}
		fields := specFields(typ)
		if len(fields) != len(d.Fields) {
			t.Errorf("%s has %d fields, documented are %d", typ, len(fields), len(d.Fields))
			return
		}
		for i, f := range fields {
			name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
			doc := d.Fields[i]
			if doc.Name != name {
				t.Errorf("field %d of %s is %s, documented is %s", i, typ, name, doc.Name)
			}
			if doc.Default == "" || !strings.HasSuffix(doc.Text, ".") && !strings.HasSuffix(doc.Text, "…") {
				t.Errorf("%s.%s needs a default and a sentence: %q, %q", typ, name, doc.Default, doc.Text)
			}
			visit(f.Type)
		}
	}
	visit(reflect.TypeFor[gen.Spec]())
	for typ := range docs {
		if !visited[typ] {
			t.Errorf("%s is documented but not part of a spec", typ)
		}
	}
}

// describeSpec sets the descriptions in the schema of specs.
func describeSpec(t *testing.T, s *jsonschema.Schema) {
	t.Helper()
	for _, d := range readSpecDocs(t) {
		at := s
		for _, name := range strings.FieldsFunc(d.Path, func(r rune) bool { return r == '.' }) {
			element := strings.HasSuffix(name, "[]")
			switch p := at.Properties[strings.TrimSuffix(name, "[]")]; {
			case name == "*":
				at = at.AdditionalProperties
			case element:
				at = p.Items
			default:
				at = p
			}
			if name, ok := strings.CutPrefix(at.Ref, "#/$defs/"); ok {
				at = s.Defs[name]
			}
		}
		for _, f := range d.Fields {
			p := at.Properties[f.Name]
			if p == nil {
				t.Fatalf("the schema of %s has no field %s", d.Path, f.Name)
			}
			p.Description = f.Text
		}
	}
	// A component is a distribution with a weight, and has its own copy of the schema.
	for name, p := range s.Defs["distribution"].Properties {
		s.Defs["component"].Properties[name].Description = p.Description
	}
}

// Every YAML example on the page is valid. Examples of fields are tried in a spec with one client.
func TestSpecExamples(t *testing.T) {
	_, example, _ := strings.Cut(readIntro(t), "```yaml\n")
	example, _, _ = strings.Cut(example, "```")
	checkSpec(t, "the introduction", example)
	for _, d := range readSpecDocs(t) {
		if d.Example == "" {
			continue
		}
		field, _, _ := strings.Cut(d.Example, ":")
		top := "version: \"2\"\naggregate_rate: 10\nhorizon: 100000000\nrequests: 20\n"
		client := map[string]string{
			"arrival":             "{process: poisson}",
			"input_distribution":  "{type: constant, params: {value: 100}}",
			"output_distribution": "{type: constant, params: {value: 10}}",
		}
		if field == "agentic" {
			delete(client, "input_distribution")
			delete(client, "output_distribution")
		}
		delete(client, field)
		text := "clients:\n  - id: a\n    rate_fraction: 1\n"
		for _, name := range []string{"arrival", "input_distribution", "output_distribution"} {
			if value, ok := client[name]; ok {
				text += "    " + name + ": " + value + "\n"
			}
		}
		if strings.HasPrefix(d.Path, "clients[]") {
			text += "    " + strings.ReplaceAll(d.Example, "\n", "\n    ") + "\n"
		} else {
			top += d.Example + "\n"
		}
		checkSpec(t, d.Path, top+text)
	}
}

// checkSpec checks that a spec generates a workload.
func checkSpec(t *testing.T, where, spec string) {
	t.Helper()
	warn := func(text string) { t.Errorf("the example of %s: warning: %s", where, text) }
	err := gen.Run(t.Context(), strings.NewReader(spec), io.Discard, gen.Options{Spec: "-", Warn: warn})
	if err != nil {
		t.Errorf("the example of %s: %v\n%s", where, err, spec)
	}
}
