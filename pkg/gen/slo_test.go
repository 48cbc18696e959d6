package gen

import (
	"slices"
	"strings"
	"testing"

	"blis/pkg/stream"
)

func sloOptions(t *testing.T, o Options, texts ...string) (Options, *[]string) {
	t.Helper()
	warnings := &[]string{}
	o.Warn = func(text string) { *warnings = append(*warnings, text) }
	for _, text := range texts {
		var s SLO
		if err := s.UnmarshalText([]byte(text)); err != nil {
			t.Fatal(err)
		}
		o.SLO = append(o.SLO, s)
	}
	return o, warnings
}

// TestSLO: requests without a class get the first one, and classes the targets; tier and priority are those of the
// predefined class, and standard for others.
func TestSLO(t *testing.T) {
	const trace = "arrival_s,input_tokens,output_tokens\n0,10,5\n1,20,6\n"
	o, warnings := sloOptions(t, Options{Import: []Import{{"csv", "-"}}}, "mine:ttft=500ms,tpot=20ms", "batch:e2e=1m")
	header, list := requests(t, trace, o)
	want := []stream.SLOClass{
		{Name: "mine", Tier: "standard", Priority: 50, Targets: stream.Targets{TTFTMS: 500, TPOTMS: 20}},
		{Name: "batch", Tier: "sheddable", Priority: 10, Targets: stream.Targets{E2EMS: 60000}}}
	if !slices.Equal(header.SLOClasses, want) {
		t.Errorf("classes %+v", header.SLOClasses)
	}
	if list[0].SLOClass != "mine" || list[1].SLOClass != "mine" {
		t.Errorf("requests are of %q and %q", list[0].SLOClass, list[1].SLOClass)
	}
	if len(*warnings) != 1 || !strings.Contains((*warnings)[0], "--slo batch:e2e=1m has no effect") {
		t.Errorf("warnings %q", *warnings)
	}
	o, _ = sloOptions(t, Options{Import: o.Import}, "mine:ttft=501ms,tpot=20ms", "batch:e2e=1m")
	if other, _ := requests(t, trace, o); other.SpecDigest == header.SpecDigest {
		t.Error("other targets have the same digest")
	}
}

// TestSLOOfSpec: a class of a spec keeps its tier and priority and has only the given targets.
func TestSLOOfSpec(t *testing.T) {
	plain, _ := requests(t, "", Options{Scenario: "mixed-slo", Requests: 50})
	second := plain.SLOClasses[1].Name
	o, warnings := sloOptions(t, Options{Scenario: "mixed-slo", Requests: 50}, second+":e2e=9s")
	header, _ := requests(t, "", o)
	for i, c := range header.SLOClasses {
		before := plain.SLOClasses[i]
		if c.Name == second {
			before.Targets = stream.Targets{E2EMS: 9000}
		}
		if c != before {
			t.Errorf("class %+v, want %+v", c, before)
		}
	}
	if len(*warnings) != 0 || header.SpecDigest == plain.SpecDigest {
		t.Errorf("warnings %q, digest %s", *warnings, header.SpecDigest)
	}
}

func TestInvalidSLO(t *testing.T) {
	for _, c := range [][2]string{
		{"x", "must be CLASS:ttft=500ms,tpot=50ms"}, {":ttft=1s", "must be CLASS:"}, {"a:", "must be CLASS:"},
		{"a:itl=1s", `unknown latency "itl"`}, {"a:ttft=5", "ttft must be a duration above 0 such as 500ms, is \"5\""},
		{"a:ttft=0s", "must be a duration above 0"}, {"a:ttft=1s,ttft=2s", "ttft is given twice"},
		{"a:e2e=2000000s", "must be a duration above 0"},
	} {
		var s SLO
		if err := s.UnmarshalText([]byte(c[0])); err == nil || !strings.Contains(err.Error(), c[1]) {
			t.Errorf("%s: %v", c[0], err)
		}
	}
}

// TestRateOfSpec: --rate is the aggregate_rate of a spec.
func TestRateOfSpec(t *testing.T) {
	_, list := requests(t, "", Options{Scenario: "sanity", Requests: 5000, Rate: 7})
	if rate := 4999 / (float64(list[4999].ArrivalUS-list[0].ArrivalUS) / 1e6); rate < 6.7 || rate > 7.3 {
		t.Errorf("%v requests a second", rate)
	}
	_, err := loadSpec(strings.NewReader(`{version: "2", clients: [{id: a, closed_loop: {concurrency: 1}}]}`),
		Options{Spec: "-", Rate: 7})
	if err == nil || !strings.Contains(err.Error(), "--rate replaces aggregate_rate, which this spec does not have") {
		t.Error(err)
	}
}
