package schemas_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"io/fs"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"blis/pkg/catalog"
	"blis/pkg/cluster"
	"blis/pkg/gen"
	"blis/pkg/metrics"
	"blis/pkg/record"
	"blis/schemas"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"
)

var update = flag.Bool("update", false, "write the schemas anew")

const suffix = ".schema.json"

// records are the objects that are whole records.
func records() []*record.Object {
	return slices.DeleteFunc(slices.Clone(record.Objects), func(o *record.Object) bool { return o.Fields[0].Name != "kind" })
}

// generate makes the schema of o from its Go type and its table of fields.
func generate(t *testing.T, o *record.Object) *jsonschema.Schema {
	t.Helper()
	s, err := jsonschema.ForType(o.Type, nil)
	if err != nil {
		t.Fatal(err)
	}
	s.Schema = "https://json-schema.org/draft/2020-12/schema"
	s.Title = o.Name
	describe(t, s, o.Type)
	return s
}

// describe adds to s, the schema of an object of type typ, what the table of
// fields knows of it. Null has no place on the wire.
func describe(t *testing.T, s *jsonschema.Schema, typ reflect.Type) {
	t.Helper()
	at := slices.IndexFunc(record.Objects, func(o *record.Object) bool { return o.Type == typ })
	if at < 0 {
		t.Fatalf("%s is not among record.Objects", typ)
	}
	o := record.Objects[at]
	s.Description = o.Doc
	for i, f := range o.Fields {
		p, inner := s.Properties[f.Name], typ.Field(i).Type
		list := inner.Kind() == reflect.Slice
		if list || inner.Kind() == reflect.Pointer {
			p.Type, p.Types = p.Types[1], nil
			inner = inner.Elem()
		}
		of := p
		if list {
			of = p.Items
		}
		switch inner.Kind() {
		case reflect.Struct:
			describe(t, of, inner)
		case reflect.Array:
			of.Items.Minimum = jsonschema.Ptr(0.0)
		}
		if f.Name == "id" {
			p.MinLength = jsonschema.Ptr(1)
		}
		p.Description = f.Doc
		if f.Max > 0 {
			p.Minimum, p.Maximum = jsonschema.Ptr(float64(f.Min)), jsonschema.Ptr(float64(f.Max))
		}
		for _, v := range f.OneOf {
			p.Enum = append(p.Enum, v)
		}
	}
}

// others are the schemas of what has no table of fields: the metrics record,
// and the files that people write, where every field may be left out.
var others = []struct {
	name, doc string
	of        reflect.Type
	file      bool
}{
	{"metrics", "The metrics of a run.", reflect.TypeFor[metrics.Record](), false},
	{"cluster", "A cluster file of blis-sim.", reflect.TypeFor[cluster.Config](), true},
	{"hardware", "A file of the catalogue: GPUs, and coefficients that were measured.", reflect.TypeFor[catalog.File](), true},
	{"spec", "A workload spec of blis-gen.", reflect.TypeFor[gen.Spec](), true},
}

// all makes every schema, by its name.
func all(t *testing.T) map[string]*jsonschema.Schema {
	t.Helper()
	made := map[string]*jsonschema.Schema{}
	for _, o := range records() {
		made[o.Name] = generate(t, o)
	}
	for _, o := range others {
		s, err := jsonschema.ForType(o.of, nil)
		if err != nil {
			t.Fatal(err)
		}
		simplify(s, o.file)
		s.Schema, s.Title, s.Description = "https://json-schema.org/draft/2020-12/schema", o.name, o.doc
		made[o.name] = s
	}
	return made
}

// simplify takes null out of s, which is on no wire, and what is required out
// of the schema of a file.
func simplify(s *jsonschema.Schema, file bool) {
	if s == nil {
		return
	}
	if len(s.Types) == 2 && s.Types[0] == "null" {
		s.Type, s.Types = s.Types[1], nil
	}
	if file {
		s.Required = nil
	}
	for _, p := range s.Properties {
		simplify(p, file)
	}
	simplify(s.Items, file)
	simplify(s.AdditionalProperties, file)
}

func TestSchemasMatchTypes(t *testing.T) {
	var want []string
	for name, schema := range all(t) {
		name += suffix
		want = append(want, name)
		text, err := json.MarshalIndent(schema, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, '\n')
		if *update {
			if err := os.WriteFile(name, text, 0o666); err != nil {
				t.Fatal(err)
			}
			continue
		}
		have, err := schemas.Files.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(have), string(text)); diff != "" {
			t.Errorf("%s is not what the types say (go test ./schemas -update writes it anew):\n%s", name, diff)
		}
	}
	slices.Sort(want)
	have, err := fs.Glob(os.DirFS("."), "*"+suffix)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("-kinds +files:\n%s", diff)
	}
}

// sample is a stream with every kind of record in it, each once with all it
// may have and once with no more than it must.
func sample(t *testing.T) []string {
	t.Helper()
	never := record.Outcome{
		ID: "r", State: record.StateRejected, InputTokens: 1, OutputTokens: 1, Replica: record.Nowhere, AdmittedUS: record.Never, RoutedUS: record.Never,
		EnqueuedUS: record.Never, ScheduledUS: record.Never, FirstTokenUS: record.Never, CompletedUS: record.Never, ITLMaxUS: record.Never,
	}
	var b bytes.Buffer
	w := record.NewWriter(&b, true)
	for _, err := range []error{
		w.Header(&record.Header{Stream: record.StreamWorkload}),
		w.Header(&record.Header{
			Stream: record.StreamRun, SpecDigest: "d",
			SLOClasses: []record.SLOClass{{Name: "batch", Tier: "sheddable"}, {Name: "chat", Tier: "standard", Targets: record.Targets{TTFTMS: 1, TPOTMS: 2, E2EMS: 3}}},
			Run:        &record.RunHeader{Trace: "full", Workload: record.Source{Tool: "t", SpecDigest: "d"}, Config: map[string]any{"version": 1}},
		}),
		w.Request(&record.Request{ID: "r", InputTokens: 1, OutputTokens: 1, DeadlineUS: record.Never}),
		w.Request(&record.Request{
			ID: "r", InputTokens: 9, OutputTokens: 1, Prompt: []record.Segment{{ID: "a", Tokens: 3}},
			Tenant: "t", SLOClass: "chat", Model: "m", DeadlineUS: 5, PredictedOutputTokens: 2,
		}),
		w.Decision(&record.Decision{ID: "d", Stage: "routing", Request: "r", Deployment: "main", Score: -0.5, Candidates: 4}),
		w.Step(&record.Step{Deployment: "main", EndUS: 5}),
		w.Outcome(&never),
		w.Outcome(&record.Outcome{
			ID: "r", State: record.StateCompleted, Reason: "x", Deployment: "main", Tenant: "t", SLOClass: "chat", Model: "m", Session: "s", Step: "a",
			Iteration: 1, Decision: "d", InputTokens: 1, OutputTokens: 1, GeneratedTokens: 1, ITLUS: [][2]int64{{5, 1}}, SLOMet: record.Met(true),
		}),
		w.Any(&record.Fault{Kind: record.KindError, Tool: "t", Msg: "m"}),
		w.Any(&record.Fault{Kind: record.KindError, Tool: "t", File: "f", Line: 1, Col: 1, Msg: "m"}),
		w.Any(&record.End{Kind: record.KindEnd}),
		w.End(&record.End{Requests: &record.Counts{Offered: 1}, WorkloadDigest: "d"}),
		w.Close(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return strings.Split(strings.TrimSpace(b.String()), "\n")
}

// resolve reads the schemas as they are in the files.
func resolve(t *testing.T) map[string]*jsonschema.Resolved {
	t.Helper()
	of := map[string]*jsonschema.Resolved{}
	for _, o := range records() {
		text, err := schemas.Files.ReadFile(o.Name + suffix)
		if err != nil {
			t.Fatal(err)
		}
		s := new(jsonschema.Schema)
		if err := json.Unmarshal(text, s); err != nil {
			t.Fatal(err)
		}
		if of[o.Name], err = s.Resolve(nil); err != nil {
			t.Fatal(err)
		}
	}
	return of
}

func TestSchemasTakeWhatIsWritten(t *testing.T) {
	of := resolve(t)
	seen := map[string]map[string]bool{}
	for _, line := range sample(t) {
		var v map[string]any
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatal(err)
		}
		kind := v["kind"].(string)
		if err := of[kind].Validate(v); err != nil {
			t.Errorf("%s: %v", line, err)
		}
		if seen[kind] == nil {
			seen[kind] = map[string]bool{}
		}
		for name := range v {
			seen[kind][name] = true
		}
	}
	for _, o := range records() {
		for _, f := range o.Fields {
			if !seen[o.Name][f.Name] {
				t.Errorf("the sample has no %s with %s", o.Name, f.Name)
			}
		}
	}
}

func TestSchemasRefuse(t *testing.T) {
	of := resolve(t)
	const request = `{"kind":"request","id":"r","arrival_us":0,"input_tokens":1,"output_tokens":1}`
	for _, c := range []struct{ old, new string }{
		{`"kind":"request"`, `"kind":"outcome"`},
		{`"id":"r"`, `"id":""`},
		{`"id":"r",`, ``},
		{`"id":"r"`, `"id":"r","x":1`},
		{`"id":"r"`, `"id":"r","tenant":null`},
		{`"id":"r"`, `"id":"r","prompt":[{"id":"a"}]`},
		{`"id":"r"`, `"id":"r","prompt":[{"id":"a","tokens":0}]`},
		{`"arrival_us":0`, `"arrival_us":-1`},
		{`"arrival_us":0`, `"arrival_us":0.5`},
		{`"input_tokens":1`, `"input_tokens":0`},
		{`"input_tokens":1`, `"input_tokens":2147483648`},
	} {
		line := strings.Replace(request, c.old, c.new, 1)
		var v any
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatal(err)
		}
		if of[record.KindRequest].Validate(v) == nil {
			t.Errorf("taken: %s", line)
		}
		r := record.NewReader(strings.NewReader(line))
		if r.Next() && r.Request(new(record.Request)) == nil {
			t.Errorf("the reader takes %s", line)
		}
	}
}
