package dist

import "math"

// term is scale·t^power·cos(frequency·t + phase), with t from the start of its segment. Lines,
// waves and their products are sums of such terms, and so are their integrals, which need no
// approximation.
type term struct {
	scale            float64
	power            int
	frequency, phase float64
}

// valueAt returns the value of a sum of terms at t.
func valueAt(terms []term, t float64) float64 {
	sum := 0.0
	for _, c := range terms {
		sum += float64(c.scale * math.Pow(t, float64(c.power)) * math.Cos(float64(c.frequency*t)+c.phase))
	}
	return sum
}

// area returns the integral of a sum of terms from 0 to t.
func area(terms []term, t float64) float64 {
	sum := 0.0
	for _, c := range terms {
		sum += float64(c.scale * integral(c.power, c.frequency, c.phase, t))
	}
	return sum
}

// integral returns the integral of s^power·cos(frequency·s + phase) over s from 0 to t, by parts
// for powers above 0. The form for power 0 loses no digits for a small or zero frequency.
func integral(power int, frequency, phase, t float64) float64 {
	switch {
	case power == 0:
		half := float64(frequency * t / 2)
		return t * sinc(half) * math.Cos(half+phase)
	case frequency == 0:
		return math.Pow(t, float64(power+1)) / float64(power+1) * math.Cos(phase)
	}
	rest := integral(power-1, frequency, phase-math.Pi/2, t)
	end := float64(math.Pow(t, float64(power)) * math.Sin(float64(frequency*t)+phase))
	return (end - float64(float64(power)*rest)) / frequency
}

// sinc returns sin(x)/x.
func sinc(x float64) float64 {
	if x == 0 {
		return 1
	}
	return math.Sin(x) / x
}

// product multiplies two sums of terms.
func product(a, b []term) []term {
	var terms []term
	for _, x := range a {
		for _, y := range b {
			scale, power := x.scale*y.scale, x.power+y.power
			switch {
			case scale == 0:
			case x.frequency == 0 && x.phase == 0:
				terms = append(terms, term{scale, power, y.frequency, y.phase})
			case y.frequency == 0 && y.phase == 0:
				terms = append(terms, term{scale, power, x.frequency, x.phase})
			default:
				terms = append(terms, term{scale / 2, power, x.frequency - y.frequency, x.phase - y.phase},
					term{scale / 2, power, x.frequency + y.frequency, x.phase + y.phase})
			}
		}
	}
	return terms
}

// termsFrom returns the curve as terms from start on, up to the next start or end of a line.
func (c *curve) termsFrom(start float64) []term {
	if c.amplitude > 0 {
		frequency := 2 * math.Pi / c.period
		return []term{{scale: 1}, {c.amplitude, 0, frequency, frequency * (math.Mod(start, c.period) - c.peak)}}
	}
	for _, l := range c.lines {
		if l.start <= start && start < l.end {
			if l.startValue == l.endValue {
				return []term{{scale: l.startValue}}
			}
			slope := (l.endValue - l.startValue) / (l.end - l.start)
			return []term{{scale: l.startValue + float64(slope*(start-l.start))}, {scale: slope, power: 1}}
		}
	}
	return []term{{scale: 1}}
}
