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

var byTenant = section{name: "BY TENANT", write: func(w *writer) { w.groups(w.Metrics.Tenants) }}

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
	t := newTable("name", "offered", "missed", "met_pct", "of_misses_pct", "ttft_p99_ms", "tpot_p99_ms", "e2e_p99_ms")
	few := false
	for _, n := range names[:min(len(names), maxGroups)] {
		g := of[n]
		missed, judged := float64(missedCount(g)), g.Goodput != nil
		latencies := []string{p99(g.TTFT), p99(g.TPOT), p99(g.E2E)}
		few = few || strings.Contains(strings.Join(latencies, ""), "?")
		t.Add(short(n, 24), g.Requests.Offered, dash(judged, "%.0f", missed), metPercent(g.Goodput),
			dash(judged && all > 0, "%.1f", 100*missed/float64(all)), latencies[0], latencies[1], latencies[2])
	}
	w.table(t)
	if few {
		w.line("? few samples")
	}
	w.omitted(len(names)-maxGroups, "with fewer misses")
}

func metPercent(g *metrics.Goodput) string {
	if g == nil {
		return "-"
	}
	return fmt.Sprintf("%.1f", 100*g.Ratio)
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
	t := newTable("scenario", "score", "offered", "met_pct", "ttft_p99_ms", "e2e_p99_ms", "")
	for _, s := range w.Scenarios[:min(len(w.Scenarios), maxScenarios)] {
		note := ""
		if s.Subject {
			note = "this text"
		}
		if m := s.Metrics; s.HeldOut { // only the score, so that it stays held out
			t.Add(name(s.Name), fraction(s.Score), "-", "-", "-", "-", "held out")
		} else {
			t.Add(name(s.Name), fraction(s.Score), m.Requests.Offered, metPercent(m.Goodput), p99(m.TTFT), p99(m.E2E),
				note)
		}
	}
	w.table(t)
	w.omitted(len(w.Scenarios)-maxScenarios, "scenarios")
}}
