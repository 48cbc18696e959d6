package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"blis/pkg/attribution"
	"blis/pkg/fitness"
	"blis/pkg/metrics"
)

var score = section{"SCORE", func(w *writer) {
	if w.Fitness == nil || w.DefaultFitness {
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

// compared is how metrics differ from those of the references.
var compared = section{"COMPARED", func(w *writer) {
	if len(w.References) == 0 {
		return
	}
	head := []string{"metric", "run"}
	for _, r := range w.References {
		head = append(head, r.Name, "difference")
	}
	rows := [][]string{head}
	for _, m := range compareds {
		x := m.of(w.Metrics)
		if x == nil {
			continue
		}
		row := []string{m.name, ms(*x) + m.doubt(w.Metrics)}
		for _, r := range w.References {
			y := m.of(r.Metrics)
			if y == nil {
				row = append(row, "-", "-")
				continue
			}
			row = append(row, ms(*y)+m.doubt(r.Metrics), signed(*x-*y))
		}
		rows = append(rows, row)
	}
	w.table(rows)
}}

// comparison is a metric that is compared; p99 is the distribution that it is the p99 of.
type comparison struct {
	name string
	of   func(*metrics.Raw) *float64
	p99  func(*metrics.Raw) *metrics.Distribution
}

// doubt marks a percentile of few samples.
func (c *comparison) doubt(m *metrics.Raw) string {
	if c.p99 != nil && c.p99(m).Count < metrics.MinSamples(99) {
		return "?"
	}
	return ""
}

func compareP99(name string, of func(*metrics.Raw) *metrics.Distribution) comparison {
	return comparison{name, func(m *metrics.Raw) *float64 {
		if d := of(m); d != nil {
			return &d.P99
		}
		return nil
	}, of}
}

// compareds are all.
var compareds = []comparison{
	{"met_pct", func(m *metrics.Raw) *float64 {
		if m.Goodput == nil {
			return nil
		}
		x := 100 * m.Goodput.Ratio
		return &x
	}, nil},
	{"completed", func(m *metrics.Raw) *float64 { x := float64(m.Requests.Completed); return &x }, nil},
	compareP99("ttft_p99_ms", func(m *metrics.Raw) *metrics.Distribution { return m.TTFT }),
	compareP99("tpot_p99_ms", func(m *metrics.Raw) *metrics.Distribution { return m.TPOT }),
	compareP99("e2e_p99_ms", func(m *metrics.Raw) *metrics.Distribution { return m.E2E }),
}

// signed is a difference.
func signed(x float64) string {
	if x >= 0 {
		return "+" + ms(x)
	}
	return ms(x)
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
	if l.Kind != attribution.LossMisses {
		lost, met = "lost", "not lost"
	}
	w.split(l, lost, met)
	var blame []string
	for p, n := range l.Blame {
		if n > 0 {
			blame = append(blame, fmt.Sprintf("%s %d", attribution.Parts[p].Name, n))
		}
	}
	text := fmt.Sprintf("%s by the part most above the mean of those %s in their class: %s", unit(l), met, strings.Join(blame, ", "))
	if l.OverMS > 0 && l.Kind == attribution.LossMisses {
		text += fmt.Sprintf("; above target by %s ms in all", ms(l.OverMS))
	}
	w.line("%s", text)
}}

// split is the table of where the time of completed requests went. A part that nobody
// spent time in is left out.
func (w *writer) split(l *attribution.Loss, lost, met string) {
	rows := [][]string{{"mean ms", "requests"}}
	var means []*[attribution.PartCount]float64
	for _, x := range []struct {
		what string
		n    int64
		ms   *[attribution.PartCount]float64
	}{{lost, l.LostDone, l.LostMS}, {met, l.MetDone, l.MetMS}} {
		if x.ms != nil {
			rows = append(rows, []string{x.what, fmt.Sprint(x.n)})
			means = append(means, x.ms)
		}
	}
	if len(means) == 0 {
		return
	}
	sums := make([]float64, len(means))
	for p, part := range attribution.Parts {
		spent := false
		for k, m := range means {
			sums[k] += m[p]
			spent = spent || m[p] > 0
		}
		if !spent {
			continue
		}
		rows[0] = append(rows[0], part.Name)
		for k, m := range means {
			rows[k+1] = append(rows[k+1], ms(m[p]))
		}
	}
	rows[0] = append(rows[0], "all")
	for k, sum := range sums {
		rows[k+1] = append(rows[k+1], ms(sum))
	}
	w.table(rows)
}

var byClass = section{"BY CLASS", func(w *writer) { w.groups(w.Metrics.Cls, 2) }}

var byTenant = section{"BY TENANT", func(w *writer) {
	if line := sameParts(w.Metrics.Tenant, w.Metrics.Cls); line != "" {
		w.line("%s", line)
		return
	}
	w.groups(w.Metrics.Tenant, 2)
}}

// sameParts says which class each tenant is where both divide the requests alike, ""
// where they do not.
func sameParts(tenants, classes map[string]*metrics.Group) string {
	if len(tenants) < 2 || len(tenants) != len(classes) || len(tenants) > mostGroups {
		return ""
	}
	var parts []string
	taken := map[string]bool{}
	for _, t := range slices.Sorted(maps.Keys(tenants)) {
		for _, c := range slices.Sorted(maps.Keys(classes)) {
			if a, b := tenants[t], classes[c]; !taken[c] && a.Requests == b.Requests && a.E2E != nil && b.E2E != nil && *a.E2E == *b.E2E {
				taken[c] = true
				parts = append(parts, short(t, 24)+" is "+short(c, 24))
				break
			}
		}
	}
	if len(parts) != len(tenants) {
		return ""
	}
	return "as BY CLASS: " + strings.Join(parts, ", ")
}

var byScenario = section{"BY SCENARIO", func(w *writer) {
	if len(w.Scenarios) == 0 {
		return
	}
	rows := [][]string{{"scenario", "score", "offered", "met_pct", "ttft_p99_ms", "e2e_p99_ms", ""}}
	for i, s := range w.Scenarios {
		if i == mostScenarios {
			break
		}
		met, note := "-", ""
		if g := s.Metrics.Goodput; g != nil {
			met = fmt.Sprintf("%.1f", 100*g.Ratio)
		}
		if s.Subject {
			note = "this text"
		}
		if s.HeldOut { // a score, so that nobody breeds for what it measures
			rows = append(rows, []string{name(s.Name), number(s.Score), "-", "-", "-", "-", "held out"})
			continue
		}
		rows = append(rows, []string{name(s.Name), number(s.Score), fmt.Sprint(s.Metrics.Requests.Offered), met, p99(s.Metrics.TTFT), p99(s.Metrics.E2E), note})
	}
	w.table(rows)
	if left := len(w.Scenarios) - mostScenarios; left > 0 {
		w.line("and %d more scenarios.", left)
	}
}}

// mostScenarios are shown.
const mostScenarios = 12

// mostGroups are shown of classes and tenants.
const mostGroups = 5

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
	rows := [][]string{{"name", "offered", "missed", "met_pct", "of_misses_pct", "ttft_p99_ms", "tpot_p99_ms", "e2e_p99_ms"}}
	for _, n := range names[:min(len(names), mostGroups)] {
		g := of[n]
		row := []string{short(n, 24), fmt.Sprint(g.Requests.Offered), "-", "-", "-"}
		if g.Goodput != nil {
			row[2], row[3] = fmt.Sprint(missed(g)), fmt.Sprintf("%.1f", 100*g.Goodput.Ratio)
			if all > 0 {
				row[4] = fmt.Sprintf("%.1f", 100*float64(missed(g))/float64(all))
			}
		}
		rows = append(rows, append(row, p99(g.TTFT), p99(g.TPOT), p99(g.E2E)))
	}
	w.table(rows)
	if left := len(names) - mostGroups; left > 0 {
		w.line("and %d more with fewer misses.", left)
	}
}

func p99(d *metrics.Distribution) string {
	if d == nil {
		return "-"
	}
	return marked(d, d.P99, 99)
}
