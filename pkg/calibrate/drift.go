package calibrate

import (
	"fmt"
	"math"
	"slices"
)

// Drift is by how much more the first token of a request takes for each sequence that
// decodes beside it than the model says, in µs, with its interval of the
// level: what alpha[3],
// if it was fitted, leaves. It is of the data fitted to, and widens the bands of other
// loads.
type Drift struct {
	US   float64 `json:"us_a_sequence"`
	Low  float64 `json:"low_us"`
	High float64 `json:"high_us"`
}

// driftOf is what the residuals of TTFT of used requests do over the sequences that
// decoded meanwhile: a line by least squares, without what lies further than three
// robust standard deviations from the median, as stalls do. nil where there is nothing
// to draw it through.
func driftOf(all []played) *Drift {
	var beside, late []float64
	for _, p := range all {
		decoding := p.run.decoding()
		for i, s := range p.run.measured {
			at := float64(p.run.requests[i].ArrivalUS)
			n, d := decoding.mean(at, at+s.ttft)/float64(p.run.replicas), p.late(i)
			if p.run.used[i] && !math.IsNaN(n) && !math.IsNaN(d) {
				beside, late = append(beside, n), append(late, d)
			}
		}
	}
	return slopeOf(beside, late)
}

// slopeOf draws the line.
func slopeOf(x, y []float64) *Drift {
	if len(x) < 50 {
		return nil
	}
	sorted := slices.Sorted(slices.Values(y))
	middle := sorted[len(sorted)/2]
	away := make([]float64, len(y))
	for i, v := range y {
		away[i] = v - middle
	}
	most := 3 * deviation(away)
	var n, sx, sy, sxx, sxy, syy float64
	for i, v := range away {
		if math.Abs(v) <= most {
			n, sx, sy = n+1, sx+x[i], sy+v
			sxx, sxy, syy = sxx+x[i]*x[i], sxy+x[i]*v, syy+v*v
		}
	}
	sxx, sxy, syy = sxx-sx*sx/n, sxy-sx*sy/n, syy-sy*sy/n
	if !(sxx > 1e-6*n) {
		return nil
	}
	slope := sxy / sxx
	half := ofLevel * math.Sqrt(max(0, syy-slope*sxy)/(n-2)/sxx)
	return &Drift{slope, slope - half, slope + half}
}

// over is between what a first token comes later at so many sequences more than those
// fitted to, in ms; 0 is always between.
func (d *Drift) over(sequences float64) (low, high float64) {
	a, b := d.Low*sequences/1e3, d.High*sequences/1e3
	return min(0, a, b), max(0, a, b)
}

func (d *Drift) String() string {
	us, low, high, when := d.US, d.Low, d.High, "later"
	if us < 0 {
		us, low, high, when = -us, -high, -low, "sooner"
	}
	return fmt.Sprintf("first tokens come %.4g us %s (%.4g to %.4g at %g %%) for each sequence that decodes than the model says", us, when, low, high, levelPercent)
}
