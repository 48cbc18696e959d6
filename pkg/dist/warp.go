package dist

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Warp maps the time of a constant load to that of a load with profiles: time us maps to the time t
// at which the integral of the product of the profiles from 0 reaches us. The rate of a mapped
// process is multiplied by the profiles, and its kind is preserved: a Poisson process remains one,
// and gamma gaps stay as bursty as they are.
//
// Calls of Time must not go back in time.
type Warp struct {
	segments []segment
	// current is the index of the segment reached, areaBefore the area before it, and lastOffset the
	// offset in it of the last result.
	current                int
	areaBefore, lastOffset float64
}

// segment is an interval in which one sum of terms applies.
type segment struct {
	start, length float64 // the last one is infinite
	rate          []term
	area          float64
}

// NewWarp checks the profiles, each of which may be nil, and returns their product. An error is a
// *ParamError of the first invalid one.
func NewWarp(profiles ...*Profile) (*Warp, error) {
	var curves []curve
	cuts := []float64{0}
	for _, p := range profiles {
		if p == nil {
			continue
		}
		c, err := p.curve()
		if err != nil {
			return nil, err
		}
		for _, l := range c.lines {
			cuts = append(cuts, l.start, l.end)
		}
		curves = append(curves, c)
	}
	slices.Sort(cuts)
	cuts = slices.Compact(cuts)
	if last := len(cuts) - 1; math.IsInf(cuts[last], 1) {
		cuts = cuts[:last]
	}
	w := &Warp{}
	for i, start := range cuts {
		p := segment{start: start, length: math.Inf(1), rate: []term{{scale: 1}}}
		for _, c := range curves {
			p.rate = product(p.rate, c.termsFrom(start))
		}
		if i+1 < len(cuts) {
			p.length = cuts[i+1] - start
			p.area = area(p.rate, p.length)
		} else if len(p.rate) > 0 { // after the last line the mean is constant, and above 0
			p.area = math.Inf(1)
		}
		w.segments = append(w.segments, p)
	}
	return w, nil
}

// Time returns when the area under the profiles reaches us; both are in µs. It returns +Inf if it
// never does.
func (w *Warp) Time(us float64) float64 {
	for ; w.current < len(w.segments); w.current++ {
		p := &w.segments[w.current]
		if rest := us - w.areaBefore; rest <= p.area {
			w.lastOffset = p.offsetOf(rest, w.lastOffset)
			return p.start + w.lastOffset
		}
		w.areaBefore += p.area
		w.lastOffset = 0
	}
	return math.Inf(1)
}

// Warped returns the arrivals of t in the time of w. It takes over both.
func (t Times) Warped(w *Warp) Times {
	return func(r *rand.Rand) float64 { return w.Time(t(r)) }
}

// offsetOf returns the offset in the segment at which the area from its start is want, at least
// low.
func (p *segment) offsetOf(want, low float64) float64 {
	if want <= 0 { // no arrivals in the segment
		return low
	}
	if level, slope, ok := p.linear(); ok {
		return min(max(2*want/(level+math.Sqrt(max(float64(level*level)+float64(2*slope*want), 0))), low), p.length)
	}
	high := p.length
	if math.IsInf(high, 1) {
		for high = max(2*low, 1e6); area(p.rate, high) < want; high *= 2 {
		}
	}
	return p.solve(want, low, high)
}

// linear reports whether the rate is a line, and returns its value at the start and its slope.
func (p *segment) linear() (level, slope float64, ok bool) {
	for _, t := range p.rate {
		switch {
		case t.frequency != 0 || t.power > 1:
			return 0, 0, false
		case t.power == 1:
			slope += t.scale
		default:
			level += t.scale
		}
	}
	return level, slope, true
}

// solve finds the offset between low and high at which the area is want, with Newton's method, and
// bisection where that leaves the bracket, to 0.001 µs or the precision of float64.
func (p *segment) solve(want, low, high float64) float64 {
	t := low
	for high-low > 1e-3 {
		miss := want - area(p.rate, t)
		if miss > 0 {
			low = t
		} else {
			high = t
		}
		next := t + miss/valueAt(p.rate, t)
		if math.Abs(next-t) < 1e-4 && next >= low && next <= high {
			return next
		}
		if !(next > low && next < high) {
			next = low + float64((high-low)/2)
		}
		if next <= low || next >= high {
			break
		}
		t = next
	}
	return t
}
