package diff

import (
	"context"
	"fmt"
	"io"
	"strings"

	"blis/pkg/metrics"
	"blis/pkg/stat"
	"blis/pkg/stream"
)

// Ranking says whether simulations rank what they simulate as the recordings do.
type Ranking struct {
	By string `json:"by"`
	// Higher is better by metrics.Place; of all else lower is.
	Higher bool     `json:"higher_is_better"`
	Pairs  []Ranked `json:"pairs"`
	// Spearman and Kendall (tau-b) are correlations of ranks; absent where a side has
	// all alike.
	Spearman *float64 `json:"spearman,omitempty"`
	Kendall  *float64 `json:"kendall,omitempty"`
	// Ordered of the Comparable pairs of pairs, those that were measured to differ, are
	// simulated in the same order.
	Ordered    int `json:"ordered_right"`
	Comparable int `json:"comparable"`
	// Gap is the mean size of simulated − measured, GapPercent of that over measured.
	Gap        float64  `json:"mean_gap"`
	GapPercent *float64 `json:"mean_gap_percent,omitempty"`
	// Winner is the simulation's best and Best that of the recordings, both by their
	// place in Pairs, from 0; Regret is by how much worse Winner was measured than Best,
	// and over Best in %.
	Winner        int      `json:"winner"`
	Best          int      `json:"best"`
	Regret        float64  `json:"regret"`
	RegretPercent *float64 `json:"regret_percent,omitempty"`
	Warnings      []string `json:"warnings"`
}

// Ranked is one pair.
type Ranked struct {
	Name      string   `json:"name"`
	Recording string   `json:"recording"`
	Measured  float64  `json:"measured"`
	Simulated float64  `json:"simulated"`
	Percent   *float64 `json:"percent,omitempty"`
}

// rank reads pairs of streams and writes how they are ranked.
func rank(ctx context.Context, open Open, out io.Writer, o *Options) error {
	place, _ := metrics.PlaceOf(o.By)
	r := &Ranking{By: o.By, Higher: place.Higher, Pairs: []Ranked{}, Warnings: []string{}}
	for i := 0; i < len(o.Streams); i += 2 {
		pair, warnings, err := ranked(ctx, open, o, o.Streams[i], o.Streams[i+1])
		if err != nil {
			return err
		}
		r.Pairs = append(r.Pairs, pair)
		r.Warnings = append(r.Warnings, warnings...)
	}
	r.judge()
	text, err := render(r, o.Format)
	if err == nil {
		_, err = out.Write(text)
	}
	return err
}

// ranked reads one pair, which must be of the same requests unless that is not
// asked for. Of a run and a recording the run is the simulation, of two runs the first.
func ranked(ctx context.Context, open Open, o *Options, simulation, measured string) (Ranked, []string, error) {
	c := newComparison(open, o)
	if err := c.read(ctx, simulation, measured); err != nil {
		return Ranked{}, nil, err
	}
	a, b := c.sides[0], c.sides[1]
	if a.recorded != nil && b.recorded != nil {
		return Ranked{}, nil, fmt.Errorf("%s and %s are two recordings; --rank takes pairs of a run and the recording of it", simulation, measured)
	}
	if _, err := c.pair(); err != nil {
		return Ranked{}, nil, err
	}
	if err := c.measure(ctx); err != nil {
		return Ranked{}, nil, err
	}
	m := compareMetrics(a.raw, b.raw, nil).at(o.By)
	for i, x := range []*float64{m.A, m.B} {
		if x == nil {
			return Ranked{}, nil, fmt.Errorf("%s: has no %s", c.sides[i].name, o.By)
		}
	}
	p := Ranked{Name: simulation, Recording: measured, Simulated: *m.A, Measured: *m.B}
	if a.recorded != nil {
		p = Ranked{Name: measured, Recording: simulation, Simulated: *m.B, Measured: *m.A}
	}
	if p.Measured != 0 {
		percent := 100 * (p.Simulated/p.Measured - 1)
		p.Percent = &percent
	}
	return p, c.warnings, nil
}

// judge fills in what follows from the pairs.
func (r *Ranking) judge() {
	var x, y []float64
	gap, n := 0.0, 0
	better := func(a, b float64) bool { return a != b && (a > b) == r.Higher }
	for i, p := range r.Pairs {
		x, y = append(x, p.Simulated), append(y, p.Measured)
		r.Gap += abs(p.Simulated-p.Measured) / float64(len(r.Pairs))
		if p.Percent != nil {
			gap += abs(*p.Percent)
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
		gap /= float64(n)
		r.GapPercent = &gap
	}
	o := stat.Compare(x, y)
	r.Ordered, r.Comparable = o.Concordant, o.Pairs
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

// text is the ranking for people.
func (r *Ranking) text() []byte {
	var b []byte
	line := func(head, format string, args ...any) {
		b = fmt.Appendf(b, "%-11s "+format+"\n", append([]any{head}, args...)...)
	}
	better := "lower is better"
	if r.Higher {
		better = "higher is better"
	}
	t := &table{}
	t.row("by "+r.By+", "+better, "measured", "simulated", "error %", "")
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
		t.row(stream.Printable(p.Name), number(p.Measured), number(p.Simulated), percent, strings.Join(marks, ", "))
	}
	b = append(t.append(b), '\n')
	line("order", "%d of %d pairs in the order measured; Spearman %s, Kendall %s", r.Ordered, r.Comparable, plain(r.Spearman, millisecond), plain(r.Kendall, millisecond))
	line("gap", "%s on average, %s %%", number(r.Gap), plain(r.GapPercent, millisecond))
	line("regret", "%s, %s %%, for taking what simulates best", number(r.Regret), plain(r.RegretPercent, millisecond))
	for i, w := range r.Warnings {
		if i == 0 {
			b = append(b, "\nwarnings\n"...)
		}
		b = fmt.Appendf(b, "  %s\n", stream.Printable(w))
	}
	return b
}
