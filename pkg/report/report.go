// Package report writes the findings about a run as a text for language models that are to
// improve its policies, and for people at a terminal: facts and mechanisms, the most valuable
// first.
//
// The text is ASCII in sections. Each section begins with a line such as [LOSS] and has at most
// 1,950 characters; no line begins with a heading sign or a fence. The state, where the loss is, its top
// cause and what to change lie within the first 480 characters: the lines are as full as they then can be.
// What to change is the first hint with the gain that the pattern allows at most, or the best of those that
// were simulated. The text is cut to a number of tokens by leaving out whole sections from the end; the last
// line then names those. Names from outside are shortened and changed so that filters that hide credentials
// leave the text as it is. Equal runs give equal bytes.
//
// A ? after a percentile marks too few samples: fewer than 10/(1-p).
//
// With a fitness that reads more than the share of requests that met their targets, the loss is fitness: a line "lost:"
// says by which numbers, and the shares of the loss, and the order of patterns, are those of the fitness.
//
// Words have fixed meanings. A request is met if it met all targets of its SLO class, else missed;
// rejected, timed out, failed and unfinished requests are missed. A run is healthy if at least
// 99 % of the requests with targets met them, degraded if at least 90 %, else failing. Patterns are
// those of package attribution.
package report

import (
	"cmp"
	"fmt"
	"strings"

	"blis/pkg/attribution"
	"blis/pkg/fitness"
	"blis/pkg/metrics"
	"blis/pkg/registry"
	"blis/pkg/stream"
)

// version is that of the text's form, which its first line names.
const version = 1

// title names the form of the text; it is also the name of the first section.
var title = fmt.Sprintf("blis-summary/%d", version)

// Limits of the text.
const (
	maxSectionLength = 1950 // characters
	// beginningLength is the number of characters that hold the state, where the loss is, its top cause
	// and what to change.
	beginningLength = 480
	defaultTokens   = 900
	minTokens       = 300
	maxTokens       = 20_000
	maxExamples     = 5
	defaultExamples = 3
)

// Input is what the text is about.
type Input struct {
	Header         *stream.Header
	WorkloadDigest string
	Metrics        *metrics.Raw
	Analyzer       *attribution.Analyzer
	// Findings are those of Analyzer; nil where the stream holds no outcomes.
	Findings *attribution.Findings
	// Fitness is nil where there is none. DefaultFitness: the user gave none, and it is the default.
	Fitness        *fitness.Result
	DefaultFitness bool
	// Shards is the number of runs of shards that were merged, 0 if the run is one. Then there are no Findings.
	Shards int
	// Selection says which part of the run this is, "" for all of it.
	Selection string
	// Scenarios are all that the fitness covers, where they are several.
	Scenarios []Scenario
	// References are the baseline and the parent, where given.
	References []Reference
	Warnings   []string
	// Integrity says which stream does not hold what was written, and why; "" if all do.
	Integrity string
}

// Reference is a run to compare with.
type Reference struct {
	Name    string // baseline or parent
	Header  *stream.Header
	Metrics *metrics.Raw
	// Findings are nil where they were not looked for.
	Findings *attribution.Findings
	// Score is nil where there is no fitness.
	Score *float64
	// Lo and Hi are the 95 % confidence interval of the score less this one; nil where unknown.
	Lo, Hi *float64
	// OtherWorkload: it is a run of another workload.
	OtherWorkload bool
}

// Scenario is one of several runs that are scored together.
type Scenario struct {
	Name    string
	Score   float64
	Metrics *metrics.Raw
	// HeldOut: it does not count. Subject: the rest of the text is about it.
	HeldOut, Subject bool
}

// Options select the text. They carry the tags of command lines.
type Options struct {
	// Strategy is one of Strategies.
	Strategy string `rare:"" group:"Explanation:" choices:"strategies" default:"issue_focused" placeholder:"NAME" help:"What the text shows: ${strategies}."`
	// Focus are parts of the time (attribution.Parts): patterns and examples of losses that are
	// mostly in these come first.
	Focus []string `rare:"" group:"Explanation:" choices:"parts" placeholder:"PART" help:"Show first what was lost in these parts of the latency: ${parts}."`
	// Component is one of attribution.Components: the text is about its decisions only, and
	// follows no strategy.
	Component string `rare:"" group:"Explanation:" choices:"components" placeholder:"NAME" help:"Describe only this component: ${components}."`
	// MaxTokens is the estimated length of the text, Examples the maximum number of decisions
	// shown; 0 is the default.
	MaxTokens int  `rare:"" group:"Explanation:" default:"900" placeholder:"N" help:"Maximum length of the text in tokens, estimated (300 to 20000; default 900)."`
	Examples  int  `rare:"" group:"Explanation:" default:"3" placeholder:"N" help:"Maximum number of decisions in the text (1 to 5; default 3)."`
	Hints     bool `group:"Explanation:" help:"Add advice to the text."`

	// fewHints leaves out all but the measured hint with the largest gain of each pattern, or its first one; brief cuts
	// the headline to the beginning.
	fewHints, brief bool
}

// Validate checks the options.
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
		if _, err := attribution.Components().Get("--component", o.Component); err != nil {
			return err
		}
	}
	for _, f := range o.Focus {
		if _, err := attribution.Parts().Get("--focus", f); err != nil {
			return err
		}
	}
	if o.MaxTokens != 0 && (o.MaxTokens < minTokens || o.MaxTokens > maxTokens) {
		return fmt.Errorf("--max-tokens must be from %d to %d, is %d", minTokens, maxTokens, o.MaxTokens)
	}
	if o.Examples < 0 || o.Examples > maxExamples {
		return fmt.Errorf("--examples must be from 1 to %d, is %d", maxExamples, o.Examples)
	}
	return nil
}

// Strategies select sections and their order.
var Strategies = registry.Table[[]section]{
	{Name: "issue_focused", Doc: "the largest problems, with an example of each",
		Value: []section{headline, score, hints, comparison, patterns, scalingRegret, loss, setup, byClass, byTenant,
			byDeployment, byReplica, sessions, byScenario, worst, strengths, anomalies, headroom, more, notes}},
	{Name: "decision_audit", Doc: "decisions by rule, and a sample of them with their outcomes",
		Value: []section{headline, setup, decisions, sample, patterns, hints, strengths, anomalies, more, notes}},
	{Name: "counterfactual", Doc: "what other choices would have changed",
		Value: []section{headline, regret, worstRegret, scalingRegret, headroom, patterns, hints, more, notes}},
	{Name: "pattern_mining", Doc: "all conditions that decisions match, and how often requests lost under them",
		Value: []section{headline, patterns, hints, conditions, byClass, byTenant, strengths, more, notes}},
}

// componentSections are those of a text about one component.
var componentSections = []section{headline, patterns, hints, decisions, conditions, glossary, worst, more, notes}

// sections are those that the options select, and the names of the strategies that they do not
// follow.
func (o *Options) sections() (selected []section, others string) {
	strategy := cmp.Or(o.Strategy, Strategies[0].Name)
	var names []string
	for _, s := range Strategies {
		if s.Name == strategy {
			selected = s.Value
		} else {
			names = append(names, s.Name)
		}
	}
	if o.Component != "" {
		selected = componentSections
	}
	return selected, strings.Join(names, "|")
}

// about reports whether the text is about this component.
func (o *Options) about(c string) bool { return o.Component == "" || o.Component == c }
