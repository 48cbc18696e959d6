package report

import (
	"fmt"

	"blis/pkg/attribution"
)

// mostRules are shown.
const mostRules = 8

var decisions = section{"DECISIONS", func(w *writer) {
	f := w.Findings
	if f == nil {
		return
	}
	if a := f.Admission; a != nil && (w.Component == "" || w.Component == "admission") {
		w.line("admission %s: %d decisions, %d refused, %d delays", name(a.Policy), a.Decisions, a.Refused, a.Delays)
	}
	if len(f.Rules) == 0 || w.Component != "" && w.Component != "routing" {
		return
	}
	rows := [][]string{{"routing rule", "requests", "judged", "lost", "lost_pct"}}
	for _, r := range f.Rules[:min(len(f.Rules), mostRules)] {
		share := "-"
		if r.Judged > 0 {
			share = fmt.Sprintf("%.1f", 100*float64(r.Lost)/float64(r.Judged))
		}
		rows = append(rows, []string{ruleName(&r), fmt.Sprint(r.Requests), fmt.Sprint(r.Judged), fmt.Sprint(r.Lost), share})
	}
	w.table(rows)
	if left := len(f.Rules) - mostRules; left > 0 {
		w.line("and %d more rules", left)
	}
}}

func ruleName(r *attribution.RuleCount) string {
	switch {
	case r.Rule != "" && r.Why != "":
		return short(r.Rule+" ("+r.Why+")", 40)
	case r.Rule != "":
		return short(r.Rule, 40)
	}
	return short(or(r.Why, "no reason"), 40)
}

var sample = section{"SAMPLE", func(w *writer) {
	for i, e := range w.Analyzer.Sample(w.examples()) {
		w.exemplar(fmt.Sprintf("D%d: ", i+1), &e)
	}
}}

var regret = section{"REGRET", func(w *writer) {
	f := w.Findings
	if f == nil || f.Regret == nil {
		w.line("none recorded: blis-sim --counterfactual 3, or exact:20")
		return
	}
	g := f.Regret
	if g.Decisions > 0 {
		w.line("for %d of %d decisions another candidate was estimated to end sooner", g.Better, g.Decisions)
		rows := [][]string{{"routing rule", "decisions", "better", "hindsight_ms", "avoidable_ms"}}
		for _, r := range f.Rules[:min(len(f.Rules), mostRules)] {
			rows = append(rows, []string{ruleName(&r), fmt.Sprint(r.Estimated), fmt.Sprint(r.Better), ms(r.HindsightMS), ms(r.AvoidableMS)})
		}
		w.table(rows)
	}
	if g.Played > 0 {
		w.line("%d decisions were played otherwise; for %d another choice had let more requests meet their targets", g.Played, g.Flips)
	}
}}

var regretted = section{"WORST REGRET", func(w *writer) {
	for i, e := range w.Analyzer.Regretted(w.examples()) {
		w.exemplar(fmt.Sprintf("R%d: ", i+1), &e)
	}
}}
