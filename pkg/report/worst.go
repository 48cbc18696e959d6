package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"blis/pkg/attribution"
	"blis/pkg/stream"
)

var worst = section{name: "WORST", explains: true, listsExamples: true, write: func(w *writer) {
	f := w.Findings
	var all []*attribution.Example
	for i := range f.Worst {
		e := &f.Worst[i]
		if w.Component == "" || e.Pattern >= 0 && w.about(f.Patterns[e.Pattern].Condition.Component.Name) {
			all = append(all, e)
		}
	}
	slices.SortStableFunc(all, func(x, y *attribution.Example) int {
		return w.focusRank(x.Pattern) - w.focusRank(y.Pattern)
	})
	for i, e := range all[:min(len(all), w.maxExamples())] {
		of := ""
		if e.Pattern >= 0 {
			of = fmt.Sprintf(" of P%d", e.Pattern+1)
		}
		w.example(fmt.Sprintf("W%d%s: ", i+1, of), e)
	}
}}

// maxExamples is the number of examples to show.
func (w *writer) maxExamples() int { return cmp.Or(w.Options.Examples, defaultExamples) }

// Example describes a request, its decision and its outcome.
func Example(in *Input, e *attribution.Example) string {
	w := &writer{Input: in, Options: &Options{}, limit: maxSectionLength}
	w.example("", e)
	return string(w.text)
}

// example writes a request, its decision and its outcome; all lines or none.
func (w *writer) example(head string, e *attribution.Example) {
	begin := len(w.text)
	if e.Decision != "" {
		head += name(e.Decision) + " for "
	}
	w.line("%s%s%s%s, arrived at %.3f s", head, name(e.Request), labeled(", class ", e.Labels.Class),
		labeled(", tenant ", e.Labels.Tenant), float64(e.ArrivalUS)/1e6)
	if e.Chosen != nil {
		w.line("   chose %s: %s%s", name(w.Analyzer.Replica(e.Chosen.Replica)), signals(e.Chosen), rule(&e.Labels))
	}
	if e.NextBest != nil {
		w.line("   next best %s: %s", name(w.Analyzer.Replica(e.NextBest.Replica)), signals(e.NextBest))
	}
	if e.Queue.Own >= 0 {
		w.line("   actual queue %s; waited while %d tokens started", queue(e), e.Queue.TokensStarted)
	}
	w.line("   %s", w.outcome(e))
	if x := e.Estimate; x != nil && x.Best != "" {
		w.line("   best other %s: E2E %s ms, chosen %s (estimated); avoidable by signals %s", name(x.Best),
			number(x.BestMS), number(x.ChosenMS), number(x.AvoidableMS))
	}
	if e.Exact != nil {
		w.line("   %s", exact(e.Exact))
	}
	if w.full {
		w.text = w.text[:begin]
	}
}

// labeled is a name with a label before it, "" without a name.
func labeled(label, s string) string {
	if s == "" {
		return ""
	}
	return label + name(s)
}

// queue is the actual queue at the chosen replica and the shortest one.
func queue(e *attribution.Example) string {
	q, at := &e.Queue, ""
	if q.ShortestAt != e.Replica {
		at = " at " + name(q.ShortestAt)
	}
	return fmt.Sprintf("%d, shortest %d%s", q.Own, q.Shortest, at)
}

// rule is the rule or the reason of a routing decision, in parentheses.
func rule(l *attribution.Labels) string {
	return parenthesized(cmp.Or(labeled("rule ", l.Rule), name(l.RoutingReason)))
}

// signals are those that the router read about a replica.
func signals(v *attribution.ReplicaView) string {
	var parts []string
	for _, c := range []struct {
		name string
		n    int32
	}{{"queue", v.Queue}, {"running", v.Running}, {"prefix tokens", v.Prefix}} {
		if c.n >= 0 {
			parts = append(parts, fmt.Sprintf("%s %d", c.name, c.n))
		}
	}
	if v.KV >= 0 {
		parts = append(parts, "kv "+percent(v.KV))
	}
	parts = append(parts, fmt.Sprintf("inflight %d", v.Inflight))
	if !math.IsNaN(v.Score) {
		parts = append(parts, fmt.Sprintf("score %.3f", v.Score))
	}
	text := strings.Join(parts, ", ")
	if v.AgeUS > 0 {
		text += fmt.Sprintf(", %s ms old", number(float64(v.AgeUS)/1000))
	}
	return text
}

// outcome says how a request ended and where its time went.
func (w *writer) outcome(e *attribution.Example) string {
	var text []string
	if e.Outcome.State != stream.StateCompleted {
		text = append(text, name(e.Outcome.State)+parenthesized(name(e.Outcome.Reason)))
	}
	l := &e.Latency
	var parts []string
	for p, x := range l.PartsMS {
		if x > 0 {
			parts = append(parts, fmt.Sprintf("%s %s", w.part(attribution.Part(p)), number(x)))
		}
	}
	if len(parts) > 0 {
		text = append(text, "ms: "+strings.Join(parts, " | "))
	}
	for _, m := range []struct {
		name       string
		ms, target float64
	}{{"TTFT", l.TTFTMS, l.Targets.TTFTMS}, {"TPOT", l.TPOTMS, l.Targets.TPOTMS}, {"E2E", l.E2EMS, l.Targets.E2EMS}} {
		limit := ""
		switch {
		case m.ms < 0:
			continue
		case m.target > 0 && m.ms > m.target:
			limit = fmt.Sprintf(" (MISSED %.6g)", m.target)
		case m.target > 0:
			limit = fmt.Sprintf(" (limit %.6g)", m.target)
		}
		text = append(text, fmt.Sprintf("%s %s ms%s", m.name, number(m.ms), limit))
	}
	return strings.Join(text, "; ")
}

// exact says what the re-simulated alternative changed that is best for the request itself, and whether what
// it changed for all is more than the run moves by itself.
func exact(e *attribution.Exact) string {
	var a *stream.Alternative
	for _, x := range e.Alternatives {
		if x.Own != nil && x.All != nil && (a == nil || better(x.Own, a.Own)) {
			a = &x
		}
	}
	if a == nil {
		return "re-simulated: nothing recorded"
	}
	noise := ""
	if s := &e.Sensitivity; a.Insensitive {
		noise = fmt.Sprintf(", within the run's own sensitivity (%s)", number(s.E2EMS))
	} else if s.Controls > 0 {
		noise = fmt.Sprintf(" (own sensitivity %s)", number(s.E2EMS))
	}
	return fmt.Sprintf("re-simulated, best %s: own E2E %s ms less; all: SLOs gained %d, lost %d, E2E %s ms less%s",
		name(choice(a)), number(a.Own.E2EMS), a.All.SLOGained, a.All.SLOLost, number(a.All.E2EMS), noise)
}

// choice names an alternative: a verdict or a replica.
func choice(a *stream.Alternative) string {
	if a.Verdict != "" {
		return a.Verdict
	}
	return fmt.Sprintf("%s/%d", a.Deployment, a.Replica)
}

func better(x, y *stream.Difference) bool {
	return cmp.Or(cmp.Compare(x.SLOGained-x.SLOLost, y.SLOGained-y.SLOLost), cmp.Compare(x.Completed, y.Completed),
		cmp.Compare(x.E2EMS, y.E2EMS)) > 0
}
