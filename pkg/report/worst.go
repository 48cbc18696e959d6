package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"blis/pkg/attribution"
	"blis/pkg/stream"
)

var worst = section{"WORST", func(w *writer) {
	f := w.Findings
	if f == nil {
		return
	}
	var all []*attribution.Example
	for i := range f.Worst {
		e := &f.Worst[i]
		if w.Component == "" || e.Pattern >= 0 && f.Patterns[e.Pattern].Component == w.Component {
			all = append(all, e)
		}
	}
	if len(w.Focus) > 0 {
		slices.SortStableFunc(all, func(a, b *attribution.Example) int { return w.exemplarInFocus(a) - w.exemplarInFocus(b) })
	}
	for i, e := range all[:min(len(all), w.examples())] {
		of := ""
		if e.Pattern >= 0 {
			of = fmt.Sprintf(" of P%d", e.Pattern+1)
		}
		w.exemplar(fmt.Sprintf("W%d%s: ", i+1, of), e)
	}
}}

func (w *writer) exemplarInFocus(e *attribution.Example) int {
	if e.Pattern >= 0 {
		return w.inFocus(e.Pattern)
	}
	return 1
}

// examples is how many are asked for.
func (w *writer) examples() int { return cmp.Or(w.Options.Examples, usualExamples) }

// exemplar writes a decision and what came of it, whole or not at all.
func (w *writer) exemplar(head string, e *attribution.Example) {
	rest := len(w.b)
	who := ""
	if e.Class != "" {
		who += ", class " + name(e.Class)
	}
	if e.Tenant != "" {
		who += ", tenant " + name(e.Tenant)
	}
	decided := ""
	if e.Decision != "" {
		decided = name(e.Decision) + " for "
	}
	w.line("%s%s%s%s, at %.3f s", head, decided, name(e.Request), who, float64(e.ArrivalUS)/1e6)
	if e.Seen != nil {
		w.line("   chose %s: %s%s", name(e.Seen.Replica), saw(e.Seen), why(e))
	}
	if e.Next != nil {
		w.line("   not %s: %s", name(e.Next.Replica), saw(e.Next))
	}
	if e.Queue >= 0 {
		w.line("   true queue there %d, shortest %d%s; waited behind %d tokens", e.Queue, e.Shortest, at(e), e.Ahead)
	}
	w.line("   %s", outcome(e))
	if e.Estimate != nil && e.Estimate.Best != "" {
		w.line("   best other %s: E2E %s ms against %s (estimated); avoidable %s ms", name(e.Estimate.Best), ms(e.Estimate.BestMS), ms(e.Estimate.OursMS), ms(e.Estimate.AvoidableMS))
	}
	if e.Exact != nil {
		w.line("   %s", played(e.Exact))
	}
	if w.full {
		w.b = w.b[:rest]
	}
}

func at(e *attribution.Example) string {
	if e.Freest == e.Replica {
		return ""
	}
	return " at " + name(e.Freest)
}

func why(e *attribution.Example) string {
	switch {
	case e.Rule != "":
		return " (rule " + name(e.Rule) + ")"
	case e.Why != "":
		return " (" + name(e.Why) + ")"
	}
	return ""
}

// saw is what a router saw of a replica.
func saw(s *attribution.Seen) string {
	var parts []string
	for _, c := range []struct {
		what string
		n    *int64
	}{{"queue", s.Queue}, {"running", s.Running}, {"prefix tokens", s.Prefix}} {
		if c.n != nil {
			parts = append(parts, fmt.Sprintf("%s %d", c.what, *c.n))
		}
	}
	if s.KV != nil {
		parts = append(parts, "kv "+percent(*s.KV))
	}
	parts = append(parts, fmt.Sprintf("inflight %d", s.Inflight))
	if s.Score != nil {
		parts = append(parts, fmt.Sprintf("score %.3f", *s.Score))
	}
	text := strings.Join(parts, ", ")
	if s.AgeMS > 0 {
		text += fmt.Sprintf(", %s ms old", ms(s.AgeMS))
	}
	return text
}

// outcome says how a request ended and where its time went.
func outcome(e *attribution.Example) string {
	text := ""
	if e.State != stream.StateCompleted {
		text = name(e.State)
		if e.Reason != "" {
			text += " (" + name(e.Reason) + ")"
		}
	}
	var split []string
	for p, x := range e.MS {
		if x > 0 {
			split = append(split, fmt.Sprintf("%s %s", attribution.Parts[p].Name, ms(x)))
		}
	}
	if len(split) > 0 {
		if text != "" {
			text += "; "
		}
		text += "ms: " + strings.Join(split, " | ")
	}
	for _, m := range []struct {
		what   string
		is, of float64
	}{{"TTFT", e.TTFTMS, e.Targets.TTFTMS}, {"TPOT", e.TPOTMS, e.Targets.TPOTMS}, {"E2E", e.E2EMS, e.Targets.E2EMS}} {
		if m.is < 0 {
			continue
		}
		text += fmt.Sprintf("; %s %s ms", m.what, ms(m.is))
		if m.of > 0 {
			word := "of"
			if m.is > m.of {
				word = "MISSED"
			}
			text += fmt.Sprintf(" (%s %.6g)", word, m.of)
		}
	}
	return text
}

// played says what the best alternative that was played changed.
func played(x *attribution.Exact) string {
	best := -1
	for i := range x.Alternatives {
		a := &x.Alternatives[i]
		if a.All == nil {
			continue
		}
		if best < 0 || better(a.All, x.Alternatives[best].All) {
			best = i
		}
	}
	if best < 0 {
		return "played otherwise: nothing recorded"
	}
	a := &x.Alternatives[best]
	what := a.Verdict
	if what == "" {
		what = fmt.Sprintf("%s/%d", a.Deployment, a.Replica)
	}
	return fmt.Sprintf("played otherwise, best %s: %d more met and %d more missed of all; E2E of all %s ms less (exact)", name(what), a.All.Gained, a.All.Lost, ms(a.All.E2EMS))
}

func better(a, b *stream.Difference) bool {
	if a.Gained-a.Lost != b.Gained-b.Lost {
		return a.Gained-a.Lost > b.Gained-b.Lost
	}
	return a.E2EMS > b.E2EMS
}
