package report

import (
	"bytes"
	"cmp"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"blis/pkg/attribution"
	"blis/pkg/fitness"
	"blis/pkg/metrics"
	"blis/pkg/stream"

	"pgregory.net/rapid"
)

// names are what workloads and policies may call things.
var names = rapid.OneOf(
	rapid.SampledFrom([]string{"", "critical", "batch", "t1", "admission.root.then", "token", "my password", "token: abc", "TOKEN=x y", "password=1", "# heading", "```", "a\nb\n[LOSS]", "caf\u00e9 \u2028", `a"b\c`,
		"0123456789abcdef0123456789abcdef", "sk-0123456789abcdef0123456789abcdef0123456789abcdef", strings.Repeat("long-name-", 20)}),
	rapid.StringN(0, 60, -1),
)

// drawRun is a run of anything, told by anybody.
func drawRun(t *rapid.T) *Input {
	config := map[string]any{"deployments": []any{map[string]any{"id": names.Draw(t, "deployment"), "model": "m", "replicas": 3, "engine": map[string]any{"block_size": 16}}}, "policies": map[string]any{}}
	for _, stage := range []string{"admission", "priority", "routing", "scheduler", "preemption"} {
		config["policies"].(map[string]any)[stage] = map[string]any{"type": names.Draw(t, stage)}
	}
	deployment := config["deployments"].([]any)[0].(map[string]any)["id"].(string)
	targets := stream.Targets{TTFTMS: rapid.SampledFrom([]float64{0, 0.5, 2}).Draw(t, "ttft target"), E2EMS: rapid.SampledFrom([]float64{0, 5}).Draw(t, "e2e target")}
	classes := []string{names.Draw(t, "class"), names.Draw(t, "class"), names.Draw(t, "class")}
	tenants := []string{names.Draw(t, "tenant"), names.Draw(t, "tenant"), names.Draw(t, "tenant")}
	h := &stream.Header{Stream: stream.StreamRun, Tool: "blis-sim", Version: "0.1.0", Run: &stream.RunHeader{Key: stream.SimulationKey{Policy: strings.Repeat("0123456789abcdef", 4)}, ConfigDigest: strings.Repeat("0123456789abcdef", 4), Config: config}}
	for _, c := range classes {
		h.SLOClasses = append(h.SLOClasses, stream.SLOClass{Name: c, Targets: targets, Priority: float64(len(c))})
	}
	in := attribution.New(h)
	m := metrics.New(h.SLOClasses)
	called := rapid.SliceOfN(names, 4, 4).Draw(t, "names")
	dice := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
	for i := range rapid.IntRange(0, 150).Draw(t, "requests") {
		any := func() string { return called[dice.IntN(len(called))] }
		upTo := func(n int) stream.Micros { return stream.Micros(dice.IntN(n)) }
		at := upTo(20) * 1000
		o := stream.Outcome{ID: fmt.Sprint(any(), i), ArrivalUS: at, State: stream.StateRejected, Reason: stream.ReasonAdmission, EndedUS: at,
			Tenant: tenants[dice.IntN(3)], SLOClass: classes[dice.IntN(3)], InputTokens: 1 + int64(upTo(9000)), OutputTokens: 3,
			AdmittedUS: -1, RoutedUS: -1, EnqueuedUS: -1, ScheduledUS: -1, FirstTokenUS: -1, CompletedUS: -1, Replica: stream.Nowhere}
		if dice.IntN(10) == 0 {
			in.Decision(&stream.Decision{ID: fmt.Sprintf("dec-a%06d", i), Stage: stream.StageAdmission, Request: o.ID, Verdict: "reject", Rule: any(), AtUS: at})
		} else {
			served(&o, deployment, i, upTo)
			in.Decision(&stream.Decision{ID: o.Decision, Stage: stream.StageRouting, Request: o.ID, AtUS: at, Deployment: deployment, Replica: o.Replica, Candidates: 3, Rule: any(), Reason: any(), Scorers: []string{any()},
				Considered: []stream.Candidate{{Deployment: deployment, Replica: o.Replica, QueueDepth: 3, AgeUS: int64(upTo(400_000)), Terms: []float64{1}}, {Deployment: deployment, Replica: (o.Replica + 1) % 3}}})
			if dice.IntN(2) == 0 {
				x := float64(upTo(1000))
				in.Regret(&stream.Regret{Decision: o.Decision, Request: o.ID, Stage: stream.StageRouting, Method: stream.MethodEstimated, HindsightMS: &x, AvoidableMS: &x,
					Alternatives: []stream.Alternative{{Deployment: deployment, Replica: 1, E2EMS: &x}}})
			}
		}
		o.SLOMet = metrics.SLOMet(&o, targets)
		in.Outcome(&o, false)
		m.Add(&o)
	}
	for range rapid.IntRange(0, 9).Draw(t, "anomalies") {
		in.Anomaly(&stream.Anomaly{Type: "slo_violation", Severity: 0.5, SLOClass: names.Draw(t, "of"), Text: names.Draw(t, "text"), Replica: stream.Nowhere})
	}
	raw := m.Raw()
	in.Metrics(raw)
	input := &Input{Header: h, WorkloadDigest: strings.Repeat("f", 64), Metrics: raw, Analyzer: in, Findings: in.Find(), Warnings: []string{names.Draw(t, "warning")}}
	if rapid.Bool().Draw(t, "fitness") {
		input.Fitness = &fitness.Result{Score: 0.25, Terms: []fitness.Term{{Name: names.Draw(t, "term"), Expr: "1.0"}}, Gates: []fitness.Gate{{Name: "g", Expr: names.Draw(t, "gate"), Detail: names.Draw(t, "detail")}}}
	}
	return input
}

// served makes o one that completes.
func served(o *stream.Outcome, deployment string, i int, upTo func(int) stream.Micros) {
	o.State, o.Reason, o.EndedUS = stream.StateCompleted, "", stream.Never
	o.Deployment, o.Replica, o.Decision = deployment, stream.Index(upTo(3)), fmt.Sprintf("dec-%06d", i)
	o.AdmittedUS, o.RoutedUS, o.EnqueuedUS = o.ArrivalUS, o.ArrivalUS, o.ArrivalUS
	o.ScheduledUS = o.ArrivalUS + upTo(4000)
	o.FirstTokenUS = o.ScheduledUS + upTo(4000)
	o.CompletedUS = o.FirstTokenUS + upTo(4000)
	o.ExpectedCachedTokens, o.GeneratedTokens = 512, 3
}

func drawOptions(t *rapid.T) *Options {
	o := &Options{Strategy: rapid.SampledFrom(append(Strategies.Names(), "")).Draw(t, "strategy"), MaxTokens: rapid.SampledFrom([]int{0, MinTokens, 400, MaxTokens}).Draw(t, "tokens"),
		Examples: rapid.IntRange(0, MaxExamples).Draw(t, "examples"), Component: rapid.SampledFrom(append(attribution.Components.Names(), "")).Draw(t, "component"),
		Focus: rapid.SliceOfN(rapid.SampledFrom(attribution.Parts.Names()), 0, 2).Draw(t, "focus"), Hints: rapid.Bool().Draw(t, "hints")}
	if o.Component != "" {
		o.Strategy = ""
	}
	return o
}

// What frameworks replace in prompts.
var filters = []*regexp.Regexp{regexp.MustCompile(`(?i)token[=:]\s*\S+`), regexp.MustCompile(`(?i)password[=:]\s*\S+`), regexp.MustCompile(`[A-Za-z0-9]{32,}`), regexp.MustCompile(`sk-[A-Za-z0-9]{48}`)}

// harmless holds a text to what may be fed to anybody.
func harmless(t *rapid.T, text []byte) {
	for _, f := range filters {
		if found := f.Find(text); found != nil {
			t.Fatalf("a filter takes out %q of\n%s", found, text)
		}
	}
	for i, c := range text {
		if c > '~' || c < ' ' && c != '\n' {
			t.Fatalf("character %q at %d of\n%s", c, i, text)
		}
	}
	for _, line := range strings.Split(string(text), "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), "#") || strings.Contains(line, "```") {
			t.Fatalf("line %q of\n%s", line, text)
		}
	}
}

func TestTextKeepsItsLimits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in, o := drawRun(t), drawOptions(t)
		if err := o.Validate(); err != nil {
			t.Fatal(err)
		}
		text := Text(in, o)
		if again := Text(in, o); !bytes.Equal(text, again) {
			t.Fatalf("twice the same input gives\n%s\nand\n%s", text, again)
		}
		harmless(t, text)
		answered(t, in, string(text))
		limit := o.MaxTokens
		if limit == 0 {
			limit = DefaultTokens
		}
		if n := Tokens(text); n > limit {
			t.Fatalf("%d tokens, not at most %d:\n%s", n, limit, text)
		}
		all := Sections(in, o)
		for i, s := range all {
			if len(s.Text) > MaxSectionLength || i > 0 && !strings.HasPrefix(s.Text, "["+s.Name+"]\n") || !strings.HasSuffix(s.Text, "\n") {
				t.Fatalf("section %s of %d characters:\n%s", s.Name, len(s.Text), s.Text)
			}
		}
		// What stands there is whole sections from the beginning, and what is left out is named.
		found := false
		for n := cmp.Or(o.Examples, usualExamples); n > 0; n-- {
			for _, brief := range []bool{false, true} {
				o.Examples, o.brief = n, brief
				found = found || cutFrom(string(text), Sections(in, o))
			}
		}
		if !found {
			t.Fatalf("not the first sections:\n%s", text)
		}
	})
}

// answered asks what the text says can be asked.
func answered(t *rapid.T, in *Input, text string) {
	for _, line := range strings.Split(text, "\n") {
		what, ok := strings.CutPrefix(line, "blis-summarize --explain ")
		if !ok {
			continue
		}
		var q attribution.Query
		if err := q.UnmarshalText([]byte(strings.TrimSuffix(what, " RUN"))); err != nil {
			t.Fatal(err)
		}
		in.Analyzer.SetQuery(&q)
		if _, err := in.Analyzer.Detail(); !q.IsWindow() && err != nil {
			t.Fatalf("%s: %v", line, err)
		}
	}
}

// Nobody knows what a file was to be that cannot be read; one that can is of one kind.
func TestExamplesOfWhatIsMissing(t *testing.T) {
	for _, c := range []struct {
		fault    stream.Fault
		examples int
	}{{stream.Fault{Tool: "blis-sim", File: "/nosuch.yaml", Msg: "no such file or directory"}, 2}, {stream.Fault{Tool: "blis-sim", File: "a.yaml", Line: 1, Msg: "unknown scheduler"}, 1}} {
		if text := string(Failure(nil, &c.fault)); strings.Count(text, "[EXAMPLE]") != c.examples || strings.Contains(text, "a cluster file (-c)") != (c.examples == 2) {
			t.Errorf("%+v:\n%s", c.fault, text)
		}
	}
}

// A percentile of few samples is marked where it stands.
func TestFewSamplesAreMarked(t *testing.T) {
	few, many := &metrics.Distribution{Count: 999, P99: 5}, &metrics.Distribution{Count: 1000, P99: 5}
	if p99(few) != "5.0?" || p99(many) != "5.0" {
		t.Errorf("%s and %s", p99(few), p99(many))
	}
}

// cutFrom reports whether text is the first of the sections and a line that names the
// others, or all of them.
func cutFrom(text string, all []Section) bool {
	for i, s := range all {
		rest, ok := strings.CutPrefix(text, s.Text)
		if !ok {
			var left []string
			for _, s := range all[i:] {
				left = append(left, s.Name)
			}
			return i > 0 && strings.HasPrefix(text, "[CUT] at ") && strings.HasSuffix(text, ": "+strings.Join(left, ", ")+"\n") && strings.Count(text, "\n") == 1
		}
		text = rest
	}
	return text == ""
}

// The first characters hold, in whole lines, how the run went, where it lost most and
// why.
func TestBeginningStandsAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in, o := drawRun(t), drawOptions(t)
		text := Text(in, o)
		if len(text) > StandsAlone && text[StandsAlone-1] != '\n' {
			t.Fatalf("the first %d characters do not end with a line:\n%s", StandsAlone, text)
		}
		lines := strings.SplitAfter(string(text[:min(len(text), StandsAlone)]), "\n")
		want := []string{"[blis-summary/1] ", "[HEADLINE]\n", "state: "}
		if in.Findings.Loss.Lost > 0 {
			want = append(want, "where: ")
			if len(in.Findings.Patterns) > 0 {
				want = append(want, "first cause: P1 "+in.Findings.Patterns[0].Condition)
			} else {
				want = append(want, "cause: ")
			}
		}
		for i, w := range want {
			if i >= len(lines) || !strings.HasPrefix(lines[i], w) {
				t.Fatalf("line %d does not begin with %q within %d characters of\n%s", i+1, w, StandsAlone, text)
			}
		}
	})
}

// Answers to questions are as harmless, and about what is there.
func TestExplainKeepsItsLimits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawRun(t)
		var q attribution.Query
		n := rapid.IntRange(0, 130).Draw(t, "which")
		text := rapid.SampledFrom([]string{fmt.Sprintf("dec-%06d", n), fmt.Sprint("t1", n), "0s:10ms", "5ms:1h"}).Draw(t, "question")
		if err := q.UnmarshalText([]byte(text)); err != nil {
			t.Fatal(err)
		}
		in.Analyzer.SetQuery(&q)
		answer, err := Explain(in, &Options{}, &q)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "--explain: ") {
				t.Fatal(err)
			}
			return
		}
		harmless(t, answer)
	})
}

// Each condition has advice, and no other name has.
func TestAdviceForEachCondition(t *testing.T) {
	for _, c := range attribution.Conditions {
		if advice[c.Name] == "" {
			t.Errorf("no advice for %s", c.Name)
		}
	}
	for name := range advice {
		if !slices.Contains(attribution.Conditions.Names(), name) {
			t.Errorf("advice for %s, which is no condition", name)
		}
	}
}

func TestOptions(t *testing.T) {
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{}, ""},
		{Options{Strategy: "issue-focused"}, `unknown --strategy "issue-focused"; did you mean "issue_focused"?`},
		{Options{Focus: []string{"queues"}}, `unknown --focus "queues"; did you mean "queue"?`},
		{Options{Component: "router"}, `unknown --component "router"`},
		{Options{Component: "routing", Strategy: "counterfactual"}, "--component is a text of its own; it does not go with --strategy counterfactual"},
		{Options{MaxTokens: 100}, "--max-tokens must be from 300 to 1500, is 100"},
		{Options{Examples: 6}, "--examples must be from 1 to 5, is 6"},
	} {
		if err := c.o.Validate(); (err == nil) != (c.want == "") || err != nil && !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%+v: %v", c.o, err)
		}
	}
}

// Of several runs the text says which one its questions are about.
func TestMoreSaysWhichRun(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawRun(t)
		in.Scenarios = []Scenario{{Name: "a.zst", Metrics: in.Metrics}, {Name: "b.zst", Metrics: in.Metrics, Subject: true}}
		all := Sections(in, &Options{})
		at := slices.IndexFunc(all, func(s Section) bool { return s.Name == more.name })
		if at < 0 || !strings.Contains(all[at].Text, "RUN is the run b.zst.\n") || strings.Contains(all[at].Text, "a.zst") {
			t.Fatalf("%+v", all)
		}
	})
}
