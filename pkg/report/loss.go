package report

import (
	"fmt"
	"slices"
	"strings"

	"blis/pkg/attribution"
	"blis/pkg/metrics"
)

var score = section{name: "SCORE", write: func(w *writer) {
	f := w.Input.Fitness
	if f == nil || w.DefaultFitness {
		return
	}
	if len(f.Terms) > 0 {
		t := newTable("term", "weight", "value", "ideal", "lost")
		for _, x := range f.Terms {
			t.Add(short(x.Name, 32), fraction(x.Weight), fraction(x.Value), fraction(x.Ideal), fraction(x.Lost))
		}
		w.table(t)
	}
	for _, g := range f.Gates {
		if g.Passed {
			w.line("gate %s passed: %s", name(g.Name), short(g.Expr, 80))
		} else {
			w.line("gate %s FAILED by %.4f: %s", name(g.Name), g.Distance, short(g.Text(), 160))
		}
	}
	for _, warning := range f.Warnings {
		w.line("note: %s", short(warning, 160))
	}
}}

// fraction formats a part of a score.
func fraction(x float64) string { return fmt.Sprintf("%.4f", x) }

// comparison is the difference of metrics from those of the references.
var comparison = section{name: "COMPARED", write: func(w *writer) {
	if len(w.References) == 0 {
		return
	}
	head := []string{"metric", "run"}
	for _, r := range w.References {
		head = append(head, r.Name, "difference")
	}
	t := newTable(head...)
	own, others := metrics.ByPath(w.Metrics), make([]map[string]float64, len(w.References))
	for i, r := range w.References {
		others[i] = metrics.ByPath(r.Metrics)
	}
	for _, m := range comparedMetrics {
		x, ok := own[m.path]
		if !ok {
			continue
		}
		row := []any{m.name, number(m.factor*x) + fewSamples(own, m.path)}
		for _, other := range others {
			y, ok := other[m.path]
			if !ok {
				row = append(row, "-", "-")
				continue
			}
			difference := number(m.factor*x - m.factor*y)
			if x >= y {
				difference = "+" + difference
			}
			row = append(row, number(m.factor*y)+fewSamples(other, m.path), difference)
		}
		t.Add(row...)
	}
	w.table(t)
}}

// fewSamples is a ? for a p99 of too few samples.
func fewSamples(values map[string]float64, path string) string {
	of, isP99 := strings.CutSuffix(path, ".p99")
	if isP99 && values[of+".count"] < float64(metrics.MinSamples(99)) {
		return "?"
	}
	return ""
}

var comparedMetrics = []struct {
	name, path string
	factor     float64
}{
	{"met_pct", "goodput.ratio", 100}, {"completed", "requests.completed", 1}, {"ttft_p99_ms", "ttft.p99", 1},
	{"tpot_p99_ms", "tpot.p99", 1}, {"e2e_p99_ms", "e2e.p99", 1},
}

var loss = section{name: "LOSS", explains: true, write: func(w *writer) {
	l := w.Findings.Loss
	if l.Lost == 0 {
		return
	}
	words := wordsFor[l.Kind]
	w.partTable([]partRow{{words.lost, l.LostParts}, {words.met, l.MetParts}})
	var dominant []string
	for p, n := range l.Dominant {
		if n > 0 {
			dominant = append(dominant, fmt.Sprintf("%s %d", w.part(attribution.Part(p)), n))
		}
	}
	text := fmt.Sprintf("%s by the part furthest above its mean in %s requests of the class: %s", words.unit,
		words.met, strings.Join(dominant, ", "))
	if l.ExcessMS > 0 && l.Kind == attribution.LossMisses {
		text += fmt.Sprintf("; above target by %s ms", number(l.ExcessMS))
	}
	w.line("%s", text)
}}

// part names a part of the time. A client sees no start of the prefill: in its recordings the time before the first
// token has that in the queue, too. Without flow control, requests wait before they are routed for backpressure.
func (w *writer) part(p attribution.Part) string {
	if p == attribution.PartPrefill && w.Header.Recording != nil && w.Metrics.Queue == nil {
		return "before the first token (queue and prefill)"
	}
	if p == attribution.PartFlow && w.Analyzer.HasOnlyBackpressure() {
		return "backpressure"
	}
	return p.String()
}

// partRow is a row of the table of parts.
type partRow struct {
	name string
	attribution.PartMeans
}

// partTable shows where the time of completed requests went, without the parts that took none.
func (w *writer) partTable(rows []partRow) {
	rows = slices.DeleteFunc(rows, func(r partRow) bool { return r.Requests == 0 })
	if len(rows) == 0 {
		return
	}
	head := []string{"mean ms", "requests"}
	used := func(p int) bool { return slices.ContainsFunc(rows, func(r partRow) bool { return r.MS[p] > 0 }) }
	for p := range attribution.PartCount {
		if used(p) {
			head = append(head, w.part(attribution.Part(p)))
		}
	}
	t := newTable(append(head, "all")...)
	for _, r := range rows {
		cells, sum := []any{r.name, r.Requests}, 0.0
		for p, ms := range r.MS {
			if sum += ms; used(p) {
				cells = append(cells, number(ms))
			}
		}
		t.Add(append(cells, number(sum))...)
	}
	w.table(t)
}
