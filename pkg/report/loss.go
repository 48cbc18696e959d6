package report

import (
	"fmt"
	"strings"

	"blis/pkg/attribution"
	"blis/pkg/fitness"
	"blis/pkg/metrics"
)

var score = section{name: "SCORE", write: func(w *writer) {
	f := w.Input.Fitness
	if f == nil || w.DefaultFitness {
		return
	}
	if len(f.Terms) > 0 {
		rows := [][]string{{"term", "weight", "value", "ideal", "lost"}}
		for _, t := range f.Terms {
			rows = append(rows, []string{short(t.Name, 32), fraction(t.Weight), fraction(t.Value), fraction(t.Ideal),
				fraction(t.Lost)})
		}
		w.table(rows)
	}
	for i := range f.Gates {
		w.line("%s", gate(&f.Gates[i]))
	}
	for _, warning := range f.Warnings {
		w.line("note: %s", short(warning, 160))
	}
}}

func gate(g *fitness.Gate) string {
	if g.Passed {
		return fmt.Sprintf("gate %s passed: %s", name(g.Name), short(g.Expr, 80))
	}
	return fmt.Sprintf("gate %s FAILED by %.4f: %s; %s", name(g.Name), g.Distance, short(g.Expr, 80),
		short(g.Detail, 80))
}

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
	rows := [][]string{head}
	for _, m := range comparedMetrics {
		x := m.value(w.Metrics)
		if x == nil {
			continue
		}
		row := []string{m.name, number(*x) + m.mark(w.Metrics)}
		for _, r := range w.References {
			y := m.value(r.Metrics)
			if y == nil {
				row = append(row, "-", "-")
				continue
			}
			row = append(row, number(*y)+m.mark(r.Metrics), signed(*x-*y))
		}
		rows = append(rows, row)
	}
	w.table(rows)
}}

// comparedMetric is a metric in a comparison. p99Of is the distribution whose p99 it is, else nil.
type comparedMetric struct {
	name  string
	value func(*metrics.Raw) *float64
	p99Of func(*metrics.Raw) *metrics.Distribution
}

// mark is a ? for a percentile of too few samples.
func (c *comparedMetric) mark(m *metrics.Raw) string {
	if c.p99Of != nil && c.p99Of(m).Count < metrics.MinSamples(99) {
		return "?"
	}
	return ""
}

func p99Metric(name string, of func(*metrics.Raw) *metrics.Distribution) comparedMetric {
	return comparedMetric{name, func(m *metrics.Raw) *float64 {
		if d := of(m); d != nil {
			return &d.P99
		}
		return nil
	}, of}
}

var comparedMetrics = []comparedMetric{
	{"met_pct", func(m *metrics.Raw) *float64 {
		if m.Goodput == nil {
			return nil
		}
		x := 100 * m.Goodput.Ratio
		return &x
	}, nil},
	{"completed", func(m *metrics.Raw) *float64 { x := float64(m.Requests.Completed); return &x }, nil},
	p99Metric("ttft_p99_ms", func(m *metrics.Raw) *metrics.Distribution { return m.TTFT }),
	p99Metric("tpot_p99_ms", func(m *metrics.Raw) *metrics.Distribution { return m.TPOT }),
	p99Metric("e2e_p99_ms", func(m *metrics.Raw) *metrics.Distribution { return m.E2E }),
}

// signed formats a difference.
func signed(x float64) string {
	if x >= 0 {
		return "+" + number(x)
	}
	return number(x)
}

var loss = section{name: "LOSS", write: func(w *writer) {
	f := w.Findings
	if f == nil || f.Loss.Lost == 0 {
		return
	}
	l, words := f.Loss, wordsFor[f.Loss.Kind]
	w.partTable([]partRow{{words.lost, l.Missing}, {words.met, l.Meeting}})
	var dominant []string
	for p, n := range l.Dominant {
		if n > 0 {
			dominant = append(dominant, fmt.Sprintf("%s %d", attribution.Part(p), n))
		}
	}
	text := fmt.Sprintf("%s by the part most above the mean of %s requests of their class: %s", words.unit,
		words.met, strings.Join(dominant, ", "))
	if l.ExcessMS > 0 && l.Kind == attribution.LossMisses {
		text += fmt.Sprintf("; above target by %s ms in total", number(l.ExcessMS))
	}
	w.line("%s", text)
}}

// partRow is a row of the table of parts.
type partRow struct {
	name string
	attribution.PartMeans
}

// partTable shows where the time of completed requests went, without the parts that took none.
func (w *writer) partTable(rows []partRow) {
	head, cells := []string{"mean ms", "requests"}, [][]string(nil)
	var means []*[attribution.PartCount]float64
	for _, r := range rows {
		if r.MS != nil {
			cells = append(cells, []string{r.name, fmt.Sprint(r.Requests)})
			means = append(means, r.MS)
		}
	}
	if len(means) == 0 {
		return
	}
	sums := make([]float64, len(means))
	for p := range attribution.PartCount {
		used := false
		for k, m := range means {
			sums[k] += m[p]
			used = used || m[p] > 0
		}
		if !used {
			continue
		}
		head = append(head, attribution.Part(p).String())
		for k, m := range means {
			cells[k] = append(cells[k], number(m[p]))
		}
	}
	head = append(head, "all")
	for k, sum := range sums {
		cells[k] = append(cells[k], number(sum))
	}
	w.table(append([][]string{head}, cells...))
}
