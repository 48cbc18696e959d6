package summarize

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"blis/pkg/capacity"
	"blis/pkg/stream"
	"blis/pkg/texttab"
	"blis/pkg/workloadstats"
)

// describe appends the text of a workload to b.
func (d *Document) describe(b []byte) []byte {
	w := d.Workload
	line := func(head, format string, args ...any) {
		b = fmt.Appendf(b, "%-11s %s\n", head, stream.Printable(fmt.Sprintf(format, args...)))
	}
	line("arrivals", "%d = %d requests + %d sessions; %d model calls", w.Arrivals, w.Requests, w.Sessions, w.Calls)
	line("duration", "%.3f s, from the first arrival to the last", w.DurationS)
	if w.Rate != nil {
		line("rate", "%.4g arrivals/s%s", *w.Rate, rateRange(&w.Timeline))
		line("over time", "|%s| %d x %d s", sparkline(w.Timeline.Counts), len(w.Timeline.Counts), w.Timeline.BucketS)
	}
	if w.CV != nil {
		fano := ""
		if w.Fano != nil {
			fano = fmt.Sprintf(", Fano factor %.4g of the counts in %d minutes", *w.Fano, w.Minutes)
		}
		line("bursts", "CV of the gaps %.4g%s", *w.CV, fano)
	}
	if p := w.Prefix; p != nil {
		line("prefixes", "%.1f %% of the prompt tokens repeat an earlier prefix, "+
			"%.1f %% in full blocks of %d; %.1f %% have segment ids",
			100*p.Hit, 100*p.BlockHit, p.BlockSize, 100*p.Identified)
	}
	if l := w.Load; l != nil && l.Offered != nil {
		line("load", "%.3f of the cluster's capacity if all repeated prefixes are cached, %.3f if none are", *l.Offered,
			*l.Uncached)
	}
	b = append(b, '\n')
	b = lengths(&w.Lengths).Append(b)
	if s := w.Session; s != nil {
		b = append(b, '\n')
		b = workloadSessions(s).Append(b)
		if s.SessionHit != nil {
			line("own history", "%.1f %% of the sessions' prompt tokens, in blocks; median over sessions %.1f %%",
				100**s.SessionHit, 100**s.SessionHitMedian)
		}
		if s.TurnsSessionHit != nil {
			line("own history", "%.1f %% of the conversations' prompt tokens, in blocks", 100**s.TurnsSessionHit)
		}
		if len(s.Workflows) > 0 {
			line("workflows", "%s", reasonCounts(s.Workflows))
		}
	}
	for _, t := range []*texttab.Table{parts("class", w.Cls, 1), parts("tenant", w.Tenant, 2),
		parts("model", w.Model, 2),
		loadTable(w.Load)} {
		if len(t.Rows) > 1 {
			b = append(b, '\n')
			b = t.Append(b)
		}
	}
	if len(d.Warnings) > 0 {
		b = append(b, "\nwarnings\n"...)
	}
	return d.appendWarnings(b)
}

// formatOrEmpty formats x, "" if it is missing.
func formatOrEmpty(format string, x *float64) string {
	if x == nil {
		return ""
	}
	return fmt.Sprintf(format, *x)
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

// distributionRow appends a distribution to a table with the given number of decimals.
func distributionRow(t *texttab.Table, name string, d *workloadstats.Distribution, decimals int) {
	if d == nil {
		return
	}
	n := func(x float64) string { return strconv.FormatFloat(x, 'f', decimals, 64) }
	t.Row(name, strconv.FormatFloat(d.Mean, 'f', max(1, decimals), 64), fmt.Sprintf("%.2f", d.CV), n(d.P50), n(d.P90),
		n(d.P95), n(d.P99), n(d.Max), strconv.FormatInt(d.Count, 10))
}

func distributionHead(t *texttab.Table, of string) {
	t.Row(of, "mean", "CV", "p50", "p90", "p95", "p99", "max", "count")
}

// lengths is the table of call lengths.
func lengths(l *workloadstats.Lengths) *texttab.Table {
	t := &texttab.Table{FirstWidth: headWidth}
	distributionHead(t, "tokens")
	distributionRow(t, "input", l.Input, 0)
	distributionRow(t, "output", l.Output, 0)
	if l.Correlation != nil {
		t.Row("correlation", fmt.Sprintf("%.3f", *l.Correlation))
	}
	return t
}

// workloadSessions is the table of session statistics.
func workloadSessions(s *workloadstats.Sessions) *texttab.Table {
	t := &texttab.Table{FirstWidth: headWidth}
	distributionHead(t, "sessions")
	distributionRow(t, "calls", s.Calls, 0)
	distributionRow(t, "tools", s.Tools, 0)
	distributionRow(t, "depth", s.Depth, 0)
	distributionRow(t, "fan-out", s.FanOut, 0)
	distributionRow(t, "thinking, s", s.ThinkS, 2)
	distributionRow(t, "tools, s", s.ToolS, 2)
	distributionRow(t, "turns", s.Turns, 0)
	return t
}

// parts is the table of the groups of a workload, empty if there are fewer than minimum.
func parts(by string, all map[string]*workloadstats.Part, minimum int) *texttab.Table {
	t := &texttab.Table{FirstWidth: headWidth, Omitted: len(all) - maxRows}
	if len(all) < minimum {
		return t
	}
	t.Row("by "+by, "arrivals", "arrivals/s", "CV", "calls", "input mean", "p50", "p95", "output mean", "p50", "p95",
		"correlation")
	names := slices.Sorted(maps.Keys(all))
	for _, name := range names[:min(len(names), maxRows)] {
		p := all[name]
		row := []string{strconv.FormatInt(p.Arrivals, 10),
			orDash(formatOrEmpty("%.4g", p.Rate)), orDash(formatOrEmpty("%.2f", p.CV)), strconv.FormatInt(p.Calls, 10)}
		for _, d := range []*workloadstats.Distribution{p.Input, p.Output} {
			if d == nil {
				row = append(row, "-", "-", "-")
			} else {
				row = append(row, fmt.Sprintf("%.1f", d.Mean), fmt.Sprintf("%.0f", d.P50), fmt.Sprintf("%.0f", d.P95))
			}
		}
		t.Row(stream.Printable(name), append(row, orDash(formatOrEmpty("%.3f", p.Correlation)))...)
	}
	return t
}

// orDash returns text, or - if it is empty.
func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// loadTable is the table of the load by model.
func loadTable(l *capacity.Load) *texttab.Table {
	t := &texttab.Table{FirstWidth: headWidth}
	if l == nil {
		return t
	}
	t.Row("load of", "replicas", "calls", "load", "uncached", "capacity calls/s", "uncached", "limit")
	for _, m := range l.Models {
		t.Row(stream.Printable(m.Model), strconv.Itoa(m.Replicas), strconv.FormatInt(m.Calls, 10),
			orDash(formatOrEmpty("%.3f", m.Offered)), orDash(formatOrEmpty("%.3f", m.Uncached)),
			fmt.Sprintf("%.2f", m.Capacity), fmt.Sprintf("%.2f", m.CapacityUncached), m.Limit)
	}
	return t
}
