package report

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"blis/pkg/attribution"
	"blis/pkg/metrics"
)

// title is the first section: what was run.
func title(in *Input) []byte {
	var stages []string
	for _, p := range in.Analyzer.Policies() {
		if p[0] != "preemption" || p[1] != "last-in" { // vLLM's own
			stages = append(stages, p[0]+" "+name(p[1]))
		}
	}
	policies := cmp.Or(strings.Join(stages, ", "), "policies unknown")
	return fmt.Appendf(nil, "[%s] %s\n", product, short(policies, 110))
}

var headline = section{"HEADLINE", func(w *writer) {
	room := StandsAlone - len(title(w.Input))
	w.line("%s", w.state())
	if f := w.Findings; f != nil && f.Loss.Lost > 0 {
		w.line("%s", mainLoss(f.Loss))
		w.firstCause(room)
	}
	if w.Selection != "" {
		w.line("of a part: %s.", short(w.Selection, 160))
	}
	w.scores()
	m, f := w.Metrics, w.Findings
	w.line("requests: %s%s.", ends(&m.Requests), w.latencies())
	if f != nil && f.Regret != nil && f.Regret.Decisions > 0 {
		g := f.Regret
		w.line("regret (estimated, E2E): %s ms in hindsight, %s ms avoidable with what was seen; over %d decisions.", ms(g.HindsightMS), ms(g.AvoidableMS), g.Decisions)
	}
	w.line("%s", w.identity())
	if f == nil {
		w.line("the run holds no outcomes (--trace minimal): nothing is known of causes.")
	}
	for _, warning := range w.Warnings {
		if strings.HasPrefix(warning, "policies:") {
			w.line("note: %s", short(warning, 160))
		}
	}
}}

// firstCause says what explains most of the loss, in few words if it had not ended
// within so many characters.
func (w *writer) firstCause(room int) {
	f := w.Findings
	switch {
	case len(f.Patterns) > 0:
		p := &f.Patterns[0]
		brief := fmt.Sprintf("first cause: P1 %s explains %s of it", condition(p), percent(p.Loss))
		if text := brief + ": " + cause(p) + "."; len(w.b)+len(text) < room {
			w.line("%s", text)
		} else {
			w.line("%s.", brief)
		}
	case f.Loss.Little():
		w.line("cause: too little was lost to look for patterns (fewer than %d requests, or %s at most).", attribution.MinLost, percent(attribution.MinLossShare))
	default:
		w.line("cause: no condition holds for much of it.")
	}
}

// state says how the run went, in fixed words.
func (w *writer) state() string {
	g := w.Metrics.Goodput
	if g == nil || g.Offered == 0 {
		return fmt.Sprintf("state: no SLO targets; %s.", w.lossInWords())
	}
	word := "failing"
	switch {
	case g.Ratio >= 0.99:
		word = "healthy"
	case g.Ratio >= 0.9:
		word = "strained"
	}
	text := fmt.Sprintf("state: %s. %d of %d requests met their SLO targets (%s), %d missed", word, g.Met, g.Offered, percent(g.Ratio), g.Offered-g.Met)
	if g.NotIssued > 0 {
		text = fmt.Sprintf("state: %s. %d of %d calls met their SLO targets (%s), %d missed, of which %d were lost: their sessions broke before", word, g.Met, g.Offered+g.NotIssued, percent(g.Ratio), g.Offered+g.NotIssued-g.Met, g.NotIssued)
	}
	if w.Findings != nil && w.Findings.Loss.Kind == attribution.LossMisses {
		if what := missedWhat(w.Findings.Loss); len(text)+len(what) < 150 {
			text += what
		}
	}
	return text + "."
}

// missedWhat says which targets were missed.
func missedWhat(l *attribution.Loss) string {
	var parts []string
	for _, c := range []struct {
		n    int64
		what string
	}{{l.TTFT, "TTFT"}, {l.TPOT, "TPOT"}, {l.E2E, "E2E"}} {
		if c.n > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", c.what, c.n))
		}
	}
	for _, s := range l.States {
		parts = append(parts, fmt.Sprintf("%s %d", s.Name, s.N))
	}
	if len(parts) == 0 {
		return ""
	}
	return ": " + strings.Join(parts, ", ")
}

// lossInWords says what is taken for lost where nothing was promised.
func (w *writer) lossInWords() string {
	if w.Findings == nil {
		return "no outcomes"
	}
	switch l := w.Findings.Loss; l.Kind {
	case attribution.LossRegret:
		return fmt.Sprintf("lost is estimated regret: %s ms over %d of %d decisions", ms(l.Total), l.Lost, l.Judged)
	default:
		return fmt.Sprintf("lost are requests with a TTFT above 5 x the median of %s ms, or not completed: %d of %d", ms(l.MedianTTFTMS), l.Lost, l.Judged)
	}
}

// unit is what the loss is counted in.
func unit(l *attribution.Loss) string {
	switch l.Kind {
	case attribution.LossRegret:
		return "regretted decisions"
	case attribution.LossLate:
		return "late requests"
	}
	return "misses"
}

// mainLoss says where 90 % of the loss is.
func mainLoss(l *attribution.Loss) string {
	var groups []string
	held := 0.0
	for i, g := range l.Main {
		held += g.Loss
		if i < 2 {
			class := ""
			if g.Class != "" {
				class = " of " + short(g.Class, 20)
			}
			groups = append(groups, fmt.Sprintf("%s%s %d", g.Part, class, g.N))
		}
	}
	if more := len(l.Main) - len(groups); more > 0 {
		groups = append(groups, fmt.Sprintf("%d more", more))
	}
	return fmt.Sprintf("where: %s (%s of the loss).", strings.Join(groups, ", "), percent(held/l.Total))
}

// identity says which run it is.
func (w *writer) identity() string {
	h := w.Header
	text := fmt.Sprintf("run: %s %s", name(h.Tool), name(h.Version))
	if run := h.Run; run != nil {
		text = "run: policy " + digest(run.Key.Policy)
	}
	if w.WorkloadDigest != "" {
		text += ", workload " + digest(w.WorkloadDigest)
	}
	if run := h.Run; run != nil {
		text += fmt.Sprintf(", seeds %d (workload) %d %d", run.Key.WorkloadSeed, run.Key.SimSeed, run.Key.JitterSeed)
	}
	return text + fmt.Sprintf("; %.3f s.", w.Metrics.DurationS)
}

// digest is one as people compare it.
func digest(d string) string { return name(d[:min(12, len(d))]) }

// ends says how the requests ended; what never happened is left out.
func ends(r *metrics.Requests) string {
	text := fmt.Sprintf("%d offered, %d completed", r.Offered, r.Completed)
	for _, c := range []struct {
		n    int64
		what string
	}{{r.Rejected, "rejected"}, {r.TimedOut, "timed out"}, {r.Failed, "failed"}, {r.Unfinished, "unfinished"}} {
		if c.n > 0 {
			text += fmt.Sprintf(", %d %s", c.n, c.what)
		}
	}
	return text
}

// latencies are the percentiles that people ask for first.
func (w *writer) latencies() string {
	text := ""
	for _, d := range []struct {
		what string
		of   *metrics.Distribution
	}{{"TTFT", w.Metrics.TTFT}, {"TPOT", w.Metrics.TPOT}, {"E2E", w.Metrics.E2E}} {
		if d.of != nil {
			text += fmt.Sprintf("; %s ms p50 %s p99 %s", d.what, marked(d.of, d.of.P50, 50), marked(d.of, d.of.P99, 99))
		}
	}
	if strings.Contains(text, "?") {
		text += " (? few samples)"
	}
	return text
}

// marked is a percentile in ms, with a ? if it is of fewer samples than it takes.
func marked(d *metrics.Distribution, x float64, percent int64) string {
	if d.Count < metrics.MinSamples(percent) {
		return ms(x) + "?"
	}
	return ms(x)
}

// scores says what the fitness is, beside that of the references.
func (w *writer) scores() {
	if w.Fitness == nil {
		return
	}
	text := fmt.Sprintf("fitness: %.4f", w.Fitness.Score)
	if w.DefaultFitness {
		text += " = 0.1 + 0.9 x the share that met (no --fitness is given)"
		if w.Metrics.Goodput == nil {
			text = fmt.Sprintf("fitness: %.4f = 0.1 + 0.9 x the share that completed (no --fitness is given)", w.Fitness.Score)
		}
	}
	for _, r := range w.References {
		if r.Score != nil {
			text += fmt.Sprintf("; %s %.4f (%+.4f%s)", r.Name, *r.Score, w.Fitness.Score-*r.Score, r.noise())
		}
	}
	failed := 0
	for _, g := range w.Fitness.Gates {
		if !g.Passed {
			failed++
		}
	}
	if n := len(w.Fitness.Gates); n > 0 {
		text += fmt.Sprintf("; gates: %d of %d passed", n-failed, n)
	}
	w.line("%s.", text)
}

// noise says whether the difference to the reference could be one of chance, as far as
// that is known.
func (r *Reference) noise() string {
	switch {
	case r.OtherWorkload:
		return ", of ANOTHER workload"
	case r.Lo == nil:
		return ""
	case *r.Lo <= 0 && *r.Hi >= 0:
		return fmt.Sprintf(", within noise: 95 %% %+.4f to %+.4f", *r.Lo, *r.Hi)
	}
	return fmt.Sprintf(", beyond noise: 95 %% %+.4f to %+.4f", *r.Lo, *r.Hi)
}

// percent is a share with one decimal.
func percent(share float64) string {
	if math.IsNaN(share) {
		return "-"
	}
	return fmt.Sprintf("%.1f %%", 100*share)
}

// ms is a time, or another mean, with one decimal below 100 and whole above.
func ms(x float64) string {
	if math.Abs(x) < 99.95 {
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.0f", x)
}
