package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"blis/pkg/attribution"
)

const (
	maxNeverFired = 4
	// maxLift is the largest lift that is printed: larger ones mean little.
	maxLift          = 100
	maxConditionRows = 20
)

var patterns = section{name: "PATTERNS", explains: true, write: func(w *writer) {
	f := w.Findings
	reported, hasLift := false, false
	for _, i := range w.patternOrder() {
		p := &f.Patterns[i]
		if !w.about(p.Condition.Component.Name) {
			continue
		}
		reported, hasLift = true, hasLift || p.Lift > 0
		w.line("P%d %s, %s", i+1, patternName(p), decider(p))
		w.line("   %d of %d %s (%s); %d requests match, %s", p.Lost, f.Loss.Lost, wordsFor[f.Loss.Kind].unit,
			percent(p.Loss), p.All, lift(&p.Support))
		if len(p.Sources) > 0 {
			w.line("   of the fitness: %s", fitnessLost(p.Sources))
		}
		w.line("   %s", p.Cause)
	}
	if c := w.SessionCause(); c != nil && !reported {
		w.line("P1 %s: %s", c.Condition, c.Text)
	}
	if hasLift {
		w.line("lift: loss rate or ms lost of requests that match / of others that no earlier cause explains.")
	}
	if !reported && !f.Loss.TooSmall() {
		of := ""
		if w.Component != "" {
			of = w.Component + " "
		}
		w.line("no %spattern explains at least %s of the loss with a lift of %.1f.", of,
			percent(attribution.MinSupport), attribution.MinLift)
	}
	if u, l := f.Unexplained, f.Loss; w.Component == "" && !l.TooSmall() && 5*u.Lost >= l.Lost {
		w.line("not explained: %d of %d %s, most of them in %s", u.Lost, l.Lost, wordsFor[l.Kind].unit, w.part(u.Part))
	}
	w.neverFired()
}}

// neverFired lists what could not have had an effect.
func (w *writer) neverFired() {
	f := w.Findings
	for _, r := range f.NeverFired[:min(len(f.NeverFired), maxNeverFired)] {
		w.line("NEVER fired: %s (%s), 0 of %d", name(r.Path), short(r.Rule, 60), r.Evaluated)
	}
	w.omitted(len(f.NeverFired)-maxNeverFired, "that NEVER fired")
	if a := f.Admission; a != nil && a.Rejected+a.Delays == 0 {
		w.line("admission %s NEVER rejected or delayed: 0 of %d", name(a.Policy), a.Decisions)
	}
}

// patternOrder puts the patterns in the focus first.
func (w *writer) patternOrder() []int {
	var order []int
	for i := range w.Findings.Patterns {
		order = append(order, i)
	}
	slices.SortStableFunc(order, func(x, y int) int { return w.focusRank(x) - w.focusRank(y) })
	return order
}

// focusRank is 0 for a pattern whose losses are mostly in the focus, else 1; 1 for no pattern (-1).
func (w *writer) focusRank(i int) int {
	if i >= 0 && slices.Contains(w.Focus, w.Findings.Patterns[i].Part.String()) {
		return 0
	}
	return 1
}

// patternName is the name of a pattern's condition with its value.
func patternName(p *attribution.Pattern) string {
	if p.Value != "" {
		return p.Condition.Name + " " + short(p.Value, 24)
	}
	return p.Condition.Name
}

// decider is the component, policy and rule whose decisions a pattern is about.
func decider(p *attribution.Pattern) string {
	text := p.Condition.Component.Name + labeled(" ", p.Policy)
	if p.NeverFired != nil {
		return text + ", rule " + name(p.NeverFired.Path)
	}
	return text + labeled(", rule ", p.Rule)
}

func lift(s *attribution.Support) string {
	switch {
	case s.MetWithout > 0:
		return fmt.Sprintf("without that time %d of these would meet their targets", s.MetWithout)
	case s.Lift == 0:
		return "nearly all: no lift"
	case s.ByMS:
		return "lift " + formatLift(s.Lift) + " by ms lost"
	}
	return "lift " + formatLift(s.Lift)
}

func formatLift(lift float64) string {
	if lift > maxLift {
		return fmt.Sprintf("> %d", maxLift)
	}
	return fmt.Sprintf("%.1f", lift)
}

var hints = section{name: "HINTS", explains: true, write: func(w *writer) {
	for i, p := range w.Findings.Patterns {
		if !w.Hints && !w.tried() || !w.about(p.Condition.Component.Name) {
			continue
		}
		w.line("P%d: %s", i+1, p.Condition.Hint)
		w.hintsOf(i + 1)
	}
	if w.Hints || w.tried() {
		w.hintsOf(0)
	}
}}

// maxShownHints is how many hints of a pattern are shown.
const maxShownHints = 3

// hintsOf lists the settings that a pattern suggests, or those of other conditions (0).
func (w *writer) hintsOf(pattern int) {
	all := slices.DeleteFunc(slices.Clone(w.Findings.Hints), func(h attribution.Hint) bool {
		return h.Pattern != pattern || !w.about(h.Component)
	})
	shown := all[:min(len(all), maxShownHints)]
	if w.fewHints && len(all) > 0 {
		shown = []attribution.Hint{slices.MaxFunc(all, func(x, y attribution.Hint) int { // the first of equal ones
			return cmp.Compare(measuredGain(&x), measuredGain(&y))
		})}
	}
	for _, h := range shown {
		if pattern == 0 {
			w.line("also %s: %s", h.Condition, h.Advice)
		}
		if pattern > 0 && h.Advice != w.Findings.Patterns[pattern-1].Condition.Hint {
			w.line("   or %s:", h.Advice)
		}
		w.line("   up to %s: %s", w.gain(h.ExpectedGain), commandOf(&h))
		w.measured(h.Measured)
	}
	w.omitted(len(all)-len(shown), "hints (--format json)")
}

// measuredGain is that of a hint, -1 where it was not simulated.
func measuredGain(h *attribution.Hint) float64 {
	if h.Measured == nil {
		return -1
	}
	return h.Measured.Gain
}

// gain is an expected gain in words.
func (w *writer) gain(x float64) string {
	if w.Findings.Loss.Kind == attribution.LossFitness {
		return fraction(x) + " of fitness"
	}
	return percent(x) + " of the requests"
}

// tried reports whether a hint was simulated: then hints are shown.
func (w *writer) tried() bool {
	return slices.ContainsFunc(w.Findings.Hints, func(h attribution.Hint) bool { return h.Measured != nil })
}

// measured says what a hint did when it was simulated.
func (w *writer) measured(m *attribution.Measured) {
	switch {
	case m == nil:
	case m.Error != "":
		w.line("   not simulated: %s", short(m.Error, 160))
	default:
		w.line("   measured: fitness %.4f (%+.4f)", m.Score, m.Gain)
	}
}

var conditions = section{name: "CONDITIONS", explains: true, write: func(w *writer) {
	f := w.Findings
	t := newTable("condition", "component", "lost", "match", "lost_pct", "lift")
	for _, c := range f.Conditions() {
		component := c.Condition.Component.Name
		if !w.about(component) || len(t.Rows) > maxConditionRows {
			continue
		}
		lift := "-"
		if c.Lift > 0 {
			lift = formatLift(c.Lift)
			if c.ByMS {
				lift += " (ms)"
			}
		}
		t.Add(short(strings.TrimSpace(c.Condition.Name+" "+c.Value), 40), component, c.Lost, c.All,
			fmt.Sprintf("%.1f", 100*float64(c.Lost)/float64(c.All)), lift)
	}
	if len(t.Rows) > 1 {
		w.table(t)
		w.line("lost of %d, match of %d; conditions overlap; --component NAME explains them", f.Loss.Lost,
			f.Loss.Judged)
	}
}}

// glossary explains the conditions of the component that some request matches.
var glossary = section{name: "MEANINGS", explains: true, write: func(w *writer) {
	if w.Component == "" {
		return
	}
	counts := w.Findings.Conditions()
	for _, c := range attribution.Conditions() {
		found := func(x attribution.ConditionCount) bool { return x.Condition == c }
		if c.Component.Name == w.Component && slices.ContainsFunc(counts, found) {
			w.line("%s: %s", c.Name, c.Doc)
		}
	}
}}
