package dist

import "math"

// term is scale·t^power·cos(turn·t + phase), t counting from where it begins. A
// sum of such terms is what lines and waves, and products of them, are; and so
// are their integrals, which therefore need no approximation.
type term struct {
	scale            float64
	power            int
	frequency, phase float64
}

// valueAt is the value of a sum of terms at t.
func valueAt(terms []term, t float64) float64 {
	sum := 0.0
	for _, c := range terms {
		sum += c.scale * math.Pow(t, float64(c.power)) * math.Cos(c.frequency*t+c.phase)
	}
	return sum
}

// area is the integral of a sum of terms from 0 to t.
func area(terms []term, t float64) float64 {
	sum := 0.0
	for _, c := range terms {
		sum += c.scale * integral(c.power, c.frequency, c.phase, t)
	}
	return sum
}

// integral is that of s^power·cos(turn·s + phase) over s from 0 to t. Higher
// powers are integrated by parts. The form for power 0 loses no digits where turn
// is small or 0.
func integral(power int, turn, phase, t float64) float64 {
	switch {
	case power == 0:
		half := turn * t / 2
		return t * sinc(half) * math.Cos(half+phase)
	case turn == 0:
		return math.Pow(t, float64(power+1)) / float64(power+1) * math.Cos(phase)
	}
	rest := integral(power-1, turn, phase-math.Pi/2, t)
	return (math.Pow(t, float64(power))*math.Sin(turn*t+phase) - float64(power)*rest) / turn
}

// sinc is sin(x)/x.
func sinc(x float64) float64 {
	if x == 0 {
		return 1
	}
	return math.Sin(x) / x
}

// product multiplies two sums.
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
				terms = append(terms, term{scale / 2, power, x.frequency - y.frequency, x.phase - y.phase}, term{scale / 2, power, x.frequency + y.frequency, x.phase + y.phase})
			}
		}
	}
	return terms
}

// termsFrom is the curve as terms from start on, up to where its next line begins or
// the one there ends.
func (c *curve) termsFrom(start float64) []term {
	if c.amplitude > 0 {
		turn := 2 * math.Pi / c.period
		return []term{{scale: 1}, {c.amplitude, 0, turn, turn * (math.Mod(start, c.period) - c.peak)}}
	}
	for _, l := range c.lines {
		if l.start <= start && start < l.end {
			if l.startValue == l.endValue {
				return []term{{scale: l.startValue}}
			}
			slope := (l.endValue - l.startValue) / (l.end - l.start)
			return []term{{scale: l.startValue + slope*(start-l.start)}, {scale: slope, power: 1}}
		}
	}
	return []term{{scale: 1}}
}
