package summarize

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"blis/pkg/metrics"
	"blis/pkg/stream"
	"blis/pkg/texttab"
)

// text renders the summary of one run or workload for people: ASCII, with a unit in each
// line or column. scored adds the explanation of the score.
func (d *Document) text(scored bool) []byte {
	var p page
	if len(d.Refs) > 0 && d.Refs[0].Stream != "" {
		p.line(d.Refs[0].Stream, "%s", d.Refs[0].text())
	}
	if d.Status == statusError {
		p.line("error", "%s", d.Error)
		p.line("score", "%.1f", *d.CombinedScore)
		return p
	}
	if d.Selection != nil {
		p.line("selection", "%s", d.Selection.text())
	}
	if d.Workload != nil {
		p.workload(d.Workload)
		p.list("warnings", d.Warnings, len(d.Warnings))
		return p
	}
	if scored {
		p.score(d.Fitness)
	}
	p.run(d.Metrics.Raw)
	var anomalies []string
	for i := range d.Anomalies {
		anomalies = append(anomalies, anomalyText(&d.Anomalies[i]))
	}
	p.list("anomalies, by end time", anomalies, maxRows)
	p.list("warnings (? marks percentiles of fewer than 10/(1-p) samples)", d.Warnings, len(d.Warnings))
	return p
}

// run adds the metrics of a run.
func (p *page) run(m *metrics.Raw) {
	r := &m.Requests
	admitted := ""
	if r.Admitted != nil {
		admitted = fmt.Sprintf("; %d admitted", *r.Admitted) + percent(" (%s)", m.AdmissionRate)
	}
	p.line("requests", "%d offered = %d completed + %d rejected + %d timed out + %d failed + %d unfinished%s",
		r.Offered, r.Completed, r.Rejected, r.TimedOut, r.Failed, r.Unfinished,
		admitted+retries(r))
	if len(m.Reasons) > 0 {
		p.line("not done", "%s", reasonCounts(m.Reasons))
	}
	if s := m.Sessions; s != nil {
		p.line("sessions", "%d offered = %d completed + %d broken + %d unfinished%s%s", s.Offered, s.Completed,
			s.Broken, s.Unfinished, percent("; %s met all targets of their class", s.Attainment),
			percent("; %s of the parallel calls completed", s.FanOutUtilization))
	}
	p.line("duration", "%.3f s, from the first arrival to the last final state", m.DurationS)
	p.table(distributions("latency, ms", []namedDistribution{{"TTFT", m.TTFT}, {"TPOT", m.TPOT}, {"ITL", m.ITL},
		{"E2E", m.E2E}, {"queue", m.Queue}}))
	if s := m.Sessions; s != nil {
		rows := []namedDistribution{{"E2E, ms", s.E2E}, {"critical path, ms", s.Critical}, {"tools, ms", s.Tool},
			{"steps", s.Steps}, {"iterations", s.Iterations}}
		p.table(distributions("sessions", slices.DeleteFunc(rows, func(d namedDistribution) bool {
			return d.Distribution == nil
		})))
	}
	p.text("\n")
	p.totals(m)
	p.tables(groups("class", m.Cls, 1), groups("tenant", m.Tenants, 2), groups("model", m.Models, 2), replicas(m))
}

// totals adds the lines about the whole run.
func (p *page) totals(m *metrics.Raw) {
	if t := m.Throughput; t != nil {
		p.line("throughput", "%.2f requests/s, %.0f output tokens/s, %.0f tokens/s including prompts; "+
			"completed requests only", t.RPS, t.OutputTPS, t.TotalTPS)
	}
	if g := m.Goodput; g != nil {
		rate := ""
		if g.RPS != nil {
			rate = fmt.Sprintf("%.2f requests/s; ", *g.RPS)
		}
		p.line("goodput", "%s%d of %d offered requests with targets met them (%.1f %%)", rate, g.Met, g.Offered,
			100*g.Ratio)
	}
	if l := m.Load; l != nil {
		p.line("load", "%.3f of the cluster's capacity with the measured cache hits, %.3f without", l.Offered,
			l.Uncached)
	}
	if text := cacheText(m); text != "" {
		p.line("KV cache", "%s", text)
	}
	if l := m.LoRA; l != nil {
		p.line("LoRA", "%d adapters loaded, %d copied to a GPU; steps waited %.0f ms for them", l.Loads, l.Copies,
			l.LoadMS)
	}
	if d := m.DP; d != nil && d.WaitShare != nil {
		p.line("data parallel", "ranks wait %.1f %% of their steps for the slowest; %.1f %% of their steps are dummy "+
			"batches; the widest has %.2f x the mean tokens", 100**d.WaitShare, 100*d.IdleShare, d.Imbalance)
	}
	if s := m.StructuredOutput; s != nil {
		p.line("grammars", "%d requests, %d compilations; %d waited for theirs, %.0f ms in all; steps waited %.0f ms "+
			"for masks", s.Requests, s.Compilations, s.Waits, s.WaitMS, s.StepWaitMS)
	}
	if e := m.Encoder; e != nil {
		p.line("encoder",
			"%d items with %d tokens in %.0f ms; %.1f %% found in the encoder cache, %d in cached prefixes; "+
				"%d chunks cut", e.Items, e.Tokens, e.MS, 100*e.CacheHitRatio, e.PrefixHits, e.Cuts)
	}
	if e := m.EncodePool; e != nil {
		p.line("encode pool", "%s", encodePoolText(e))
	}
	if m.Fairness != nil {
		p.line("fairness", "%.4f Jain over %d tenants, of completed/offered output tokens", m.Fairness.Jain,
			len(m.Tenants))
	}
	if m.TailBlowup != nil {
		p.line("tail", "p99 of E2E is %.2f x p50", *m.TailBlowup)
	}
	if m.Cost != nil {
		p.line("cost", "%.1f GPU seconds, %.1f replica seconds", m.Cost.GPUS, m.Cost.ReplicaS)
	}
	if m.Energy != nil {
		p.line("energy", "%s", energyText(m.Energy))
	}
}

// encodePoolText says what encode replicas did.
func encodePoolText(e *metrics.EncodePool) string {
	text := fmt.Sprintf("%d replicas encoded %d items with %d tokens, %d more were in their caches", e.Replicas,
		e.Items, e.Tokens, e.CacheHits)
	if e.Utilization != nil {
		text += fmt.Sprintf("; busy for %.1f %% of the time", 100**e.Utilization)
	}
	if e.Encode != nil {
		text += fmt.Sprintf("; requests waited %.1f ms (mean) for them", e.Encode.Mean)
	}
	if e.Transfer != nil {
		text += fmt.Sprintf("; %d transfers of embeddings took %.2f ms (mean)", e.Transfers, e.Transfer.Mean)
	}
	return text
}

// energyText has the energy of the GPUs, and what it comes to.
func energyText(e *metrics.Energy) string {
	text := fmt.Sprintf("%.0f J", e.TotalJ)
	if e.TotalJ > 0 {
		text += fmt.Sprintf(" (%.0f %% while no step ran)", 100*e.IdleJ/e.TotalJ)
	}
	if e.MeanW != nil {
		text += fmt.Sprintf(", %.0f W on average", *e.MeanW)
	}
	if e.PerOutputToken != nil {
		text += fmt.Sprintf(", %.3g J per output token", *e.PerOutputToken)
	}
	if e.CarbonG != nil {
		text += fmt.Sprintf(", %.3g g CO2", *e.CarbonG)
	}
	return text
}

func (id *Identity) text() string {
	parts := []string{id.Tool + " " + id.Version}
	for _, digest := range [][2]string{{"policy", id.PolicyDigest}, {"config", id.ConfigDigest},
		{"workload", id.WorkloadDigest}} {
		if digest[1] != "" {
			parts = append(parts, digest[0]+" "+digest[1])
		}
	}
	if id.Shards > 0 {
		parts = append(parts, fmt.Sprintf("%d shards merged", id.Shards))
	}
	switch {
	case id.SimSeed != nil:
		parts = append(parts, fmt.Sprintf("seeds %d (workload) %d (simulation)", *id.WorkloadSeed, *id.SimSeed))
	case id.WorkloadSeed != nil:
		parts = append(parts, fmt.Sprintf("seed %d", *id.WorkloadSeed))
	}
	return strings.Join(parts, ", ")
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
	return strings.Join(parts, ", ")
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
	if t := m.KV.Tiers; t != nil {
		parts = append(parts, percent("%s loaded from the memory of the host", t.CPU.HitRatio))
		if t.Storage != nil {
			parts = append(parts, percent("%s from storage", t.Storage.HitRatio))
		}
	}
	if d := m.SpecDecode; d != nil {
		parts = append(parts, percent("%s of drafts accepted", &d.AcceptanceRate)+
			fmt.Sprintf(", %.2f tokens a step", d.MeanAcceptanceLength))
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

// namedDistribution is a row of a table of distributions.
type namedDistribution struct {
	name string
	*metrics.Distribution
}

// distributions is the table of these distributions.
func distributions(of string, rows []namedDistribution) *texttab.Table {
	t := newTable(of, "mean", "p50 ", "p90 ", "p95 ", "p99 ", "max", "count")
	for _, d := range rows {
		if d.Distribution == nil {
			t.Row(d.name, "-", "- ", "- ", "- ", "- ", "-", "0")
			continue
		}
		t.Add(d.name, fmt.Sprintf("%.2f", d.Mean), quantile(d.Distribution, 50), quantile(d.Distribution, 90),
			quantile(d.Distribution, 95), quantile(d.Distribution, 99), fmt.Sprintf("%.2f", d.Max), d.Count)
	}
	return t
}

// quantile formats a percentile in ms and marks it if it has too few samples.
func quantile(d *metrics.Distribution, percent int64) string {
	if d == nil {
		return "- "
	}
	ms, mark := map[int64]float64{50: d.P50, 90: d.P90, 95: d.P95, 99: d.P99}[percent], " "
	if d.Count < metrics.MinSamples(percent) {
		mark = "?"
	}
	return fmt.Sprintf("%.2f%s", ms, mark)
}

// groups is the table of the groups of a run, only a header if there are fewer than minimum.
func groups(by string, parts map[string]*metrics.Group, minimum int) *texttab.Table {
	t := newTable("by "+by, "offered", "completed", "met", "requests/s", "TTFT ms p50 ", "p99 ", "TPOT ms p50 ",
		"p99 ", "E2E ms p50 ", "p99 ")
	for name, g := range shown(t, parts, minimum) {
		met, rps := "-", "-"
		if g.Goodput != nil {
			met = fmt.Sprintf("%.1f %%", 100*g.Goodput.Ratio)
		}
		if g.Throughput != nil {
			rps = fmt.Sprintf("%.2f", g.Throughput.RPS)
		}
		t.Add(name, g.Requests.Offered, g.Requests.Completed, met, rps, quantile(g.TTFT, 50),
			quantile(g.TTFT, 99), quantile(g.TPOT, 50), quantile(g.TPOT, 99), quantile(g.E2E, 50), quantile(g.E2E, 99))
	}
	return t
}

// replicas is the table of replicas.
func replicas(m *metrics.Raw) *texttab.Table {
	t := newTable("by replica", "requests", "completed", "tokens", "busy", "peak queue", "peak batch", "KV mean",
		"KV max", "cached", "preemptions")
	t.Omitted = len(m.Replicas) - maxRows
	share := func(x *float64) string { return cmp.Or(percent("%s", x), "-") }
	for _, r := range m.Replicas[:min(len(m.Replicas), maxRows)] {
		t.Add(stream.Printable(fmt.Sprintf("%s/%d", r.Deployment, r.Index)), r.Requests,
			r.Completed, r.Tokens, share(r.Utilization), r.PeakQueue,
			r.PeakBatch, share(r.KVUtilMean), share(r.KVUtilMax), share(r.PrefixHitRatio),
			r.Preemptions)
	}
	return t
}

// retries says how often clients sent requests again, "" if they did not.
func retries(r *metrics.Requests) string {
	if r.Retries == 0 {
		return ""
	}
	return fmt.Sprintf("; %d retries", r.Retries)
}

// reasonCounts lists the number of requests by reason.
func reasonCounts(count map[string]int64) string {
	var list []string
	for _, why := range slices.Sorted(maps.Keys(count)) {
		list = append(list, fmt.Sprintf("%d %s", count[why], why))
	}
	return strings.Join(list, ", ")
}
