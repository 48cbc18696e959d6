package report

import (
	"bytes"
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"blis/pkg/attribution"
	"blis/pkg/llmtext"
	"blis/pkg/metrics"
	"blis/pkg/stream"

	"pgregory.net/rapid"
)

// filters are what frameworks replace in prompts.
var filters = []*regexp.Regexp{regexp.MustCompile(`(?i)token[=:]\s*\S+`), regexp.MustCompile(`(?i)password[=:]\s*\S+`),
	regexp.MustCompile(`[A-Za-z0-9]{32,}`), regexp.MustCompile(`sk-[A-Za-z0-9]{48}`)}

// checkPlain checks that a text is plain ASCII that no filter changes, without headings, fences and
// trailing blanks.
func checkPlain(t *rapid.T, text []byte) {
	for _, f := range filters {
		if found := f.Find(text); found != nil {
			t.Fatalf("a filter replaces %q in\n%s", found, text)
		}
	}
	for i, c := range text {
		if c > '~' || c < ' ' && c != '\n' {
			t.Fatalf("character %q at %d in\n%s", c, i, text)
		}
	}
	for _, line := range strings.Split(string(text), "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), "#") || strings.Contains(line, "```") {
			t.Fatalf("line %q in\n%s", line, text)
		}
		if strings.TrimRight(line, " ") != line {
			t.Fatalf("line %q ends with blanks in\n%s", line, text)
		}
	}
}

func TestTextKeepsLimits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in, o := drawRun(t), drawOptions(t)
		if err := o.Validate(); err != nil {
			t.Fatal(err)
		}
		text := Text(in, o)
		if second := Text(in, o); !bytes.Equal(text, second) {
			t.Fatalf("the same input gives\n%s\nand\n%s", text, second)
		}
		checkPlain(t, text)
		checkExplainable(t, in, string(text))
		limit := cmp.Or(o.MaxTokens, defaultTokens)
		if n := llmtext.Tokens(text); n > limit {
			t.Fatalf("%d tokens, not at most %d:\n%s", n, limit, text)
		}
		all := Sections(in, o)
		for i, s := range all {
			if len(s.Text) > maxSectionLength || i > 0 && !strings.HasPrefix(s.Text, "["+s.Name+"]\n") ||
				!strings.HasSuffix(s.Text, "\n") {
				t.Fatalf("section %s of %d characters:\n%s", s.Name, len(s.Text), s.Text)
			}
		}
		// The text is whole sections from the beginning, and names those that it leaves out.
		found := false
		for n := cmp.Or(o.Examples, defaultExamples); n > 0; n-- {
			for i := range 3 {
				o.Examples, o.fewHints, o.brief = n, i > 0, i > 1
				found = found || isCutOf(string(text), Sections(in, o))
			}
		}
		if !found {
			t.Fatalf("not the first sections:\n%s", text)
		}
	})
}

// checkExplainable runs the --explain commands of the text.
func checkExplainable(t *rapid.T, in *Input, text string) {
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

// A file that cannot be read may be of either kind: there are two examples. One that can has one.
func TestUnreadableFileHasTwoExamples(t *testing.T) {
	for _, c := range []struct {
		fault    stream.ErrorRecord
		examples int
	}{{stream.ErrorRecord{Tool: "blis-sim", File: "/nosuch.yaml", Msg: "no such file or directory"}, 2},
		{stream.ErrorRecord{Tool: "blis-sim", File: "a.yaml", Line: 1, Msg: "unknown scheduler"}, 1}} {
		text := string(Failure(&stream.UpstreamError{Fault: c.fault}))
		if strings.Count(text, "[EXAMPLE]") != c.examples ||
			strings.Contains(text, "a cluster file (-c)") != (c.examples == 2) {
			t.Errorf("%+v:\n%s", c.fault, text)
		}
	}
}

// A percentile of too few samples has a mark.
func TestFewSamplesAreMarked(t *testing.T) {
	few, many := &metrics.Distribution{Count: 999, P99: 5}, &metrics.Distribution{Count: 1000, P99: 5}
	if p99(few) != "5.0?" || p99(many) != "5.0" {
		t.Errorf("%s and %s", p99(few), p99(many))
	}
}

// isCutOf reports whether text is the first of the sections and a line that names the others, or all
// of them.
func isCutOf(text string, all []Section) bool {
	for i, s := range all {
		rest, ok := strings.CutPrefix(text, s.Text)
		if !ok {
			var left []string
			for _, s := range all[i:] {
				left = append(left, s.Name)
				if s.essential != "" {
					left[len(left)-1] += " (" + s.essential + ")"
				}
			}
			return i > 0 && strings.HasPrefix(text, "[CUT] at ") &&
				strings.HasSuffix(text, ": "+strings.Join(left, ", ")+"\n") && strings.Count(text, "\n") == 1
		}
		text = rest
	}
	return text == ""
}

// The first characters hold, in whole lines, how the run went, where it lost most, why and what to change.
func TestBeginningStandsAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in, o := drawRun(t), drawOptions(t)
		text := Text(in, o)
		lines := strings.SplitAfter(string(text[:min(len(text), beginningLength)]), "\n")
		want := []string{"[blis-summary/1] ", "[HEADLINE]\n", "state: "}
		if f := in.Findings; f.Loss.Lost > 0 {
			want = append(want, "where: ")
			switch w := (&writer{Input: in, Options: o}); {
			case len(f.Patterns) > 0:
				want = append(want, "top cause: P1 "+f.Patterns[0].Condition.Name, "change: ")
			case w.mainHint() != nil:
				want = append(want, "cause: ", "change: ")
			default:
				want = append(want, "cause: ")
			}
		}
		for _, w := range want {
			at := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, w) })
			if at < 0 || !strings.HasSuffix(lines[at], "\n") {
				t.Fatalf("no line begins with %q and ends within %d characters of\n%s", w, beginningLength, text)
			}
			lines = lines[at+1:]
		}
	})
}

// The leading sections are whole sections that fit into one section's length.
func TestLeadingSectionsAreWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := Sections(drawRun(t), drawOptions(t))
		text := string(Leading(all))
		if len(text) > maxSectionLength || len(text) < len(all[0].Text) {
			t.Fatalf("%d characters:\n%s", len(text), text)
		}
		for _, s := range all {
			if text == "" {
				break
			}
			rest, ok := strings.CutPrefix(text, s.Text)
			if !ok {
				t.Fatalf("section %s is cut:\n%s", s.Name, text)
			}
			text = rest
		}
	})
}

// Answers to queries are plain, too.
func TestExplainIsPlain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawRun(t)
		var q attribution.Query
		n := rapid.IntRange(0, 130).Draw(t, "which")
		text := rapid.SampledFrom([]string{fmt.Sprintf("dec-%06d", n), fmt.Sprint("t1", n), "0s:10ms",
			"5ms:1h"}).Draw(t, "query")
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
		checkPlain(t, answer)
	})
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
		{Options{Component: "routing", Strategy: "counterfactual"},
			"--component is a text of its own; it does not go with --strategy counterfactual"},
		{Options{MaxTokens: 100}, "--max-tokens must be from 300 to 20000, is 100"},
		{Options{MaxTokens: 20000}, ""},
		{Options{MaxTokens: 20001}, "--max-tokens must be from 300 to 20000, is 20001"},
		{Options{Examples: 6}, "--examples must be from 1 to 5, is 6"},
	} {
		if err := c.o.Validate(); (err == nil) != (c.want == "") || err != nil &&
			!strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%+v: %v", c.o, err)
		}
	}
}

// Of several runs the text names the one that its commands are about.
func TestMoreNamesTheRun(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawRun(t)
		in.Scenarios = []Scenario{{Name: "a.zst", Metrics: in.Metrics},
			{Name: "b.zst", Metrics: in.Metrics, Subject: true}}
		all := Sections(in, &Options{})
		at := slices.IndexFunc(all, func(s Section) bool { return s.Name == more.name })
		if at < 0 || !strings.Contains(all[at].Text, "RUN is b.zst.\n") || strings.Contains(all[at].Text, "a.zst") {
			t.Fatalf("%+v", all)
		}
	})
}

// TestUnreliableRegretIsLeftOut: the headline has only what estimates were measured to rank well, or not measured.
func TestUnreliableRegretIsLeftOut(t *testing.T) {
	for _, c := range []struct {
		e2e, ttft float64
		want      string
	}{{0.5, 0.1, "regret (estimated, E2E): 900 ms"}, {0.4, 0.5, "regret (estimated, TTFT): 70.0 ms"},
		{-0.6, 0.4, "regret: left out"}} {
		m := &metrics.Raw{Regret: &metrics.Regret{HindsightTTFTMS: 70,
			Reliability: &metrics.Reliability{Alternatives: 32, SpearmanE2E: &c.e2e, SpearmanTTFT: &c.ttft}}}
		w := &writer{Input: &Input{Metrics: m}, limit: 1000}
		w.regret(&attribution.Regret{Decisions: 9, HindsightMS: 900})
		if text := string(w.text); !strings.HasPrefix(text, c.want) {
			t.Errorf("E2E %v, TTFT %v: %s", c.e2e, c.ttft, text)
		}
	}
}
