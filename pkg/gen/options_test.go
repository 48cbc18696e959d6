package gen

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"blis/pkg/strictyaml"
	"blis/pkg/trace"
)

func TestScenariosAreValid(t *testing.T) {
	for _, e := range Scenarios {
		o := Options{Scenario: Scenario(e.Name), Warn: func(msg string) { t.Errorf("%s: %s", e.Name, msg) }}
		header, list := requests(t, "", o)
		checkInvariants(t, list)
		if n := describeScenario(t, e.Name, 0).Calls; n < 1000 || n > 12000 {
			t.Errorf("%s makes %d requests", e.Name, n)
		}
		for _, c := range header.SLOClasses {
			if c.Targets.TTFTMS+c.Targets.TPOTMS+c.Targets.E2EMS == 0 {
				t.Errorf("%s: class %s has no targets", e.Name, c.Name)
			}
		}
		if len(header.SLOClasses) == 0 {
			t.Errorf("%s has no class", e.Name)
		}
	}
}

// The rate of the sanity scenario is 80 % of the default cluster's capacity, by the arithmetic in
// its comment.
func TestSanityRate(t *testing.T) {
	const (
		replicas, sequences  = 4, 256
		beta0, beta1, beta2  = 7200.0, 18.0, 34.5
		input, output, share = 512.0, 256.0, 0.8
	)
	step := beta0 + beta1*sequences*input/(output-1) + beta2*sequences // µs
	want := share * replicas * sequences / ((output - 1) * step / 1e6)
	l, err := loadSpec(nil, Options{Scenario: "sanity"})
	if err != nil {
		t.Fatal(err)
	}
	if got := l.spec.AggregateRate; got < want-0.01 || got > want+0.01 {
		t.Errorf("aggregate_rate is %g, want %.2f", got, want)
	}
	_, list := requests(t, "", Options{Scenario: "sanity", Requests: 20000})
	in, out := 0.0, 0.0
	for _, r := range list {
		in += float64(r.InputTokens) / 20000
		out += float64(r.OutputTokens) / 20000
	}
	// Standard deviations of the means: 128/√20000 and 64/√20000, below 1.
	if in < input-4 || in > input+4 || out < output-2 || out > output+2 {
		t.Errorf("mean prompt %g tokens, mean output %g", in, out)
	}
}

// The output of --print-spec makes the same workload.
func TestPrintSpecReproducesWorkload(t *testing.T) {
	seed := uint64(77)
	for _, name := range Scenarios.Names() {
		for _, o := range []Options{{}, {Seed: &seed}, {Requests: 17}, {Seed: &seed, Requests: 17}} {
			o.Scenario = Scenario(name)
			want, err := generate("", o)
			if err != nil {
				t.Fatal(err)
			}
			o.PrintSpec = true
			printed, err := generate("", o)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(printed, "# ") {
				t.Errorf("%s: the comments are missing", name)
			}
			if got, err := generate(printed, Options{Spec: "-"}); err != nil || got != want {
				t.Errorf("%s: the printed spec makes a different workload (%v)", name, err)
			}
		}
	}
}

func TestList(t *testing.T) {
	for what, names := range map[string][]string{"scenarios": Scenarios.Names(), "importers": trace.Formats.Names()} {
		text, err := generate("", Options{List: what})
		if err != nil || strings.Count(text, "\n") != len(names) {
			t.Errorf("%s: %q, %v", what, text, err)
		}
		for _, name := range names {
			if !strings.Contains(text, " "+name+" ") {
				t.Errorf("the list of %s does not have %s", what, name)
			}
		}
	}
}

// Incompatible options are rejected and nothing is written.
func TestIncompatibleOptions(t *testing.T) {
	seed := uint64(1)
	azure := Import{"azure", "-"}
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{Spec: "x.yaml", Scenario: "chat"}, "give one of SPEC, --scenario and --import"},
		{Options{Spec: "x.yaml", Import: []Import{azure}}, "give one of SPEC, --scenario and --import"},
		{Options{Import: []Import{azure}, Seed: &seed}, "--seed has no effect on an import without --sample"},
		{Options{Import: []Import{azure}, Requests: 1}, "--requests and --print-spec are for specs"},
		{Options{Import: []Import{azure}, PrintSpec: true}, "--requests and --print-spec are for specs"},
		{Options{Limit: 1}, "are for --import only"},
		{Options{TimeScale: 1, PrintSpec: true}, "--time-scale has no effect with --print-spec"},
		{Options{BlockSize: 1}, "are for --import only"},
		{Options{Import: []Import{azure}, Rate: 1, TimeScale: 1}, "give one of --rate and --time-scale"},
		{Options{Import: []Import{azure}, BlockSize: 16}, "--block-size is only for formats with hash ids: mooncake"},
		{Options{Repeat: 2}, "are for --import only"},
		{Options{Sample: 0.5}, "are for --import only"},
		{Options{Import: []Import{azure, azure}}, "--import can read stdin only once"},
		{Options{Import: []Import{azure, {"weka", "x"}}, Rate: 1},
			"--rate cannot space arrivals of weka together with traces that have arrival times"},
		{Options{Import: []Import{{"weka", "x"}}, TimeScale: 1},
			"--time-scale has no effect on traces without arrival times (weka)"},
		{Options{Import: []Import{{"azur", "-"}}}, `unknown importer "azur"; did you mean "azure"?`},
		{Options{Scenario: "chta"}, `unknown scenario "chta"; did you mean "chat"?`},
	} {
		stream, err := generate("", c.o)
		if err == nil || !strings.Contains(err.Error(), c.want) || stream != "" {
			t.Errorf("%+v: %q, %v; want %s", c.o, stream, err, c.want)
		}
	}
}

func TestFlagValues(t *testing.T) {
	var (
		count    Count
		factor   Factor
		scenario Scenario
		share    Share
		imp      Import
		where    Filter
	)
	type flag interface{ UnmarshalText([]byte) error }
	for _, c := range []struct {
		flag       flag
		text, want string
	}{
		{&count, "12", ""}, {&count, "0", "must be an integer of at least 1"}, {&count, "-1", "of at least 1"},
		{&count, "1.5", "of at least 1"}, {&count, "", "of at least 1"},
		{&factor, "0.25", ""}, {&factor, "0", "must be a number above 0"}, {&factor, "-1", "above 0"},
		{&factor, "inf", "above 0"}, {&factor, "nan", "above 0"}, {&factor, "x", "above 0"},
		{&share, "1", ""}, {&share, "0.5", ""}, {&share, "0", "must be a number above 0 and at most 1"},
		{&share, "1.1", "at most 1"}, {&share, "x", "at most 1"},
		{&scenario, "rag", ""}, {&scenario, "chta", `did you mean "chat"?`},
		{&where, "input_tokens > 1000", ""}, {&where, "input_token > 1", `did you mean "input_tokens"?`},
		{&where, "1", "true or false"},
		{&imp, "azure:a:b.csv", ""}, {&imp, "azure", "must be FORMAT:FILE"}, {&imp, "azure:", "must be FORMAT:FILE"},
		{&imp, "trace.csv", `must be FORMAT:FILE, is "trace.csv" (formats: azure, mooncake, `},
		{&imp, "x:y", "unknown importer"},
	} {
		err := c.flag.UnmarshalText([]byte(c.text))
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%T %q: %v; want %q", c.flag, c.text, err, c.want)
		}
	}
	if count != 12 || factor != 0.25 || scenario == "" || imp != (Import{"x", "y"}) {
		t.Errorf("read as %d, %g, %s, %v", count, factor, scenario, imp)
	}
}

func TestReadsStdin(t *testing.T) {
	for _, c := range []struct {
		o    Options
		want bool
	}{
		{Options{}, false}, {Options{Spec: "-"}, true}, {Options{Spec: "x"}, false},
		{Options{Import: []Import{{"azure", "-"}}}, true},
		{Options{Import: []Import{{"azure", "x"}}}, false}, {Options{Spec: "-", List: "scenarios"}, false},
	} {
		if c.o.ReadsStdin() != c.want {
			t.Errorf("%+v: %t", c.o, !c.want)
		}
	}
}

// The digest depends on the content of a spec, not on its formatting.
func TestSpecDigest(t *testing.T) {
	header := func(spec string, o Options) string {
		o.Spec = "-"
		h, _ := requests(t, spec, o)
		return h.SpecDigest
	}
	base := header(goodSpec, Options{})
	var where Filter
	if err := where.UnmarshalText([]byte("input_tokens > 0")); err != nil {
		t.Fatal(err)
	}
	if header(goodSpec, Options{Where: where}) == base {
		t.Error("a filter does not change the digest")
	}
	if spaced := header(strings.ReplaceAll(goodSpec, ", ", ",   "), Options{}); spaced != base {
		t.Error("white space changes the digest")
	}
	if overridden, written := header(goodSpec, Options{Requests: 4}),
		header(strings.Replace(goodSpec, "requests: 5", "requests: 4", 1), Options{}); overridden == base ||
		overridden != written {
		t.Error("--requests differs from the same value in the spec")
	}
}

// A missing file is a system error, not a spec error.
func TestMissingFiles(t *testing.T) {
	for _, o := range []Options{{Spec: "no/such.yaml"}, {Import: []Import{{"azure", "no/such.csv"}}}} {
		var out bytes.Buffer
		err := Run(context.Background(), nil, &out, o)
		if _, isSpec := err.(*strictyaml.Error); err == nil || isSpec || !strings.Contains(err.Error(), "no/such") ||
			out.Len() > 0 {
			t.Errorf("%v, %d bytes", err, out.Len())
		}
	}
}

// TestTimeScaleOfSpecs: the workload of a spec with --time-scale is that of an import of its workload with it, for
// requests with deadlines and for sessions.
func TestTimeScaleOfSpecs(t *testing.T) {
	withDeadlines := strings.Replace(goodSpec, "    slo_class: gold\n",
		"    slo_class: gold\n    deadline: {type: exponential, params: {mean: 1000000}}\n", 1)
	for _, c := range []struct {
		spec string
		o    Options
	}{
		{withDeadlines, Options{Spec: "-"}},
		{"", Options{Scenario: "chat", Requests: 60}},
		{"", Options{Scenario: "deep-research", Requests: 30}},
		{"", Options{Scenario: "mixed-slo", Requests: 60}},
	} {
		whole, err := generate(c.spec, c.o)
		if err != nil {
			t.Fatal(err)
		}
		if c.spec != "" && !strings.Contains(whole, "deadline_us") {
			t.Fatal("no request has a deadline")
		}
		for _, scale := range []Factor{0.5, 3} {
			scaled := c.o
			scaled.TimeScale = scale
			got, err := generate(c.spec, scaled)
			if err != nil {
				t.Fatal(err)
			}
			want, err := generate(whole, Options{Import: []Import{{"blis", "-"}}, TimeScale: scale})
			if err != nil {
				t.Fatal(err)
			}
			a, b := strings.Split(got, "\n"), strings.Split(want, "\n")
			if len(a) != len(b) || len(a) < 5 {
				t.Fatalf("%+v: %d and %d lines", c.o, len(a), len(b))
			}
			for i := 1; i < len(a)-2; i++ { // besides header and end
				if a[i] != b[i] {
					t.Fatalf("%+v x %v: line %d is\n%s\nnot\n%s", c.o, scale, i+1, a[i], b[i])
				}
			}
			if a[0] == strings.Split(whole, "\n")[0] {
				t.Errorf("%+v: the time scale does not change the header", c.o)
			}
		}
	}
}
