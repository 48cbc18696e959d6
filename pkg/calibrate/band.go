package calibrate

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// bandAtCap is by what part step times are shorter and longer at the ends of a band
// where a cap on sequences binds: as well as a fit knows them inside its range.
const bandAtCap = 0.01

// doubts are why all step times of a simulation may be wrong, each by a part of
// them: one standard deviation times that of the level.
type doubts struct {
	part  []float64
	whose []string
	// early and late are what first tokens, and with them all, may come sooner (below
	// 0) and later than the model says, in ms.
	early, late float64
}

func (d *doubts) add(part float64, whose string) {
	if part > 0 {
		d.part, d.whose = append(d.part, part), append(d.whose, whose)
	}
}

// total is what independent doubts come to.
func (d *doubts) total() float64 {
	squares := 0.0
	for _, p := range d.part {
		squares += p * p
	}
	return math.Sqrt(squares)
}

func (d *doubts) String() string { return strings.Join(d.whose, "; ") }

// doubts of step times at a load: those of the slope, where the load is not one of
// those that were fitted to, for all that lies between is a slope times a distance.
func (r *Report) doubts(l load) (d doubts, err error) {
	f := &r.fit
	if f.method == "" { // a check
		return d, nil
	}
	part, err := r.hostDoubt(l)
	if err != nil {
		return d, err
	}
	if part > 0 {
		d.add(part, fmt.Sprintf("the host's time is a prior, of %g to %g us a step", r.Host.Low, r.Host.High))
	}
	if f.table != nil || l.sequences >= f.load.least && l.sequences <= f.load.most {
		return d, nil
	}
	slope := f.doubts[beta2]
	away := l.sequences - f.load.sequences
	step := f.Beta[0] + l.sequences*(f.Beta[2]+f.Beta[3]*l.context)
	part = math.Abs(away) * (slope.High - slope.Low) / 2 / step
	d.add(part, fmt.Sprintf("%.3g sequences at a time are outside of the %.3g to %.3g fitted to, and beta[2] lies between %.3g and %.3g", l.sequences, f.load.least, f.load.most, slope.Low, slope.High))
	if r.Drift != nil {
		d.early, d.late = r.Drift.over(away)
		d.whose = append(d.whose, r.Drift.String())
	}
	return d, nil
}

// bandOf is from the least to the most of what a metric is simulated to be: with the
// steps fitted, and with shorter and longer ones, widened by early (not above 0) and late
// (not below). What the steps fitted give is always inside: of batches that form
// otherwise, a percentile may be less, or more, with both.
func bandOf(is, shorter, longer, early, late float64) (low, high *float64) {
	a, b := round(min(is, shorter, longer)+early, 5), round(max(is, shorter, longer)+late, 5)
	return &a, &b
}

// extent sorts values and returns the least and the most of the middle 95 %, NaN of
// none.
func extent(values []float64) (least, most float64) {
	if len(values) == 0 {
		return math.NaN(), math.NaN()
	}
	slices.Sort(values)
	n := len(values) - 1
	return values[n/40], values[n-n/40]
}
