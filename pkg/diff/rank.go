package diff

import (
	"context"
	"fmt"
	"io"
	"math"
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
		if err := r.readPair(ctx, &comparison{options: o, open: open}, o.Streams[i], o.Streams[i+1]); err != nil {
			return err
		}
	}
	r.compute()
	return write(out, r, o.Format)
}

// readPair adds one pair, which must have the same requests unless --unpaired is given.
// Of a run and a recording the run is the simulation, of two runs the first.
func (r *Ranking) readPair(ctx context.Context, c *comparison, simulation, measured string) error {
	if err := c.read(ctx, simulation, measured); err != nil {
		return err
	}
	a, b := c.sides[0], c.sides[1]
	if a.recorded != nil && b.recorded != nil {
		return fmt.Errorf("%s and %s are two recordings; --rank needs pairs of a run and its recording", simulation,
			measured)
	}
	if _, err := c.pair(); err != nil {
		return err
	}
	if err := c.computeMetrics(ctx); err != nil {
		return err
	}
	m := compareMetrics(a.raw, b.raw, nil).at(r.Metric)
	for i, x := range []*float64{m.A, m.B} {
		if x == nil {
			return fmt.Errorf("%s has no %s", c.sides[i].name, r.Metric)
		}
	}
	p := RankedPair{Name: simulation, Recording: measured, Simulated: *m.A, Measured: *m.B}
	if a.recorded != nil {
		p = RankedPair{Name: measured, Recording: simulation, Simulated: *m.B, Measured: *m.A}
	}
	p.Percent = percentError(p.Simulated, p.Measured)
	r.Pairs, r.Warnings = append(r.Pairs, p), append(r.Warnings, c.warnings...)
	return nil
}

// compute sets everything that follows from the pairs.
func (r *Ranking) compute() {
	var x, y []float64
	percentGap, n := 0.0, 0.0
	better := func(a, b float64) bool { return a != b && (a > b) == r.HigherIsBetter }
	for i, p := range r.Pairs {
		x, y = append(x, p.Simulated), append(y, p.Measured)
		r.Gap += math.Abs(p.Simulated-p.Measured) / float64(len(r.Pairs))
		if p.Percent != nil {
			percentGap += math.Abs(*p.Percent)
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
		r.GapPercent = new(percentGap / n)
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
	r.Regret = math.Abs(r.Pairs[r.Winner].Measured - best)
	if best != 0 {
		r.RegretPercent = new(100 * r.Regret / math.Abs(best))
	}
}

// text renders the ranking for people.
func (r *Ranking) text() []byte {
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
		t.Row(stream.Printable(p.Name), number(p.Measured), number(p.Simulated), numberOrDash(p.Percent, percent),
			strings.Join(marks, ", "))
	}
	b := append(t.Append(nil), '\n')
	b = appendLine(b, "order", "%d of %d pairs in the measured order; Spearman %s, Kendall %s", r.ConcordantPairs,
		r.ComparablePairs, numberOrDash(r.Spearman, millisecond), numberOrDash(r.Kendall, millisecond))
	b = appendLine(b, "gap", "%s on average, %s %%", number(r.Gap), numberOrDash(r.GapPercent, millisecond))
	b = appendLine(b, "regret", "%s, %s %%, of choosing the run that simulates best", number(r.Regret),
		numberOrDash(r.RegretPercent, millisecond))
	return appendWarnings(b, r.Warnings)
}
