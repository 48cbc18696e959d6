// Package report writes what a run amounts to as a text for language models that are
// to change its policies, and for people at a terminal: facts and how they came about,
// the most valuable first.
//
// The text is ASCII in sections, each of which begins with a line such as [LOSS] and has
// at most 1,950 characters; no line begins with the sign of a heading or a fence. The
// first 480 characters stand alone. It is cut to a number of tokens by leaving out
// sections from the end, never parts of them; the last line then names those. Names from
// outside are shortened and changed so that filters that hide credentials leave the text
// as it is. Equal runs give equal bytes.
//
// A ? behind a percentile says that it is of few samples: fewer than 10/(1-p).
//
// Words have fixed meanings. A request that met all targets of its SLO class is met, one
// that did not is missed; a rejected, timed out, failed or unfinished one is missed. A run
// is healthy if at least 99 % of the requests with targets met them, strained if at least
// 90 %, else failing. Patterns are those of package insight.
package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"blis/pkg/attribution"
	"blis/pkg/fitness"
	"blis/pkg/metrics"
	"blis/pkg/registry"
	"blis/pkg/stream"
)

// Version is that of the text's form, which its first line names.
const Version = 1

// product is the name of the first section.
var product = fmt.Sprintf("blis-summary/%d", Version)

// Limits of the text.
const (
	MaxSectionLength = 1950 // characters of a section
	StandsAlone      = 480  // characters at the beginning
	DefaultTokens    = 900
	MaxTokens        = 1500
	MinTokens        = 300
	MaxExamples      = 5
	usualExamples    = 3
)

// Input is what there is to say.
type Input struct {
	Header         *stream.Header
	WorkloadDigest string
	Metrics        *metrics.Raw
	Analyzer       *attribution.Analyzer
	// Findings are what Insight found; nil where the stream holds no outcomes.
	Findings *attribution.Findings
	// Fitness is nil where there is none; Assumed: nobody asked for this one.
	Fitness        *fitness.Result
	DefaultFitness bool
	// Selection says which part of the run this is about, "" if all.
	Selection string
	// Scenarios are all that the fitness is of, where they are several.
	Scenarios []Scenario
	// References are the baseline and the parent, as far as they are given.
	References []Reference
	Warnings   []string
}

// Reference is a run to compare with.
type Reference struct {
	// Name is baseline or parent.
	Name    string
	Metrics *metrics.Raw
	// Score is nil where there is no fitness.
	Score *float64
	// Lo and Hi are where 95 % of what the score less this one could have been lie; nil
	// where that is not known.
	Lo, Hi *float64
	// OtherWorkload says that it is a run of another workload.
	OtherWorkload bool
}

// Scenario is one of several runs that have a score together.
type Scenario struct {
	Name    string
	Score   float64
	Metrics *metrics.Raw
	// HeldOut: it counts for nothing. Told: the rest of the text is about it.
	HeldOut, Subject bool
}

// Options say how the text is to be. They carry the tags of command lines.
type Options struct {
	// Strategy is one of Strategies.
	Strategy string `default:"issue_focused" placeholder:"NAME" help:"What to tell of a run: ${strategies}."`
	// Focus are parts of the time (attribution.Parts): patterns and examples of losses that
	// are mostly in these come first.
	Focus []string `placeholder:"PART" help:"What to tell first: losses in ${parts}."`
	// Component is one of attribution.Components: the text is about its decisions only, and
	// follows no strategy.
	Component string `placeholder:"WHAT" help:"Tell of one component instead: ${components}."`
	// MaxTokens is the length of the text by estimate, Examples how many decisions are shown
	// at most; 0 are the defaults.
	MaxTokens int `default:"900" placeholder:"N" help:"Length of the text, in tokens of a language model by estimate (300 to 1500)."`
	Examples  int `default:"3" placeholder:"N" help:"Decisions to show, at most (1 to 5)."`
	// Hints adds advice.
	Hints bool `help:"Add advice to the facts."`

	// brief cuts the headline to what stands alone.
	brief bool
}

// Validate says what is wrong with the options.
func (o *Options) Validate() error {
	if o.Strategy != "" {
		if _, err := Strategies.Get("--strategy", o.Strategy); err != nil {
			return err
		}
	}
	if o.Component != "" {
		if o.Strategy != "" && o.Strategy != Strategies[0].Name {
			return fmt.Errorf("--component is a text of its own; it does not go with --strategy %s", o.Strategy)
		}
		if _, err := attribution.Components.Get("--component", o.Component); err != nil {
			return err
		}
	}
	for _, f := range o.Focus {
		if _, err := attribution.Parts.Get("--focus", f); err != nil {
			return err
		}
	}
	if o.MaxTokens != 0 && (o.MaxTokens < MinTokens || o.MaxTokens > MaxTokens) {
		return fmt.Errorf("--max-tokens must be from %d to %d, is %d", MinTokens, MaxTokens, o.MaxTokens)
	}
	if o.Examples < 0 || o.Examples > MaxExamples {
		return fmt.Errorf("--examples must be from 1 to %d, is %d", MaxExamples, o.Examples)
	}
	return nil
}

// Strategies are the ways to tell about a run: which sections there are, in which order.
var Strategies = registry.Table[[]section]{
	{Name: "issue_focused", Doc: "the largest problems, with an example of each",
		Value: []section{headline, score, compared, loss, byClass, byTenant, byScenario, patterns, hints, worst, kept, anomalies, headroom, more, notes}},
	{Name: "decision_audit", Doc: "decisions by rule, and a sample of them with what came of each",
		Value: []section{headline, decisions, sample, patterns, hints, kept, anomalies, more, notes}},
	{Name: "counterfactual", Doc: "what other choices would have changed",
		Value: []section{headline, regret, regretted, headroom, patterns, hints, more, notes}},
	{Name: "pattern_mining", Doc: "all conditions that decisions meet, and how often requests lost under them",
		Value: []section{headline, patterns, hints, conditions, byClass, byTenant, kept, more, notes}},
}

// ofComponent are the sections of a text about one component.
var ofComponent = []section{headline, patterns, hints, decisions, conditions, meanings, worst, more, notes}

// section writes itself, nothing if there is nothing to say.
type section struct {
	name  string
	write func(*writer)
}

// Section is one that was written.
type Section struct {
	// Name is that of its first line, without brackets; Text ends with a line feed.
	Name, Text string
}

// Text is the whole text.
func Text(in *Input, o *Options) []byte {
	limit := o.MaxTokens
	if limit == 0 {
		limit = DefaultTokens
	}
	// Rather fewer examples than none.
	var text []byte
	var kept []Section
	for n := cmp.Or(o.Examples, usualExamples); n > 0; n-- {
		fewer := *o
		fewer.Examples = n
		if text, kept = fit(Sections(in, &fewer), limit); slices.ContainsFunc(kept, hasExamples) {
			return text
		}
	}
	if len(kept) <= 2 {
		brief := *o
		brief.brief, brief.Examples = true, 1
		text, _ = fit(Sections(in, &brief), limit)
	}
	return text
}

// hasExamples reports whether the section is one of decisions one by one.
func hasExamples(s Section) bool {
	return s.Name == worst.name || s.Name == sample.name || s.Name == regretted.name
}

// Sections are all sections of the strategy that have something to say, the first with
// the line of the version.
func Sections(in *Input, o *Options) []Section {
	strategy, others := Strategies[0].Value, []string{}
	for _, s := range Strategies {
		if s.Name == o.Strategy {
			strategy = s.Value
		} else if o.Strategy != "" || s.Name != Strategies[0].Name {
			others = append(others, s.Name)
		}
	}
	if o.Component != "" {
		strategy = ofComponent
	}
	all := []Section{{product, string(title(in))}}
	for _, s := range strategy {
		w := &writer{Input: in, Options: o, most: MaxSectionLength, others: strings.Join(others, "|")}
		w.line("[%s]", s.name)
		if o.brief && s.name == headline.name {
			w.most = StandsAlone - len(all[0].Text)
		}
		head := len(w.b)
		s.write(w)
		if len(w.b) > head {
			all = append(all, Section{s.name, string(w.b)})
		}
	}
	padBeginning(all)
	return all
}

// padBeginning makes the first StandsAlone characters end with a line: blanks fill the
// last that is whole there, if it is in the second section.
func padBeginning(all []Section) {
	if len(all) < 2 {
		return
	}
	room, text := StandsAlone-len(all[0].Text), all[1].Text
	if at := strings.LastIndexByte(text[:min(len(text), room)], '\n'); at > 0 && at+1 < room {
		all[1].Text = text[:at] + strings.Repeat(" ", room-at-1) + text[at:]
	}
}

// fit leaves out sections from the end until the text has no more than so many tokens,
// and says which. It returns also those that it keeps.
func fit(all []Section, limit int) (text []byte, kept []Section) {
	for n := len(all); ; n-- {
		text = text[:0]
		for _, s := range all[:n] {
			text = append(text, s.Text...)
		}
		if n < len(all) {
			var left []string
			for _, s := range all[n:] {
				left = append(left, s.Name)
			}
			text = fmt.Appendf(text, "[CUT] at %d tokens (estimated): %s\n", limit, strings.Join(left, ", "))
		}
		if Tokens(text) <= limit || n <= 2 {
			return text, all[:n]
		}
	}
}

// Leading is as many sections from the beginning as are LongestPart characters long
// together.
func Leading(all []Section) (text []byte) {
	for _, s := range all {
		if len(text)+len(s.Text) > MaxSectionLength {
			break
		}
		text = append(text, s.Text...)
	}
	return text
}

// writer is a section as it is written. It takes whole lines as long as there is room.
type writer struct {
	*Input
	*Options
	// b is what is written, most how long it may become; full: a line had no room.
	b    []byte
	most int
	full bool
	// others are the strategies that this text does not follow.
	others string
}

// line adds a line; if there is no room for it, it and those after it are left out.
func (w *writer) line(format string, args ...any) {
	line := unlike(fmt.Sprintf(format, args...)) // a name may stand before a colon of ours
	if w.full = w.full || len(w.b)+len(line)+1 > w.most; !w.full {
		w.b = append(append(w.b, line...), '\n')
	}
}

// table adds rows, the first column to the left, the others to the right.
func (w *writer) table(rows [][]string) {
	width := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			width[i] = max(width[i], len(cell))
		}
	}
	for _, row := range rows {
		line := fmt.Sprintf("%-*s", width[0], row[0])
		for i, cell := range row[1:] {
			line += fmt.Sprintf("  %*s", width[i+1], cell)
		}
		w.line("%s", strings.TrimRight(line, " "))
	}
}
