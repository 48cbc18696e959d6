package report

import (
	"cmp"
	"fmt"
	"slices"

	"blis/pkg/attribution"
	"blis/pkg/stream"
)

var kept = section{"KEPT", func(w *writer) {
	f := w.Findings
	if f == nil {
		return
	}
	met := "met their targets"
	if f.Loss.Kind != attribution.LossMisses {
		met = "lost nothing"
	}
	for i := range f.Strengths {
		k := &f.Strengths[i]
		what := fmt.Sprintf("%s %s", k.What, name(k.Name))
		if k.What == "cached" {
			what = "half or more of the prompt found cached"
		}
		text := fmt.Sprintf("%s: %d of %d %s", what, k.Met, k.Of, met)
		if k.OtherOf > 0 {
			text += fmt.Sprintf(", of the others %d of %d", k.OtherMet, k.OtherOf)
		}
		w.line("%s", text)
	}
	if s := w.Metrics.Shadow; s != nil && s.ExpectedTokens > 0 && 20*s.OverTokens <= s.ExpectedTokens {
		w.line("prefixes: %d of %d tokens that the router expected to be cached were", s.ExpectedTokens-s.OverTokens, s.ExpectedTokens)
	}
}}

// mostAnomalies are shown.
const mostAnomalies = 6

var anomalies = section{"ANOMALIES", func(w *writer) {
	if w.Findings == nil {
		return
	}
	all := slices.Clone(w.Findings.Anomalies)
	slices.SortStableFunc(all, func(a, b stream.Anomaly) int {
		return cmp.Or(cmp.Compare(b.Severity, a.Severity), cmp.Compare(a.StartUS, b.StartUS))
	})
	for i := range all[:min(len(all), mostAnomalies)] {
		w.line("%s", episode(&all[i]))
	}
	if left := len(all) - mostAnomalies; left > 0 {
		w.line("and %d more episodes", left)
	}
}}

func episode(a *stream.Anomaly) string {
	where := ""
	switch {
	case !a.Replica.IsZero():
		where = fmt.Sprintf(" at %s/%d", name(a.Deployment), a.Replica)
	case a.SLOClass != "":
		where = " of " + name(a.SLOClass)
	}
	return fmt.Sprintf("%s%s, %.3f s to %.3f s, severity %.2f: %s", name(a.Type), where, float64(a.StartUS)/1e6, float64(a.EndUS)/1e6, a.Severity, short(a.Text, 160))
}

var headroom = section{"HEADROOM", func(w *writer) {
	f := w.Findings
	if f == nil {
		return
	}
	if f.Waits.E2EMS > 0 {
		w.line("waiting (admission, dispatch, queue, preempted) is %s of %s ms E2E of completed requests (%s); the rest is in batches.", ms(f.Waits.WaitMS), ms(f.Waits.E2EMS), percent(f.Waits.WaitMS/f.Waits.E2EMS))
	}
	if g := f.Regret; g != nil && g.E2EMS > 0 {
		w.line("routing, each decision alone: the best candidate saves %s of %s ms estimated E2E (%s); avoidable with what was seen: %s ms.", ms(g.HindsightMS), ms(g.E2EMS), percent(g.HindsightMS/g.E2EMS), ms(g.AvoidableMS))
	} else if w.Header.Run != nil {
		w.line("other choices were not looked into: blis-sim --counterfactual 3; whole policies: scripts/headroom.")
	}
}}

var more = section{"MORE", func(w *writer) {
	f := w.Findings
	if f == nil {
		w.line("blis-sim --trace decisions ... records why")
		return
	}
	if len(f.Worst) > 0 {
		e := &f.Worst[0]
		if e.Decision != "" {
			w.line("blis-summarize --explain %s RUN", name(e.Decision))
		}
		if name(e.Request) == e.Request { // else it is not what to ask for
			w.line("blis-summarize --explain %s RUN", e.Request)
		}
		from := max(0, float64(e.ArrivalUS)/1e6-1)
		w.line("blis-summarize --explain %.1fs:%.1fs RUN", from, from+2)
	}
	if len(f.Patterns) > 0 {
		w.line("blis-summarize --component %s RUN", f.Patterns[0].Component)
	}
	w.line("blis-summarize --strategy %s RUN", w.others)
	for _, s := range w.Scenarios {
		if s.Subject {
			w.line("RUN is the run %s.", name(s.Name))
		}
	}
}}

var notes = section{"NOTES", func(w *writer) {
	for _, warning := range w.Warnings {
		w.line("%s", short(warning, 200))
	}
}}
