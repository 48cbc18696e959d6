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

	"blis/pkg/cluster"
	"blis/pkg/diff"
	"blis/pkg/dist"
	"blis/pkg/fitness"
	"blis/pkg/gen"
	"blis/pkg/hardware"
	"blis/pkg/metrics"
	"blis/pkg/plan"
	"blis/pkg/policy"
	"blis/pkg/scale"
	"blis/pkg/stream"
	"blis/pkg/summarize"
	"blis/pkg/sweep"
	"blis/schemas"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"
)

var update = flag.Bool("update", false, "rewrite the schemas")

const suffix = ".schema.json"

// records are the objects that are whole records.
func records() []*stream.Object {
	return slices.DeleteFunc(slices.Clone(stream.Objects),
		func(o *stream.Object) bool { return o.Fields[0].Name != "kind" })
}

// generate makes the schema of o from its Go type and its table of fields.
func generate(t *testing.T, o *stream.Object) *jsonschema.Schema {
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
	at := slices.IndexFunc(stream.Objects, func(o *stream.Object) bool { return o.Type == typ })
	if at < 0 {
		t.Fatalf("%s is not among stream.Objects", typ)
	}
	o := stream.Objects[at]
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
			of.Minimum, of.Maximum = jsonschema.Ptr(float64(f.Min)), jsonschema.Ptr(float64(f.Max))
		}
		for _, v := range f.OneOf {
			of.Enum = append(of.Enum, v)
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
	{"hardware", "A file of the catalog: GPUs, and measured latency coefficients.", reflect.TypeFor[hardware.File](),
		true},
	{"policies", "A bundle of policies (blis-sim -p).", reflect.TypeFor[policy.Bundle](), true},
	{"spec", "A workload spec of blis-gen.", reflect.TypeFor[gen.Spec](), true},
	{"plan", "The fleets among which blis-sim --plan searches, and the limits.", reflect.TypeFor[plan.File](), true},
	{"grid", "A grid of runs (blis-sim --sweep).", reflect.TypeFor[sweep.Grid](), true},
	{"fitness", "A fitness file of blis-summarize.", reflect.TypeFor[fitness.Spec](), true},
}

// all makes every schema, by its name.
func all(t *testing.T) map[string]*jsonschema.Schema {
	t.Helper()
	made := map[string]*jsonschema.Schema{}
	for _, o := range records() {
		made[o.Name] = generate(t, o)
	}
	for _, o := range others {
		s, err := jsonschema.ForType(o.of, &recursive)
		if err != nil {
			t.Fatal(err)
		}
		if o.file {
			s.Defs = policyDefs(t, s)
			if o.of == reflect.TypeFor[gen.Spec]() {
				s.Defs = specDefs(t)
			}
		}
		simplify(s, o.file)
		if o.of == reflect.TypeFor[gen.Spec]() {
			describeSpec(t, s)
		}
		s.Schema, s.Title, s.Description = "https://json-schema.org/draft/2020-12/schema", o.name, o.doc
		made[o.name] = s
	}
	for _, a := range fitness.Aggregates {
		of := made["fitness"].Properties["aggregate"]
		of.Enum = append(of.Enum, a.Name)
	}
	made["summary"] = summary(t)
	made["diff"] = compared(t, "diff", "The document of blis-diff --format json. Metrics are by their paths.",
		reflect.TypeFor[diff.Document]())
	made["ranking"] = compared(t, "ranking", "The document of blis-diff --rank --format json.",
		reflect.TypeFor[diff.Ranking]())
	return made
}

// compared is the schema of a document of blis-diff, in which what is not known is
// absent. A value of a setting is any JSON.
func compared(t *testing.T, name, doc string, of reflect.Type) *jsonschema.Schema {
	t.Helper()
	metric, err := jsonschema.For[diff.Metric](nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := jsonschema.ForType(of, &jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[diff.Metrics]():    {Type: "object", AdditionalProperties: metric},
		reflect.TypeFor[json.RawMessage](): {},
	}})
	if err != nil {
		t.Fatal(err)
	}
	simplify(s, false)
	s.Schema, s.Title, s.Description = "https://json-schema.org/draft/2020-12/schema", name, doc
	return s
}

// summary is the schema of the document of blis-summarize, in which what is not
// known is null.
func summary(t *testing.T) *jsonschema.Schema {
	t.Helper()
	tree, err := jsonschema.ForType(reflect.TypeFor[metrics.Raw](), &recursive)
	if err != nil {
		t.Fatal(err)
	}
	nullable(tree)
	tree.Description = "The tree of metrics, with all its places."
	options := jsonschema.ForOptions{
		TypeSchemas: map[reflect.Type]*jsonschema.Schema{reflect.TypeFor[metrics.WithNulls](): tree}}
	s, err := jsonschema.ForType(reflect.TypeFor[summarize.Document](), &options)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range s.Properties {
		if slices.Equal(p.Types, []string{"null", "array"}) {
			p.Type, p.Types = "array", nil
		}
	}
	s.Schema, s.Title, s.Description = "https://json-schema.org/draft/2020-12/schema", "summary",
		"The document of blis-summarize --format json."
	return s
}

// nullable has all properties be there, and what is no object or list be null where
// it is not known.
func nullable(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	if s.Type == "" && len(s.Types) == 2 {
		s.Type, s.Types = s.Types[1], nil
	}
	switch s.Type {
	case "object", "array":
	default:
		s.Type, s.Types = "", []string{"null", s.Type}
	}
	s.Required = slices.Clone(s.PropertyOrder)
	for _, p := range s.Properties {
		nullable(p)
	}
	nullable(s.Items)
	if s.AdditionalProperties != nil && s.Properties == nil {
		nullable(s.AdditionalProperties)
	}
}

// recursive are types that contain themselves: policies within policies,
// mixtures of mixtures; and those with a name in a table.
var recursive = jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
	reflect.TypeFor[dist.Arrival]():   {Ref: "#/$defs/arrival"},
	reflect.TypeFor[dist.Profile]():   {Ref: "#/$defs/load_profile"},
	reflect.TypeFor[gen.Behavior]():   {Ref: "#/$defs/behavior"},
	reflect.TypeFor[gen.Archetype]():  {Ref: "#/$defs/archetype"},
	reflect.TypeFor[dist.Spec]():      {Ref: "#/$defs/distribution"},
	reflect.TypeFor[dist.Component](): {Ref: "#/$defs/component"},
	reflect.TypeFor[policy.Spec]():    {Ref: "#/$defs/policy"},
	reflect.TypeFor[policy.Node]():    {Ref: "#/$defs/node"},
	reflect.TypeFor[scale.Delay]():    {AnyOf: []*jsonschema.Schema{{Type: "string"}, {Type: "object"}}},
}}

// policyDefs are the schemas of these, nil if s does not refer to them. The name
// of a policy is one that some stage has; a node may be a bare verdict or number.
func policyDefs(t *testing.T, s *jsonschema.Schema) map[string]*jsonschema.Schema {
	t.Helper()
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), "#/$defs/policy") {
		return nil
	}
	type spec policy.Spec
	type node policy.Node
	defs := map[string]*jsonschema.Schema{}
	for name, of := range map[string]reflect.Type{"policy": reflect.TypeFor[spec](), "node": reflect.TypeFor[node]()} {
		if defs[name], err = jsonschema.ForType(of, &recursive); err != nil {
			t.Fatal(err)
		}
		simplify(defs[name], true)
	}
	for _, e := range policy.Entries() {
		if kind := defs["policy"].Properties["type"]; e.Stage != "scorer" && !slices.Contains(kind.Enum, any(e.Name)) {
			kind.Enum = append(kind.Enum, e.Name)
		}
	}
	defs["node"] = &jsonschema.Schema{
		AnyOf: []*jsonschema.Schema{
			defs["node"],
			{Type: "number"},
			{Type: "boolean"},
			{Type: "string", Enum: []any{"admit", "reject", "delay"}},
		},
	}
	return defs
}

// specDefs are the schemas of those parts of specs that have a name from a table.
// A component is a distribution with a weight.
func specDefs(t *testing.T) map[string]*jsonschema.Schema {
	t.Helper()
	type length dist.Spec
	type arrival dist.Arrival
	type profile dist.Profile
	type behavior gen.Behavior
	type archetype gen.Archetype
	defs := map[string]*jsonschema.Schema{}
	for _, d := range []struct {
		name, choice string
		of           reflect.Type
		choices      []string
	}{
		{"distribution", "type", reflect.TypeFor[length](), dist.Lengths.Names()},
		{"arrival", "process", reflect.TypeFor[arrival](), dist.Arrivals.Names()},
		{"load_profile", "type", reflect.TypeFor[profile](), dist.Profiles.Names()},
		{"behavior", "type", reflect.TypeFor[behavior](), gen.Behaviors.Names()},
		{"archetype", "typical_prompt_size", reflect.TypeFor[archetype](), gen.PromptSizes.Names()},
	} {
		s, err := jsonschema.ForType(d.of, &recursive)
		if err != nil {
			t.Fatal(err)
		}
		simplify(s, true)
		for _, name := range d.choices {
			s.Properties[d.choice].Enum = append(s.Properties[d.choice].Enum, name)
		}
		defs[d.name] = s
	}
	component := defs["distribution"].CloneSchemas()
	component.Properties["weight"] = &jsonschema.Schema{Type: "number"}
	component.PropertyOrder = append([]string{"weight"}, component.PropertyOrder...)
	defs["component"] = component
	return defs
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
	if s.Ref != "" { // of a pointer, which may be null in Go only
		s.Types = nil
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
			t.Errorf("%s differs from the types (go test ./schemas -update rewrites it):\n%s", name, diff)
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

// TestConceptsListPolicies compares the table of policies in docs with the registry.
func TestConceptsListPolicies(t *testing.T) {
	const name = "../docs/concepts.md"
	page, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	const from, to = "<!-- policies: written by go test ./schemas -update -->\n", "<!-- end -->"
	before, rest, found := strings.Cut(string(page), from)
	have, after, closed := strings.Cut(rest, to)
	if !found || !closed {
		t.Fatalf("%s has no place for the table of policies", name)
	}
	want := policyTable()
	if *update {
		if err := os.WriteFile(name, []byte(before+from+want+to+after), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("%s differs from the registry of policies (go test ./schemas -update rewrites it):\n%s", name, diff)
	}
}

// policyTable has a row for each stage; * marks deliberately bad policies.
func policyTable() string {
	text := "| stage | policies |\n|---|---|\n"
	stage := ""
	for _, e := range policy.Entries() {
		separator := ", "
		if e.Stage != stage {
			if stage != "" {
				text += " |\n"
			}
			what := e.Stage
			if what == "scorer" {
				what = "routing: scorers of weighted"
			}
			switch what {
			case policy.StageLLMD:
				what = "routing: plugins of llm-d"
			case policy.StageDetector, policy.StageUsageLimit:
				what = "flow control: " + what
			}
			stage, separator = e.Stage, "| "+what+" | "
		}
		text += separator + "`" + e.Name + "`"
		if e.Pathological {
			text += "*"
		}
	}
	return text + " |\n"
}

// sample is a stream with every kind of record in it, each once with all it
// may have and once with no more than it must.
func sample(t *testing.T) []string {
	t.Helper()
	never := stream.Outcome{
		ID: "r", State: stream.StateRejected, InputTokens: 1, OutputTokens: 1, Replica: stream.NoIndex,
		AdmittedUS: stream.Never, RoutedUS: stream.Never,
		EnqueuedUS: stream.Never, ScheduledUS: stream.Never, FirstTokenUS: stream.Never, CompletedUS: stream.Never,
		EndedUS: stream.Never, ITLMaxUS: stream.Never,
	}
	never.ClearPrefill()
	unread := stream.NewSnapshot(5, "main", 0)
	ms := 1.5
	var b bytes.Buffer
	w := stream.NewWriter(&b, true)
	for _, err := range []error{
		w.Header(&stream.Header{Stream: stream.StreamWorkload}),
		w.Header(&stream.Header{
			Stream: stream.StreamRun, SpecDigest: "d", Shard: &stream.Shard{Part: 1, Of: 2, By: "tenant"},
			SLOClasses: []stream.SLOClass{{Name: "batch", Tier: "sheddable"},
				{Name: "chat", Tier: "standard", Targets: stream.Targets{TTFTMS: 1, TPOTMS: 2, E2EMS: 3}}},
			Run: &stream.RunHeader{Trace: "full", Workload: stream.Source{Tool: "t", SpecDigest: "d",
				Shard: &stream.Shard{Part: 1, Of: 2, By: "session"}},
				Config: map[string]any{"version": 1}},
			Recording: &stream.RecordingHeader{Clock: "server", Arrivals: true, Model: "m", GPU: "g", Engine: "e",
				TensorParallelSize: 2, Replicas: 1, TargetRPS: 0.5},
		}),
		w.Request(&stream.Request{ID: "r", InputTokens: 1, OutputTokens: 1, DeadlineUS: stream.Never}),
		w.Request(&stream.Request{
			ID: "r", InputTokens: 9, OutputTokens: 1, Prompt: []stream.Segment{{ID: "a", Tokens: 3,
				Media: stream.MediaImage}},
			Tenant: "t", SLOClass: "chat", Model: "m", Adapter: "a", Grammar: "g", Session: "s", Turn: 1,
			Priority: -5, DeadlineUS: 5, PredictedOutputTokens: 2,
			Stop: stream.StopEOS, DraftAcceptance: new(0.5),
			Retry: &stream.Retry{On: stream.RetryStates(), BackoffUS: []int64{5, 7}},
		}),
		w.Session(&stream.Session{ID: "s", UntilUS: stream.Never,
			Steps: []stream.SessionStep{{ID: "a", Extends: stream.NoIndex, InputTokens: 1, OutputTokens: 1}}}),
		w.Session(&stream.Session{
			ID: "s", ArrivalUS: 1, Tenant: "t", SLOClass: "chat", Model: "m", Adapter: "a", Workflow: "w", UntilUS: 9,
			Priority: 2, Persistent: true, Steps: []stream.SessionStep{
				{ID: "a", Extends: stream.NoIndex, InputTokens: 9, OutputTokens: 1,
					Prompt: []stream.Segment{{ID: "a", Tokens: 3, Media: stream.MediaVideo}}},
				{ID: "b", After: []stream.Index{0}, Tool: "t", LatencyUS: 1, OutputTokens: 1, Extends: stream.NoIndex},
				{ID: "c", Step: "c", Iteration: 1, After: []stream.Index{1}, DelayUS: 1, Model: "n", InputTokens: 9,
					OutputTokens: 1, KeepTokens: 2, TimeoutUS: 1, PredictedOutputTokens: 2, Stop: stream.StopEOS,
					DraftAcceptance: new(0.5),
					Retry:           &stream.Retry{On: []string{stream.StateFailed}, BackoffUS: []int64{0}}},
			},
		}),
		w.Decision(&stream.Decision{ID: "d", Stage: "routing", Request: "r", Deployment: "main", Score: -0.5,
			Candidates: 4, Tied: 2, Reason: "x", Rule: "routing.score",
			ExpectedCachedTokens: 16, Scorers: []string{"queue-depth"},
			Considered: []stream.Candidate{{Deployment: "main", Terms: []float64{0.5}, AgeUS: 5}}}),
		w.Any(&stream.Preemption{Kind: stream.KindPreemption, Deployment: "main", Request: "r"}),
		w.Any(&stream.Transfer{Kind: stream.KindTransfer, ID: "t", Type: stream.TransferLoad, Deployment: "main",
			Request: "r", Blocks: 1, Bytes: 4096, From: stream.MemoryCPU, To: stream.MemoryGPU, EndedUS: 3,
			Incomplete: true}),
		w.Any(&stream.Transfer{Kind: stream.KindTransfer, ID: "e", Type: stream.TransferEncoded, Deployment: "main",
			PrefillReplica: stream.NoIndex, Request: "r", Tokens: 1, Bytes: 8192, From: stream.MemoryGPU,
			To: stream.MemoryCPU, EndedUS: 3}),
		w.Any(&stream.Scaling{Kind: stream.KindScaling, ID: "s", Stage: stream.StageAutoscale, Deployment: "main",
			Reason: "x"}),
		w.Any(&stream.ScalingChoice{Kind: stream.KindScalingChoice, Decision: "s", Deployment: "main",
			Change: stream.RemoveReplica, Considered: []stream.ScalingCandidate{
				{Deployment: "main", Replicas: 2, Score: &ms}, {Deployment: "b"}},
			Reason: "x"}),
		w.Any(&stream.ScalingRegret{Kind: stream.KindScalingRegret, Decision: "s", Deployment: "main", Current: 1,
			Desired: 2, Alternatives: []stream.ScalingAlternative{{Change: stream.ScalingLater, GPUS: -5,
				All: &stream.Difference{Completed: -1, E2EMS: -5}, Insensitive: true}},
			Sensitivity: &stream.ScalingSensitivity{Controls: 4, Completed: 1, E2EMS: 9}}),
		w.Any(&stream.ReplicaState{Kind: stream.KindReplicaState, Deployment: "main", State: stream.ReplicaStates[0]}),
		w.Any(&stream.Series{Kind: stream.KindSeries, Deployment: "main"}),
		w.Any(&unread),
		w.Any(&stream.Snapshot{Kind: stream.KindSnapshot, Deployment: "main", Cache: true}),
		w.Decision(&stream.Decision{ID: "e", Stage: "admission", Request: "r", Verdict: "delay", DelayUS: 5,
			Replica: stream.NoIndex}),
		w.Any(&stream.Regret{Kind: stream.KindRegret, Decision: "d", Request: "r", Stage: "routing",
			Method: "estimated", HindsightMS: &ms, AvoidableMS: &ms,
			Alternatives: []stream.Alternative{{Deployment: "main", Chosen: true, TTFTMS: &ms, E2EMS: &ms,
				ViewMS: &ms}}}),
		w.Any(&stream.Regret{Kind: stream.KindRegret, Decision: "d", Request: "r", Stage: "routing", Method: "exact",
			Alternatives: []stream.Alternative{{Verdict: "reject", Replica: stream.NoIndex,
				Own: &stream.Difference{SLOLost: 1}, All: &stream.Difference{Completed: -1, E2EMS: -5},
				Insensitive: true}},
			Sensitivity: &stream.Sensitivity{Controls: 8, Completed: 1, E2EMS: 9}}),
		w.Any(&stream.Anomaly{Kind: stream.KindAnomaly, Type: "slo_violation", Severity: 1, Count: 1,
			RequestIDs: []string{"r"}, Replica: stream.NoIndex, SLOClass: "chat", Text: "t"}),
		w.Any(&stream.Anomaly{Kind: stream.KindAnomaly, Type: "hol_blocking", EndUS: 5, Severity: 0.5, Count: 1,
			RequestIDs: []string{"r"}, Deployment: "main", Text: "t"}),
		w.Step(&stream.Step{Deployment: "main", EndUS: 5, DraftTokens: 3, Adapters: 2, AdapterLoadUS: 7,
			Masks: 2, MaskUS: 7, MaskWaitUS: 1, EncodedItems: 1, EncodedTokens: 9, EncoderUS: 4}),
		w.Outcome(&never),
		w.Outcome(&stream.Outcome{
			ID: "r", State: stream.StateCompleted, Reason: "x", Deployment: "main", Tenant: "t", SLOClass: "chat",
			LoadedTokens: &stream.LoadedTokens{CPU: 16}, TransferBlocks: 1, DecodeCachedTokens: 16,
			Model: "m", Adapter: "a", Grammar: "g", Session: "s", Step: "a",
			Iteration: 1, Decision: "d", InputTokens: 1, OutputTokens: 1, GeneratedTokens: 1,
			ITLUS: [][2]int64{{5, 1}}, PreemptedUS: 5, SlotWaitUS: 1, BudgetWaitUS: 2, BlockWaitUS: 3,
			AdapterWaitUS: 4, GrammarWaitUS: 5, EncoderWaitUS: 5, Redirects: 1,
			RetryOf: "q", RetryUS: 5, Retried: true,
			SLOMet: stream.BoolPtr(true),
		}),
		w.Any(&stream.SessionOutcome{Kind: stream.KindSessionOutcome, ID: "s", State: stream.StateUnfinished,
			CompletedUS: stream.Never}),
		w.Any(&stream.SessionOutcome{
			Kind: stream.KindSessionOutcome, ID: "s", State: stream.StateBroken, Step: "a", Reason: "deadline",
			Tenant: "t", SLOClass: "chat", Workflow: "w",
			Calls: 2, Offered: 2, Completed: 1, Tools: 1, ToolUS: 1, CriticalUS: 1, Parallel: 2,
			ParallelCompleted: 1, Iterations: 1, SLOMet: stream.BoolPtr(false),
		}),
		w.Any(&stream.ErrorRecord{Kind: stream.KindError, Tool: "t", Msg: "m"}),
		w.Any(&stream.ErrorRecord{Kind: stream.KindError, Tool: "t", File: "f", Line: 1, Col: 1, Msg: "m"}),
		w.Any(&stream.End{Kind: stream.KindEnd}),
		w.End(&stream.End{Requests: &stream.Counts{Offered: 1, Retries: 1}, WorkloadDigest: "d"}),
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
		if of[stream.KindRequest].Validate(v) == nil {
			t.Errorf("taken: %s", line)
		}
		r := stream.NewReader(strings.NewReader(line))
		if r.Next() && r.Request(new(stream.Request)) == nil {
			t.Errorf("the reader takes %s", line)
		}
	}
}
