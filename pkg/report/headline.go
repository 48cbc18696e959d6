package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"blis/pkg/attribution"
	"blis/pkg/metrics"
	"blis/pkg/stream"
)

var headline = section{name: "HEADLINE", write: func(w *writer) {
	m, f := w.Metrics, w.Findings
	if w.Integrity != "" {
		w.line("integrity: %s.", short(w.Integrity, 160))
	}
	w.beginning()
	if w.Selection != "" {
		w.line("selection: %s.", short(w.Selection, 160))
	}
	w.fitness()
	w.line("requests: %s%s.", outcomes(&m.Requests), w.latencies())
	w.idleReplicas()
	w.energy()
	w.lockstep()
	if f != nil && f.Regret != nil && f.Regret.Decisions > 0 {
		w.regret(f.Regret)
	}
	w.line("%s", w.identity())
	if f == nil {
		if w.Shards > 0 {
			w.line("merged from the runs of %d shards: the summary of each run has its causes.", w.Shards)
		} else {
			w.line("the run holds no outcomes (--trace minimal): causes are unknown.")
		}
	}
	for _, warning := range w.Warnings {
		if strings.HasPrefix(warning, "policies:") {
			w.line("note: %s", short(warning, 160))
		}
	}
}}

// energy writes that of the GPUs, if it is counted.
func (w *writer) energy() {
	e := w.Metrics.Energy
	if e == nil {
		return
	}
	parts := []string{number(e.TotalJ) + " J"}
	for _, x := range []struct {
		value *float64
		unit  string
	}{{e.MeanW, "W on average"}, {e.PerOutputToken, "J per output token"}, {e.CarbonG, "g CO2"}} {
		if x.value != nil {
			parts = append(parts, number(*x.value)+" "+x.unit)
		}
	}
	w.line("energy: GPUs %s.", strings.Join(parts, ", "))
}

// lockstep says how much data-parallel ranks wait for each other.
func (w *writer) lockstep() {
	d := w.Metrics.DP
	if d == nil || d.WaitShare == nil {
		return
	}
	w.line("data parallelism: ranks wait for the slowest during %s of their steps' time; %s of their steps are dummy"+
		" batches; the rank with most tokens has %.2f times the mean.", percent(*d.WaitShare), percent(d.IdleShare),
		d.Imbalance)
}

// regret writes the estimated regret of what the estimates rank reliably, as far as that was measured.
func (w *writer) regret(g *attribution.Regret) {
	switch {
	case !w.unreliableE2E():
		w.line("regret (estimated, E2E): %s ms in hindsight, %s avoidable with visible signals, over %d decisions.",
			number(g.HindsightMS), avoidableText(g), g.Decisions)
	case !w.unreliableTTFT():
		w.line("regret (estimated, TTFT): %s ms in hindsight, over %d decisions; left out for E2E, where the estimate"+
			" is not reliable here: %s.", number(w.Metrics.Regret.HindsightTTFTMS), g.Decisions, w.reliability())
	default:
		w.line("regret: left out, since the estimates do not rank alternatives reliably here: %s; trust only"+
			" re-simulated decisions.", w.reliability())
	}
}

// avoidableText is the avoidable regret. Below 0, what the visible signals choose is worse than what was chosen.
func avoidableText(g *attribution.Regret) string {
	if g.AvoidableMS < 0 {
		return fmt.Sprintf("none (%s ms)", number(g.AvoidableMS))
	}
	return number(g.AvoidableMS) + " ms"
}

// topCause names the pattern that explains most of the loss, with its cause and without.
func (w *writer) topCause() variants {
	f := w.Findings
	switch {
	case len(f.Patterns) > 0:
		p := &f.Patterns[0]
		brief := fmt.Sprintf("top cause: P1 %s explains %s of the %s", patternName(p), percent(p.Loss),
			wordsFor[f.Loss.Kind].total)
		return variants{brief + ": " + p.Cause + ".", brief + "."}
	case w.SessionCause() != nil:
		c := w.SessionCause()
		return variants{fmt.Sprintf("top cause: P1 %s: %s.", c.Condition, c.Text),
			fmt.Sprintf("top cause: P1 %s: %s of the sessions' E2E.", c.Condition, percent(c.Share))}
	case f.Loss.TooSmall():
		return variants{fmt.Sprintf("cause: too little loss to look for patterns (fewer than %d requests, or at most"+
			" %s).", attribution.MinLost, percent(attribution.MinLossShare))}
	}
	return variants{"cause: not explained; no condition explains much of it."}
}

// state says how the run went, in fixed words.
func (w *writer) state() string {
	g := w.Metrics.Goodput
	if g == nil || g.Offered == 0 {
		return fmt.Sprintf("state: no SLO targets; %s.", w.lossDefinition())
	}
	word := "failing"
	switch {
	case g.Ratio >= 0.99:
		word = "healthy"
	case g.Ratio >= 0.9:
		word = "degraded"
	}
	text := fmt.Sprintf("state: %s. %d of %d requests met their SLO targets (%s), %d missed", word, g.Met, g.Offered,
		percent(g.Ratio), g.Offered-g.Met)
	if g.NotIssued > 0 {
		all := g.Offered + g.NotIssued
		text = fmt.Sprintf("state: %s. %d of %d calls met their SLO targets (%s), %d missed, %d of them never issued"+
			" (broken sessions)", word, g.Met, all, percent(g.Ratio), all-g.Met, g.NotIssued)
	}
	return text + "."
}

// stateWithTargets says which targets were missed, too.
func (w *writer) stateWithTargets() string {
	text := w.state()
	if l := w.Findings.Loss; l.Kind == attribution.LossMisses && w.Metrics.Goodput != nil {
		text = strings.TrimSuffix(text, ".") + missedTargets(&l.Missed) + "."
	}
	return text
}

// missedTargets says which targets were missed.
func missedTargets(m *attribution.MissCounts) string {
	counts := append([]attribution.Count{{Name: "TTFT", N: m.TTFT}, {Name: "TPOT", N: m.TPOT}, {Name: "E2E", N: m.E2E}},
		m.States...)
	counts = slices.DeleteFunc(counts, func(c attribution.Count) bool { return c.N == 0 })
	if len(counts) == 0 {
		return ""
	}
	return ": " + list(counts, func(c attribution.Count) string { return fmt.Sprintf("%s %d", c.Name, c.N) })
}

// lossDefinition says what counts as lost where there are no targets.
func (w *writer) lossDefinition() string {
	if w.Findings == nil {
		return "no outcomes"
	}
	l := w.Findings.Loss
	if l.Kind == attribution.LossFitness {
		return "the loss is fitness"
	}
	if l.Kind == attribution.LossRegret {
		return fmt.Sprintf("the loss is estimated regret: %s ms over %d of %d decisions", number(l.Total), l.Lost,
			l.Judged)
	}
	return fmt.Sprintf("the loss is requests with TTFT above 5 x the median of %s ms, or not completed: %d of %d",
		number(l.MedianTTFTMS), l.Lost, l.Judged)
}

// maxShownSources is how many numbers of the fitness are listed.
const maxShownSources = 3

// fitnessLost lists by which numbers fitness is lost, the largest first.
func fitnessLost(all []attribution.SourceLoss) string {
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(x, y attribution.SourceLoss) int { return cmp.Compare(y.Lost, x.Lost) })
	text := list(all[:min(len(all), maxShownSources)], func(s attribution.SourceLoss) string {
		by := "not by single requests"
		if s.Requests > 0 {
			by = fmt.Sprintf("%d requests", s.Requests)
		}
		return fmt.Sprintf("%s %s (%s)", short(s.Path, 30), fraction(s.Lost), by)
	})
	if more := len(all) - maxShownSources; more > 0 {
		text += fmt.Sprintf(", %d more", more)
	}
	return text
}

// lossWords are the words for a kind of loss.
type lossWords struct {
	unit      string // what the loss is counted in
	total     string // all of it: what shares are of
	lost, met string // requests
	metAll    string // predicate of requests that lost nothing
}

// wordsFor are the words for each kind of loss.
var wordsFor = [...]lossWords{
	attribution.LossMisses:  {"misses", "misses", "missed", "met", "met their targets"},
	attribution.LossRegret:  {"regretted decisions", "regret", "lost", "not lost", "lost nothing"},
	attribution.LossLate:    {"late requests", "late requests", "lost", "not lost", "lost nothing"},
	attribution.LossFitness: {"requests that lose fitness", "fitness lost", "lost", "not lost", "lost nothing"},
}

// mainLoss says where 90 % of the loss is, and where most of it.
func (w *writer) mainLoss() variants {
	l := w.Findings.Loss
	var all variants
	for n := 2; n > 0; n-- {
		var groups []string
		share := 0.0
		for i, g := range l.Main {
			if share += g.Loss; i < n {
				groups = append(groups, fmt.Sprintf("%s%s %d", w.part(g.Part), parenthesized(short(g.Class, 20)), g.N))
			}
		}
		if more := len(l.Main) - len(groups); more > 0 {
			groups = append(groups, fmt.Sprintf("%d more", more))
		}
		all = append(all, fmt.Sprintf("where: %s; %s of the %s.", strings.Join(groups, ", "), percent(share/l.Total),
			wordsFor[l.Kind].total))
	}
	return all
}

// lossTime says when most of the loss was, if that is a small part of the run.
func lossTime(f *attribution.Findings) string {
	t := f.LossWindow
	if t.UntilUS == 0 {
		return ""
	}
	return fmt.Sprintf("when: 90.0 %% of the %s arrived from %.1f s to %.1f s.", wordsFor[f.Loss.Kind].unit,
		float64(t.FromUS)/1e6, float64(t.UntilUS)/1e6)
}

// identity says which run it is.
func (w *writer) identity() string {
	run, workload := w.Header.Run, labeled(", workload ", stream.ShortDigest(w.WorkloadDigest))
	text := fmt.Sprintf("run: %s %s%s", name(w.Header.Tool), name(w.Header.Version), workload)
	if run != nil {
		k := &run.Key
		text = fmt.Sprintf("run: policy %s%s, seeds workload %d, sim %d, jitter %d",
			name(stream.ShortDigest(k.Policy)), workload, k.WorkloadSeed, k.SimSeed, k.JitterSeed)
	}
	return text + fmt.Sprintf("; %.3f s.", w.Metrics.DurationS)
}

// outcomes counts the final states of the requests, without those that no request has.
func outcomes(r *metrics.Requests) string {
	text := fmt.Sprintf("%d offered, %d completed", r.Offered, r.Completed)
	for _, c := range []struct {
		n     int64
		state string
	}{{r.Rejected, "rejected"}, {r.TimedOut, "timed out"}, {r.Failed, "failed"}, {r.Unfinished, "unfinished"},
		{r.Retries, "retries"}} {
		if c.n > 0 {
			text += fmt.Sprintf(", %d %s", c.n, c.state)
		}
	}
	return text
}

// latencies are the most used percentiles.
func (w *writer) latencies() string {
	text := ""
	for _, d := range []struct {
		name string
		of   *metrics.Distribution
	}{{"TTFT", w.Metrics.TTFT}, {"TPOT", w.Metrics.TPOT}, {"E2E", w.Metrics.E2E}} {
		if d.of != nil {
			text += fmt.Sprintf("; %s ms p50 %s p99 %s", d.name, percentile(d.of, d.of.P50, 50),
				percentile(d.of, d.of.P99, 99))
		}
	}
	if strings.Contains(text, "?") {
		text += " (? few samples)"
	}
	return text
}

// percentile is x, in ms, with a ? if the distribution has too few samples for that percentile.
func percentile(d *metrics.Distribution, x float64, percent int64) string {
	if d.Count < metrics.MinSamples(percent) {
		return number(x) + "?"
	}
	return number(x)
}

// fitness adds the fitness and those of the references.
func (w *writer) fitness() {
	f := w.Input.Fitness
	if f == nil {
		return
	}
	text := fmt.Sprintf("fitness: %.4f", f.Score)
	if w.DefaultFitness {
		share := "met"
		if w.Metrics.Goodput == nil {
			share = "completed"
		}
		text += fmt.Sprintf(" = 0.1 + 0.9 x the share of %s requests (default)", share)
	}
	for _, r := range w.References {
		if r.Score != nil {
			text += fmt.Sprintf("; %s %.4f (%+.4f%s)", r.Name, *r.Score, f.Score-*r.Score, r.significance())
		}
	}
	passed := 0
	for _, g := range f.Gates {
		if g.Passed {
			passed++
		}
	}
	if n := len(f.Gates); n > 0 {
		text += fmt.Sprintf("; gates: %d of %d passed", passed, n)
	}
	w.line("%s.", text)
}

// significance says whether the difference to the reference exceeds noise, where that is known.
func (r *Reference) significance() string {
	switch {
	case r.OtherWorkload:
		return ", of ANOTHER workload"
	case r.Lo == nil:
		return ""
	case *r.Lo <= 0 && *r.Hi >= 0:
		return fmt.Sprintf(", within noise: 95 %% CI %+.4f to %+.4f", *r.Lo, *r.Hi)
	}
	return fmt.Sprintf(", beyond noise: 95 %% CI %+.4f to %+.4f", *r.Lo, *r.Hi)
}
