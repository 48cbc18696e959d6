package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"blis/pkg/metrics"
)

// Rows shown at most.
const (
	maxGroups    = 5 // classes or tenants
	maxScenarios = 12
)

var byClass = section{name: "BY CLASS", write: func(w *writer) { w.groups(w.Metrics.Cls) }}

var byTenant = section{name: "BY TENANT", write: func(w *writer) {
	if line := sameGroups(w.Metrics.Tenants, w.Metrics.Cls); line != "" {
		w.line("%s", line)
		return
	}
	w.groups(w.Metrics.Tenants)
}}

// sameGroups says which class each tenant is where tenants and classes are the same groups of
// requests, "" where they are not.
func sameGroups(tenants, classes map[string]*metrics.Group) string {
	if len(tenants) < 2 || len(tenants) != len(classes) || len(tenants) > maxGroups {
		return ""
	}
	var pairs []string
	used := map[string]bool{}
	for _, t := range slices.Sorted(maps.Keys(tenants)) {
		for _, c := range slices.Sorted(maps.Keys(classes)) {
			if !used[c] && equalGroups(tenants[t], classes[c]) {
				used[c] = true
				pairs = append(pairs, short(t, 24)+" is "+short(c, 24))
				break
			}
		}
	}
	if len(pairs) != len(tenants) {
		return ""
	}
	return "same as BY CLASS: " + strings.Join(pairs, ", ")
}

func equalGroups(x, y *metrics.Group) bool {
	return x.Requests == y.Requests && x.E2E != nil && y.E2E != nil && *x.E2E == *y.E2E
}

// missedCount is how many requests of a group missed their targets.
func missedCount(g *metrics.Group) int64 {
	if g.Goodput == nil {
		return 0
	}
	return g.Goodput.Offered - g.Goodput.Met
}

// groups is a table of classes or tenants, those with the most misses first. A single group has
// none.
func (w *writer) groups(of map[string]*metrics.Group) {
	if len(of) < 2 {
		return
	}
	names := slices.Sorted(maps.Keys(of))
	slices.SortStableFunc(names, func(x, y string) int { return int(missedCount(of[y]) - missedCount(of[x])) })
	all := int64(0)
	for _, n := range names {
		all += missedCount(of[n])
	}
	rows := [][]string{{"name", "offered", "missed", "met_pct", "of_misses_pct", "ttft_p99_ms", "tpot_p99_ms",
		"e2e_p99_ms"}}
	for _, n := range names[:min(len(names), maxGroups)] {
		g := of[n]
		row := []string{short(n, 24), fmt.Sprint(g.Requests.Offered), "-", "-", "-"}
		if g.Goodput != nil {
			row[2], row[3] = fmt.Sprint(missedCount(g)), fmt.Sprintf("%.1f", 100*g.Goodput.Ratio)
			if all > 0 {
				row[4] = fmt.Sprintf("%.1f", 100*float64(missedCount(g))/float64(all))
			}
		}
		rows = append(rows, append(row, p99(g.TTFT), p99(g.TPOT), p99(g.E2E)))
	}
	w.table(rows)
	w.omitted(len(names)-maxGroups, "with fewer misses")
}

func p99(d *metrics.Distribution) string {
	if d == nil {
		return "-"
	}
	return percentile(d, d.P99, 99)
}

var byScenario = section{name: "BY SCENARIO", write: func(w *writer) {
	if len(w.Scenarios) == 0 {
		return
	}
	rows := [][]string{{"scenario", "score", "offered", "met_pct", "ttft_p99_ms", "e2e_p99_ms", ""}}
	for _, s := range w.Scenarios[:min(len(w.Scenarios), maxScenarios)] {
		rows = append(rows, scenarioRow(&s))
	}
	w.table(rows)
	w.omitted(len(w.Scenarios)-maxScenarios, "scenarios")
}}

func scenarioRow(s *Scenario) []string {
	if s.HeldOut { // only the score, so that it stays held out
		return []string{name(s.Name), fraction(s.Score), "-", "-", "-", "-", "held out"}
	}
	met, note := "-", ""
	if g := s.Metrics.Goodput; g != nil {
		met = fmt.Sprintf("%.1f", 100*g.Ratio)
	}
	if s.Subject {
		note = "this text"
	}
	return []string{name(s.Name), fraction(s.Score), fmt.Sprint(s.Metrics.Requests.Offered), met, p99(s.Metrics.TTFT),
		p99(s.Metrics.E2E), note}
}
