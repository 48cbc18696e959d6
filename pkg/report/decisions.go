package report

import (
	"cmp"
	"fmt"

	"blis/pkg/attribution"
)

const maxRules = 8

var decisions = section{name: "DECISIONS", explains: true, write: func(w *writer) {
	f := w.Findings
	if a := f.Admission; a != nil && w.about("admission") {
		w.line("admission %s: %d decisions, %d rejected, %d delays", name(a.Policy), a.Decisions, a.Rejected, a.Delays)
	}
	if len(f.Rules) == 0 || !w.about("routing") {
		return
	}
	t := newTable("routing rule", "requests", "judged", "lost", "lost_pct")
	for _, r := range f.Rules[:min(len(f.Rules), maxRules)] {
		t.Add(ruleName(&r), r.Requests, r.Judged, r.Lost,
			dash(r.Judged > 0, "%.1f", 100*float64(r.Lost)/float64(r.Judged)))
	}
	w.table(t)
	w.omitted(len(f.Rules)-maxRules, "rules")
}}

func ruleName(r *attribution.RuleCount) string {
	if r.Rule != "" && r.Reason != "" {
		return short(r.Rule+" ("+r.Reason+")", 40)
	}
	return short(cmp.Or(r.Rule, nameOr(r.Reason, "no reason")), 40)
}

var sample = section{name: "SAMPLE", listsExamples: true, write: func(w *writer) {
	for i, e := range w.Analyzer.Sample(w.maxExamples()) {
		w.example(fmt.Sprintf("D%d: ", i+1), &e)
	}
}}

var regret = section{name: "REGRET", write: func(w *writer) {
	f := w.Findings
	if f == nil || f.Regret == nil {
		w.line("none recorded: blis-sim --counterfactual 3, or exact:20")
		return
	}
	g := f.Regret
	if g.Decisions > 0 {
		w.line("%d of %d decisions had another candidate with a lower estimated E2E", g.Better, g.Decisions)
		t := newTable("routing rule", "decisions", "better", "hindsight_ms", "avoidable_ms")
		for _, r := range f.Rules[:min(len(f.Rules), maxRules)] {
			t.Add(ruleName(&r), r.Estimated, r.Better, number(r.HindsightMS), number(r.AvoidableMS))
		}
		w.table(t)
	}
	if g.Exact > 0 {
		w.line("%d decisions were re-simulated; for %d an alternative gains more SLOs than it loses, beyond the run's"+
			" own sensitivity", g.Exact, g.Flips)
	}
	if text := w.reliability(); text != "" {
		w.line("reliability of the estimates: %s", text)
	} else {
		w.line("reliability of the estimates: not measured; blis-sim --counterfactual exact:20 does")
	}
}}

// reliableRho is the rank correlation from which estimates are used without a note.
const reliableRho = 0.5

// unreliableE2E reports whether the estimates of E2E were measured not to rank alternatives well.
func (w *writer) unreliableE2E() bool {
	r := w.Metrics.Regret
	return r != nil && r.Reliability != nil && unreliable(r.Reliability.SpearmanE2E)
}

// unreliableTTFT is the same for TTFT.
func (w *writer) unreliableTTFT() bool {
	r := w.Metrics.Regret
	return r != nil && r.Reliability != nil && unreliable(r.Reliability.SpearmanTTFT)
}

// unreliable reports whether a rank correlation is too low; nil is none.
func unreliable(rho *float64) bool { return rho == nil || *rho < reliableRho }

// reliability is the measured reliability of the estimates, "" without one.
func (w *writer) reliability() string {
	if w.Metrics.Regret == nil || w.Metrics.Regret.Reliability == nil {
		return ""
	}
	r := w.Metrics.Regret.Reliability
	rho := func(x *float64) string {
		if x == nil {
			return "-"
		}
		return fmt.Sprintf("%.2f", *x)
	}
	return fmt.Sprintf("Spearman with re-simulation E2E %s, TTFT %s (%d alternatives)", rho(r.SpearmanE2E),
		rho(r.SpearmanTTFT), r.Alternatives)
}

var worstRegret = section{name: "WORST REGRET", listsExamples: true, write: func(w *writer) {
	for i, e := range w.Analyzer.HighestRegrets(w.maxExamples()) {
		w.example(fmt.Sprintf("R%d: ", i+1), &e)
	}
}}
