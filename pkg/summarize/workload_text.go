package summarize

import (
	"fmt"
	"slices"
	"strconv"

	"blis/pkg/capacity"
	"blis/pkg/stream"
	"blis/pkg/texttab"
	"blis/pkg/workloadstats"
)

// workload adds the description of a workload.
func (p *page) workload(w *Workload) {
	p.line("arrivals", "%d = %d requests + %d sessions; %d model calls", w.Arrivals, w.Requests, w.Sessions, w.Calls)
	p.line("duration", "%.3f s, from the first arrival to the last", w.DurationS)
	if w.Rate != nil {
		p.line("rate", "%.4g arrivals/s%s", *w.Rate, rateRange(&w.Timeline))
		p.line("over time", "|%s| %d x %d s", sparkline(w.Timeline.Counts), len(w.Timeline.Counts), w.Timeline.BucketS)
	}
	if w.CV != nil {
		fano := ""
		if w.Fano != nil {
			fano = fmt.Sprintf(", Fano factor %.4g of the counts in %d minutes", *w.Fano, w.Minutes)
		}
		p.line("bursts", "CV of the gaps %.4g%s", *w.CV, fano)
	}
	if x := w.Prefix; x != nil {
		p.line("prefixes", "%.1f %% of the prompt tokens repeat an earlier prefix, "+
			"%.1f %% in full blocks of %d; %.1f %% have segment ids", 100*x.Hit, 100*x.BlockHit, x.BlockSize,
			100*x.Identified)
	}
	if l := w.Load; l != nil && l.Offered != nil {
		p.line("load", "%.3f of the cluster's capacity if all repeated prefixes are cached, %.3f if none are",
			*l.Offered, *l.Uncached)
	}
	tokens := workloadDistributions("tokens", []workloadDistribution{{"input", w.Input, 0}, {"output", w.Output, 0}})
	if w.Correlation != nil {
		tokens.Row("correlation", fmt.Sprintf("%.3f", *w.Correlation))
	}
	p.table(tokens)
	if s := w.Session; s != nil {
		p.table(workloadDistributions("sessions", []workloadDistribution{{"calls", s.Calls, 0}, {"tools", s.Tools, 0},
			{"depth", s.Depth, 0}, {"fan-out", s.FanOut, 0}, {"thinking, s", s.ThinkS, 2}, {"tools, s", s.ToolS, 2},
			{"turns", s.Turns, 0}}))
		if s.SessionHit != nil {
			p.line("own history", "%.1f %% of the sessions' prompt tokens, in blocks; median over sessions %.1f %%",
				100**s.SessionHit, 100**s.SessionHitMedian)
		}
		if s.TurnsSessionHit != nil {
			p.line("own history", "%.1f %% of the conversations' prompt tokens, in blocks", 100**s.TurnsSessionHit)
		}
		if len(s.Workflows) > 0 {
			p.line("workflows", "%s", reasonCounts(s.Workflows))
		}
	}
	p.tables(parts("class", w.Cls, 1), parts("tenant", w.Tenant, 2), parts("model", w.Model, 2), loadTable(w.Load))
}

// rateRange describes the lowest and the highest rate.
func rateRange(t *workloadstats.Timeline) string {
	low, high, ok := t.Rates()
	if !ok {
		return ""
	}
	return fmt.Sprintf(", %.4g to %.4g in intervals of %d s", low, high, t.BucketS)
}

// shades represent counts, from none to the maximum.
const shades = " .:-=+*#%@"

// sparkline returns a character for each count.
func sparkline(counts []int64) string {
	maximum := slices.Max(counts)
	line := make([]byte, len(counts))
	for i, n := range counts {
		// Only 0 is blank.
		line[i] = shades[(n*int64(len(shades)-1)+maximum-1)/maximum]
	}
	return string(line)
}

// workloadDistribution is a row of a table of distributions, with its number of decimals.
type workloadDistribution struct {
	name string
	*workloadstats.Distribution
	decimals int
}

// workloadDistributions is a table of those distributions that exist.
func workloadDistributions(of string, rows []workloadDistribution) *texttab.Table {
	t := newTable(of, "mean", "CV", "p50", "p90", "p95", "p99", "max", "count")
	for _, d := range rows {
		if d.Distribution == nil {
			continue
		}
		n := func(x float64) string { return strconv.FormatFloat(x, 'f', d.decimals, 64) }
		t.Add(d.name, strconv.FormatFloat(d.Mean, 'f', max(1, d.decimals), 64), fmt.Sprintf("%.2f", d.CV), n(d.P50),
			n(d.P90), n(d.P95), n(d.P99), n(d.Max), d.Count)
	}
	return t
}

// parts is the table of the groups of a workload, only a header if there are fewer than minimum.
func parts(by string, all map[string]*workloadstats.Part, minimum int) *texttab.Table {
	t := newTable("by "+by, "arrivals", "arrivals/s", "CV", "calls", "input mean", "p50", "p95", "output mean", "p50",
		"p95", "correlation")
	for name, p := range shown(t, all, minimum) {
		row := []any{name, p.Arrivals, orDash("%.4g", p.Rate), orDash("%.2f", p.CV), p.Calls}
		for _, d := range []*workloadstats.Distribution{p.Input, p.Output} {
			if d == nil {
				row = append(row, "-", "-", "-")
			} else {
				row = append(row, fmt.Sprintf("%.1f", d.Mean), fmt.Sprintf("%.0f", d.P50), fmt.Sprintf("%.0f", d.P95))
			}
		}
		t.Add(append(row, orDash("%.3f", p.Correlation))...)
	}
	return t
}

// loadTable is the table of the load by model; l may be nil.
func loadTable(l *capacity.Load) *texttab.Table {
	t := newTable("load of", "replicas", "calls", "load", "uncached", "capacity calls/s", "uncached", "limit")
	if l == nil {
		return t
	}
	for _, m := range l.Models {
		t.Add(stream.Printable(m.Model), m.Replicas, m.Calls, orDash("%.3f", m.Offered),
			orDash("%.3f", m.Uncached), fmt.Sprintf("%.2f", m.Capacity), fmt.Sprintf("%.2f", m.CapacityUncached),
			m.Limit)
	}
	return t
}
