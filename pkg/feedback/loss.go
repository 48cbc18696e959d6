package feedback

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"blis/pkg/fitness"
	"blis/pkg/insight"
	"blis/pkg/metrics"
)

var score = section{"SCORE", func(w *writer) {
	if w.Fitness == nil {
		return
	}
	if len(w.Fitness.Terms) > 0 {
		rows := [][]string{{"term", "weight", "value", "ideal", "lost"}}
		for _, t := range w.Fitness.Terms {
			rows = append(rows, []string{short(t.Name, 32), number(t.Weight), number(t.Value), number(t.Ideal), number(t.Lost)})
		}
		w.table(rows)
	}
	for i := range w.Fitness.Gates {
		w.line("%s", gate(&w.Fitness.Gates[i]))
	}
	for _, warning := range w.Fitness.Warnings {
		w.line("note: %s", short(warning, 160))
	}
}}

func gate(g *fitness.Gate) string {
	if g.Passed {
		return fmt.Sprintf("gate %s passed: %s", name(g.Name), short(g.Expr, 80))
	}
	return fmt.Sprintf("gate %s FAILED by %.4f: %s; %s", name(g.Name), g.Distance, short(g.Expr, 80), short(g.Detail, 80))
}

// number is a part of a score.
func number(x float64) string { return fmt.Sprintf("%.4f", x) }

var loss = section{"LOSS", func(w *writer) {
	f := w.Findings
	if f == nil || f.Loss.Lost == 0 {
		return
	}
	l := f.Loss
	lost, met := "missed", "met"
	if l.Kind != insight.LossMisses {
		lost, met = "lost", "not lost"
	}
	rows := [][]string{{"mean ms", "requests"}}
	for _, p := range insight.Parts {
		rows[0] = append(rows[0], p.Name)
	}
	rows[0] = append(rows[0], "all")
	for _, r := range []struct {
		what string
		n    int64
		ms   *[insight.PartCount]float64
	}{{lost, l.LostDone, l.LostMS}, {met, l.MetDone, l.MetMS}} {
		if r.ms == nil {
			continue
		}
		row, sum := []string{r.what, fmt.Sprint(r.n)}, 0.0
		for _, x := range r.ms {
			row = append(row, fmt.Sprintf("%.1f", x))
			sum += x
		}
		rows = append(rows, append(row, fmt.Sprintf("%.1f", sum)))
	}
	if len(rows) > 1 {
		w.table(rows)
	}
	var blame []string
	for p, n := range l.Blame {
		if n > 0 {
			blame = append(blame, fmt.Sprintf("%s %d", insight.Parts[p].Name, n))
		}
	}
	w.line("%s by the part most above the mean of those %s in their class: %s; of %d.", unit(l), met, strings.Join(blame, ", "), l.Lost)
	if l.OverMS > 0 {
		w.line("above their targets by %.1f ms in all.", l.OverMS)
	}
}}

var byClass = section{"BY CLASS", func(w *writer) { w.groups(w.Metrics.Cls, 1) }}

var byTenant = section{"BY TENANT", func(w *writer) { w.groups(w.Metrics.Tenant, 2) }}

// mostGroups are shown of classes and tenants.
const mostGroups = 6

// groups is a table of classes or tenants, those with the most misses first; fewer than
// least are none.
func (w *writer) groups(of map[string]*metrics.Group, least int) {
	if len(of) < least {
		return
	}
	missed := func(g *metrics.Group) int64 {
		if g.Goodput == nil {
			return 0
		}
		return g.Goodput.Offered - g.Goodput.Met
	}
	names := slices.Sorted(maps.Keys(of))
	slices.SortStableFunc(names, func(a, b string) int { return int(missed(of[b]) - missed(of[a])) })
	all := int64(0)
	for _, n := range names {
		all += missed(of[n])
	}
	rows := [][]string{{"name", "offered", "missed", "met_pct", "of_misses_pct", "ttft_p50_ms", "ttft_p99_ms", "tpot_p99_ms", "e2e_p99_ms"}}
	for _, n := range names[:min(len(names), mostGroups)] {
		g := of[n]
		row := []string{short(n, 24), fmt.Sprint(g.Requests.Offered), "-", "-", "-"}
		if g.Goodput != nil {
			row[2], row[3] = fmt.Sprint(missed(g)), fmt.Sprintf("%.1f", 100*g.Goodput.Ratio)
			if all > 0 {
				row[4] = fmt.Sprintf("%.1f", 100*float64(missed(g))/float64(all))
			}
		}
		rows = append(rows, append(row, p50(g.TTFT), p99(g.TTFT), p99(g.TPOT), p99(g.E2E)))
	}
	w.table(rows)
	if left := len(names) - mostGroups; left > 0 {
		w.line("and %d more with fewer misses.", left)
	}
}

func p50(d *metrics.Distribution) string {
	if d == nil {
		return "-"
	}
	return fmt.Sprintf("%.1f", d.P50)
}

func p99(d *metrics.Distribution) string {
	if d == nil {
		return "-"
	}
	return fmt.Sprintf("%.1f", d.P99)
}
