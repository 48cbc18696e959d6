package summarize

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"blis/pkg/metrics"
	"blis/pkg/stream"
	"blis/pkg/texttab"
)

// maxRows is the maximum number of table rows in the text.
const maxRows = 20

// headWidth is the minimum width of the first column of lines and tables.
const headWidth = 11

// text renders the summary of one run or workload for people: ASCII, with a unit in each
// line or column. scored adds the explanation of the score.
func (d *Document) text(scored bool) []byte {
	var b []byte
	line := func(head, format string, args ...any) {
		b = fmt.Appendf(b, "%-11s "+format+"\n", append([]any{head}, args...)...)
	}
	if len(d.Refs) > 0 && d.Refs[0].Stream != "" {
		line(d.Refs[0].Stream, "%s", d.Refs[0].text())
	}
	if d.Status == statusError {
		line("error", "%s", stream.Printable(d.Error))
		line("score", "%.1f", *d.CombinedScore)
		return b
	}
	if d.Selection != nil {
		line("selection", "%s", d.Selection.text())
	}
	if d.Workload != nil {
		return d.describe(b)
	}
	if scored {
		b = appendScore(b, d.Fitness)
	}
	m := d.Metrics.Raw
	r := &m.Requests
	admitted := ""
	if r.Admitted != nil {
		admitted = fmt.Sprintf("; %d admitted", *r.Admitted) + percent(" (%s)", m.AdmissionRate)
	}
	line("requests", "%d offered = %d completed + %d rejected + %d timed out + %d failed + %d unfinished%s",
		r.Offered, r.Completed, r.Rejected, r.TimedOut, r.Failed, r.Unfinished, admitted)
	if len(m.Reasons) > 0 {
		line("not done", "%s", reasonCounts(m.Reasons))
	}
	if s := m.Sessions; s != nil {
		line("sessions", "%d offered = %d completed + %d broken + %d unfinished%s%s", s.Offered, s.Completed, s.Broken,
			s.Unfinished,
			percent("; %s met all targets of their class", s.Attainment),
			percent("; %s of the parallel calls completed", s.FanOutUtilization))
	}
	line("duration", "%.3f s, from the first arrival to the last final state", m.DurationS)
	b = append(b, '\n')
	b = latencies(m).Append(b)
	b = append(b, '\n')
	if m.Sessions != nil {
		b = sessions(m.Sessions).Append(b)
		b = append(b, '\n')
	}
	b = appendTotals(b, m)
	for _, t := range []*texttab.Table{groups("class", m.Cls, 1), groups("tenant", m.Tenants, 2),
		groups("model", m.Models, 2),
		replicas(m)} {
		if len(t.Rows) > 1 {
			b = append(b, '\n')
			b = t.Append(b)
		}
	}
	b = d.appendAnomalies(b)
	if len(d.Warnings) > 0 {
		b = append(b, "\nwarnings (? marks percentiles of fewer than 10/(1-p) samples)\n"...)
	}
	return d.appendWarnings(b)
}

// appendTotals appends the lines about the whole run.
func appendTotals(b []byte, m *metrics.Raw) []byte {
	line := func(head, format string, args ...any) {
		b = fmt.Appendf(b, "%-11s "+format+"\n", append([]any{head}, args...)...)
	}
	if t := m.Throughput; t != nil {
		line("throughput", "%.2f requests/s, %.0f output tokens/s, %.0f tokens/s including prompts; "+
			"completed requests only",
			t.RPS, t.OutputTPS, t.TotalTPS)
	}
	if g := m.Goodput; g != nil {
		rate := ""
		if g.RPS != nil {
			rate = fmt.Sprintf("%.2f requests/s; ", *g.RPS)
		}
		line("goodput", "%s%d of %d offered requests with targets met them (%.1f %%)", rate, g.Met, g.Offered,
			100*g.Ratio)
	}
	if l := m.Load; l != nil {
		line("load", "%.3f of the cluster's capacity with the measured cache hits, %.3f without", l.Offered, l.Uncached)
	}
	if text := cacheText(m); text != "" {
		line("KV cache", "%s", text)
	}
	if m.Fairness != nil {
		line("fairness", "%.4f Jain over %d tenants, of completed/offered output tokens", m.Fairness.Jain,
			len(m.Tenants))
	}
	if m.TailBlowup != nil {
		line("tail", "p99 of E2E is %.2f x p50", *m.TailBlowup)
	}
	if m.Cost != nil {
		line("cost", "%.1f GPU seconds, %.1f replica seconds", m.Cost.GPUS, m.Cost.ReplicaS)
	}
	return b
}

func (d *Document) appendWarnings(b []byte) []byte {
	for _, w := range d.Warnings {
		b = fmt.Appendf(b, "  %s\n", stream.Printable(w))
	}
	return b
}

func (id *Identity) text() string {
	parts := []string{id.Tool + " " + id.Version}
	for _, digest := range [][2]string{{"policy", id.PolicyDigest}, {"config", id.ConfigDigest},
		{"workload", id.WorkloadDigest}} {
		if digest[1] != "" {
			parts = append(parts, digest[0]+" "+digest[1])
		}
	}
	switch {
	case id.SimSeed != nil:
		parts = append(parts, fmt.Sprintf("seeds %d (workload) %d (simulation)", *id.WorkloadSeed, *id.SimSeed))
	case id.WorkloadSeed != nil:
		parts = append(parts, fmt.Sprintf("seed %d", *id.WorkloadSeed))
	}
	return stream.Printable(strings.Join(parts, ", "))
}

func (s *Selection) text() string {
	parts := []string{fmt.Sprintf("%d of %d requests", s.Requests, s.Of)}
	if !s.FromUS.IsZero() {
		parts = append(parts, fmt.Sprintf("arrived at %v or later", Instant{at: s.FromUS}))
	}
	if !s.ToUS.IsZero() {
		parts = append(parts, fmt.Sprintf("arrived before %v", Instant{at: s.ToUS}))
	}
	if s.Where != "" {
		parts = append(parts, "where "+s.Where)
	}
	return stream.Printable(strings.Join(parts, ", "))
}

// cacheText describes the KV caches, "" if nothing is known.
func cacheText(m *metrics.Raw) string {
	var parts []string
	if m.KV.UtilMean != nil {
		parts = append(parts, percent("%s of the blocks in use", m.KV.UtilMean)+percent(" (at most %s)", m.KV.UtilMax))
	}
	if m.KV.PrefixHitRatio != nil {
		parts = append(parts, percent("%s of prompt tokens found cached", m.KV.PrefixHitRatio))
	}
	if m.KV.Preemptions != nil {
		text := fmt.Sprintf("%d preemptions", *m.KV.Preemptions)
		if m.PreemptionRate != nil {
			text += fmt.Sprintf(" (%.3f per request)", *m.PreemptionRate)
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}

// percent formats a ratio in percent, "" if it is missing.
func percent(format string, share *float64) string {
	if share == nil {
		return ""
	}
	return fmt.Sprintf(format, fmt.Sprintf("%.1f %%", 100**share))
}

// latencies is the table of latencies.
func latencies(m *metrics.Raw) *texttab.Table {
	t := &texttab.Table{FirstWidth: headWidth}
	t.Row("latency, ms", "mean", "p50 ", "p90 ", "p95 ", "p99 ", "max", "count")
	for _, l := range []struct {
		name string
		d    *metrics.Distribution
	}{{"TTFT", m.TTFT}, {"TPOT", m.TPOT}, {"ITL", m.ITL}, {"E2E", m.E2E}, {"queue", m.Queue}} {
		addDistribution(t, l.name, l.d)
	}
	return t
}

// addDistribution appends a row for d.
func addDistribution(t *texttab.Table, name string, d *metrics.Distribution) {
	if d == nil {
		t.Row(name, "-", "- ", "- ", "- ", "- ", "-", "0")
		return
	}
	t.Row(name, fmt.Sprintf("%.2f", d.Mean), quantile(d, 50), quantile(d, 90), quantile(d, 95), quantile(d, 99),
		fmt.Sprintf("%.2f", d.Max), strconv.FormatInt(d.Count, 10))
}

// sessions is the table of session metrics.
func sessions(s *metrics.Sessions) *texttab.Table {
	t := &texttab.Table{FirstWidth: headWidth}
	t.Row("sessions", "mean", "p50 ", "p90 ", "p95 ", "p99 ", "max", "count")
	for _, l := range []struct {
		name string
		d    *metrics.Distribution
	}{{"E2E, ms", s.E2E}, {"critical path, ms", s.Critical}, {"tools, ms", s.Tool}, {"steps", s.Steps},
		{"iterations", s.Iterations}} {
		if l.d != nil {
			addDistribution(t, l.name, l.d)
		}
	}
	return t
}

// quantile formats a percentile in ms and marks it if it has too few samples.
func quantile(d *metrics.Distribution, percent int64) string {
	if d == nil {
		return "- "
	}
	ms, mark := d.P50, " "
	switch percent {
	case 90:
		ms = d.P90
	case 95:
		ms = d.P95
	case 99:
		ms = d.P99
	}
	if d.Count < metrics.MinSamples(percent) {
		mark = "?"
	}
	return fmt.Sprintf("%.2f%s", ms, mark)
}

// groups is the table of the groups of a run, empty if there are fewer than minimum.
func groups(by string, parts map[string]*metrics.Group, minimum int) *texttab.Table {
	t := &texttab.Table{FirstWidth: headWidth, Omitted: len(parts) - maxRows}
	if len(parts) < minimum {
		return t
	}
	t.Row("by "+by, "offered", "completed", "met", "requests/s", "TTFT ms p50 ", "p99 ", "TPOT ms p50 ", "p99 ",
		"E2E ms p50 ", "p99 ")
	names := slices.Sorted(maps.Keys(parts))
	for _, name := range names[:min(len(names), maxRows)] {
		g := parts[name]
		met, rps := "-", "-"
		if g.Goodput != nil {
			met = fmt.Sprintf("%.1f %%", 100*g.Goodput.Ratio)
		}
		if g.Throughput != nil {
			rps = fmt.Sprintf("%.2f", g.Throughput.RPS)
		}
		t.Row(stream.Printable(name), strconv.FormatInt(g.Requests.Offered, 10),
			strconv.FormatInt(g.Requests.Completed, 10), met, rps,
			quantile(g.TTFT, 50), quantile(g.TTFT, 99), quantile(g.TPOT, 50), quantile(g.TPOT, 99), quantile(g.E2E, 50),
			quantile(g.E2E, 99))
	}
	return t
}

// replicas is the table of replicas.
func replicas(m *metrics.Raw) *texttab.Table {
	t := &texttab.Table{FirstWidth: headWidth, Omitted: len(m.Replicas) - maxRows}
	if len(m.Replicas) == 0 {
		return t
	}
	share := func(x *float64) string {
		if x == nil {
			return "-"
		}
		return percent("%s", x)
	}
	t.Row("by replica", "requests", "completed", "tokens", "busy", "peak queue", "peak batch", "KV mean", "KV max",
		"cached", "preemptions")
	for _, r := range m.Replicas[:min(len(m.Replicas), maxRows)] {
		n := func(v int64) string { return strconv.FormatInt(v, 10) }
		t.Row(stream.Printable(fmt.Sprintf("%s/%d", r.Deployment, r.Index)), n(r.Requests), n(r.Completed), n(r.Tokens),
			share(r.Utilization),
			n(r.PeakQueue), n(r.PeakBatch), share(r.KVUtilMean), share(r.KVUtilMax), share(r.PrefixHitRatio),
			n(r.Preemptions))
	}
	return t
}

// reasonCounts lists the number of requests by reason.
func reasonCounts(count map[string]int64) string {
	var list []string
	for _, why := range slices.Sorted(maps.Keys(count)) {
		list = append(list, fmt.Sprintf("%d %s", count[why], stream.Printable(why)))
	}
	return strings.Join(list, ", ")
}
