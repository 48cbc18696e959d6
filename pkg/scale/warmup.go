package scale

import "blis/pkg/portable"

// Curve is the shape in which a replica becomes warm.
type Curve uint8

// The curves.
const (
	linear Curve = iota
	exponential
	step
)

// Warmup slows the steps of a replica after its start: by Factor at first, and by less and less until DurationUS.
type Warmup struct {
	Curve      Curve
	Factor     float64
	DurationUS int64
}

// exponentialRate is how often an exponential curve falls by e in the duration.
const exponentialRate = 5

// At is the factor of a step that starts ageUS after the replica could take requests: with x as the part of the
// duration that has passed, linear 1 + (f−1)(1−x), exponential 1 + (f−1)·e^(−5x), step f; 1 from x = 1 on.
func (w *Warmup) At(ageUS int64) float64 {
	if ageUS >= w.DurationUS {
		return 1
	}
	x := float64(ageUS) / float64(w.DurationUS)
	switch w.Curve {
	case linear:
		return 1 + float64((w.Factor-1)*(1-x))
	case exponential:
		return 1 + float64((w.Factor-1)*portable.Exp(-exponentialRate*x))
	}
	return w.Factor
}
