package portable

import "math"

// double is a number of about 106 bits: a float64 and what it lacks.
type double struct{ high, low float64 }

// sum is a + b, exactly.
func sum(a, b float64) double {
	s := a + b
	t := s - a
	return double{s, (a - (s - t)) + (b - t)}
}

// product is a·b, exactly.
func product(a, b float64) double {
	p := float64(a * b)
	return double{p, math.FMA(a, b, -p)}
}

func (a double) plus(b double) double {
	s := sum(a.high, b.high)
	return sum(s.high, s.low+(a.low+b.low))
}

func (a double) times(b double) double {
	p := product(a.high, b.high)
	return sum(p.high, p.low+(float64(a.high*b.low)+float64(a.low*b.high)))
}
