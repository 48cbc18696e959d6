package diff

import (
	"context"
	"fmt"
	"io"
	"strings"

	"blis/pkg/metrics"
	"blis/pkg/stat"
	"blis/pkg/stream"
	"blis/pkg/texttab"
)

// Ranking compares the ranks of simulations with those of the recordings they simulate.
type Ranking struct {
	Metric string `json:"metric"`
	// HigherIsBetter is that of the metric (metrics.PathInfo).
	HigherIsBetter bool         `json:"higher_is_better"`
	Pairs          []RankedPair `json:"pairs"`
	// Spearman and Kendall (tau-b) are rank correlations; absent if all values of a side
	// are equal.
	Spearman *float64 `json:"spearman,omitempty"`
	Kendall  *float64 `json:"kendall,omitempty"`
	// ComparablePairs is the number of pairs of runs whose measured values differ;
	// ConcordantPairs of them are simulated in the same order.
	ConcordantPairs int `json:"concordant_pairs"`
	ComparablePairs int `json:"comparable_pairs"`
	// Gap is the mean absolute difference of simulated and measured values, GapPercent
	// the same relative to the measured value.
	Gap        float64  `json:"mean_gap"`
	GapPercent *float64 `json:"mean_gap_percent,omitempty"`
	// Winner is the simulation's best run and Best that of the recordings, as indices in
	// Pairs. Regret is how much worse Winner was measured than Best; RegretPercent is
	// relative to Best.
	Winner        int      `json:"winner"`
	Best          int      `json:"best"`
	Regret        float64  `json:"regret"`
	RegretPercent *float64 `json:"regret_percent,omitempty"`
	Warnings      []string `json:"warnings"`
}

// RankedPair is one simulation and its recording.
type RankedPair struct {
	Name      string   `json:"name"`
	Recording string   `json:"recording"`
	Measured  float64  `json:"measured"`
	Simulated float64  `json:"simulated"`
	Percent   *float64 `json:"percent,omitempty"`
}

// rank reads pairs of streams and writes their ranking.
func rank(ctx context.Context, open Open, out io.Writer, o *Options) error {
	path, _ := metrics.LookupPath(o.RankBy)
	r := &Ranking{Metric: o.RankBy, HigherIsBetter: path.HigherIsBetter, Pairs: []RankedPair{}, Warnings: []string{}}
	for i := 0; i < len(o.Streams); i += 2 {
		pair, warnings, err := readPair(ctx, open, o, o.Streams[i], o.Streams[i+1])
		if err != nil {
			return err
		}
		r.Pairs = append(r.Pairs, pair)
		r.Warnings = append(r.Warnings, warnings...)
	}
	r.compute()
	text, err := render(r, o.Format)
	if err == nil {
		_, err = out.Write(text)
	}
	return err
}

// readPair reads one pair, which must have the same requests unless --unpaired is given.
// Of a run and a recording the run is the simulation, of two runs the first.
func readPair(ctx context.Context, open Open, o *Options, simulation, measured string) (RankedPair, []string, error) {
	c := newComparison(open, o)
	if err := c.read(ctx, simulation, measured); err != nil {
		return RankedPair{}, nil, err
	}
	a, b := c.sides[0], c.sides[1]
	if a.recorded != nil && b.recorded != nil {
		return RankedPair{}, nil, fmt.Errorf(
			"%s and %s are two recordings; --rank needs pairs of a run and its recording", simulation, measured)
	}
	if _, err := c.pair(); err != nil {
		return RankedPair{}, nil, err
	}
	if err := c.computeMetrics(ctx); err != nil {
		return RankedPair{}, nil, err
	}
	m := compareMetrics(a.raw, b.raw, nil).at(o.RankBy)
	for i, x := range []*float64{m.A, m.B} {
		if x == nil {
			return RankedPair{}, nil, fmt.Errorf("%s has no %s", c.sides[i].name, o.RankBy)
		}
	}
	p := RankedPair{Name: simulation, Recording: measured, Simulated: *m.A, Measured: *m.B}
	if a.recorded != nil {
		p = RankedPair{Name: measured, Recording: simulation, Simulated: *m.B, Measured: *m.A}
	}
	if p.Measured != 0 {
		percent := 100 * (p.Simulated/p.Measured - 1)
		p.Percent = &percent
	}
	return p, c.warnings, nil
}

// compute sets everything that follows from the pairs.
func (r *Ranking) compute() {
	var x, y []float64
	percentGap, n := 0.0, 0
	better := func(a, b float64) bool { return a != b && (a > b) == r.HigherIsBetter }
	for i, p := range r.Pairs {
		x, y = append(x, p.Simulated), append(y, p.Measured)
		r.Gap += abs(p.Simulated-p.Measured) / float64(len(r.Pairs))
		if p.Percent != nil {
			percentGap += abs(*p.Percent)
			n++
		}
		if better(p.Simulated, r.Pairs[r.Winner].Simulated) {
			r.Winner = i
		}
		if better(p.Measured, r.Pairs[r.Best].Measured) {
			r.Best = i
		}
	}
	if n > 0 {
		percentGap /= float64(n)
		r.GapPercent = &percentGap
	}
	o := stat.ComparePairs(x, y)
	r.ConcordantPairs, r.ComparablePairs = o.Concordant, o.Pairs
	if rho, ok := stat.Spearman(x, y); ok {
		r.Spearman = &rho
	}
	if tau, ok := o.Kendall(); ok {
		r.Kendall = &tau
	}
	best := r.Pairs[r.Best].Measured
	r.Regret = abs(r.Pairs[r.Winner].Measured - best)
	if best != 0 {
		percent := 100 * r.Regret / abs(best)
		r.RegretPercent = &percent
	}
}

func abs(x float64) float64 { return max(x, -x) }

// text renders the ranking for people.
func (r *Ranking) text() []byte {
	var b []byte
	line := func(head, format string, args ...any) {
		b = fmt.Appendf(b, "%-11s "+format+"\n", append([]any{head}, args...)...)
	}
	better := "lower is better"
	if r.HigherIsBetter {
		better = "higher is better"
	}
	t := &texttab.Table{}
	t.Row("by "+r.Metric+", "+better, "measured", "simulated", "error %", "")
	for i, p := range r.Pairs {
		var marks []string
		if i == r.Best {
			marks = append(marks, "best")
		}
		if i == r.Winner {
			marks = append(marks, "simulated best")
		}
		percent := "-"
		if p.Percent != nil {
			percent = fmt.Sprintf("%+.1f", *p.Percent)
		}
		t.Row(stream.Printable(p.Name), number(p.Measured), number(p.Simulated), percent, strings.Join(marks, ", "))
	}
	b = append(t.Append(b), '\n')
	line("order", "%d of %d pairs in the measured order; Spearman %s, Kendall %s", r.ConcordantPairs, r.ComparablePairs,
		numberOrDash(r.Spearman, millisecond), numberOrDash(r.Kendall, millisecond))
	line("gap", "%s on average, %s %%", number(r.Gap), numberOrDash(r.GapPercent, millisecond))
	line("regret", "%s, %s %%, of choosing the run that simulates best", number(r.Regret),
		numberOrDash(r.RegretPercent, millisecond))
	for i, w := range r.Warnings {
		if i == 0 {
			b = append(b, "\nwarnings\n"...)
		}
		b = fmt.Appendf(b, "  %s\n", stream.Printable(w))
	}
	return b
}
