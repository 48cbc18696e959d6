// Package portable has the exponential function, the logarithm and powers with the same bits on every processor.
//
// Those of package math differ in the last digit between processors: some are written in assembly for one of them
// only, and in the others the compiler may fuse a product into a sum, which rounds once instead of twice. Here each
// product that is added to something is rounded first, and where a fused product is wanted, it is math.FMA, which is
// exact everywhere.
//
// All are within 1 unit in the last place.
package portable

import "math"

// The natural logarithm of 2: ln2High has 32 bits, so that its product with an exponent is exact.
const (
	ln2     = 0.693147180559945309417232121458176568075500134360255254120680009
	ln2High = 0x1.62e42feep-1
	ln2Low  = ln2 - ln2High
)

// The limits of Exp: above, the result is infinite, below it is 0.
const (
	expMax = 709.782712893384
	expMin = -745.1332191019412
)

// Exp returns e to the power of x, 0 where that is too small and +Inf where it is too large for a float64.
func Exp(x float64) float64 { return exp(x, 0) }

// exp returns e to the power of high + low, where low is at most a unit in the last place of high.
func exp(high, low float64) float64 {
	switch {
	case math.IsNaN(high) || high > math.MaxFloat64:
		return high
	case high > expMax:
		return math.Inf(1)
	case high < expMin:
		return 0
	}
	n := math.Floor(float64(high*(1/ln2)) + 0.5)
	high -= float64(n * ln2High) // exact
	low -= float64(n * ln2Low)
	r := high + low
	low += high - r
	// e^r = 1 + r + r²/2! + … + r^13/13!
	sum := 0.0
	for i := len(reciprocalFactorials) - 1; i >= 0; i-- {
		sum = reciprocalFactorials[i] + float64(r*sum)
	}
	y := 1 + (r + (low + float64(float64(r*r)*sum)))
	if n < -1021 || n > 1023 {
		return math.Ldexp(y, int(n))
	}
	return y * math.Float64frombits(uint64(int64(n)+1023)<<52)
}

// reciprocalFactorials are 1/2!, 1/3!, … 1/13!.
var reciprocalFactorials = [...]float64{1. / 2, 1. / 6, 1. / 24, 1. / 120, 1. / 720, 1. / 5040, 1. / 40320, 1. / 362880,
	1. / 3628800, 1. / 39916800, 1. / 479001600, 1. / 6227020800}

// Log returns the natural logarithm of x, NaN for numbers below 0 and -Inf for 0.
func Log(x float64) float64 {
	switch {
	case math.IsNaN(x) || x > math.MaxFloat64:
		return x
	case x < 0:
		return math.NaN()
	case x == 0:
		return math.Inf(-1)
	}
	return log(x, 0)
}

// log returns the natural logarithm of x·(1 + small), for finite x > 0.
func log(x, small float64) float64 {
	f, e := split(x)
	// With s = f/(2 + f), ln(1 + f) = 2s + 2s³/3 + 2s⁵/5 + …, and 2s = f − s·f.
	s := f / (2 + f)
	z, tail := s*s, 0.0
	for i := len(oddReciprocals) - 1; i >= 0; i-- {
		tail = float64(z * (oddReciprocals[i] + tail))
	}
	square := float64(float64(0.5*f) * f)
	small += float64(s*(square+tail)) + float64(e*ln2Low)
	return float64(e*ln2High) - ((square - small) - f)
}

// oddReciprocals are 2/3, 2/5, … 2/25.
var oddReciprocals = [...]float64{2. / 3, 2. / 5, 2. / 7, 2. / 9, 2. / 11, 2. / 13, 2. / 15, 2. / 17, 2. / 19, 2. / 21,
	2. / 23, 2. / 25}

// split returns f and e with x = (1 + f)·2^e and 1 + f between √½ and √2.
func split(x float64) (f, e float64) {
	m, n := math.Frexp(x)
	if m < math.Sqrt2/2 {
		m, n = 2*m, n-1
	}
	return m - 1, float64(n)
}

// Log1p returns the natural logarithm of 1 + x, exact also where x is small.
func Log1p(x float64) float64 {
	if math.Abs(x) < 0x1p-54 || x > math.MaxFloat64 || math.IsNaN(x) {
		return x
	}
	u := 1 + x
	if u <= 0 || x > 0x1p54 {
		return Log(u)
	}
	return log(u, (x-(u-1))/u)
}

// Pow returns x to the power of y, with the special cases of math.Pow.
func Pow(x, y float64) float64 {
	switch {
	case y == 0 || x == 1:
		return 1
	case y == 1:
		return x
	case math.IsNaN(x) || math.IsNaN(y) || math.IsInf(x, 0) || math.IsInf(y, 0) || x == 0:
		return math.Pow(x, y) // all of these are exact
	case x < 0 && y != math.Trunc(y):
		return math.NaN()
	}
	result := positivePow(math.Abs(x), y)
	if x < 0 && math.Mod(y, 2) != 0 {
		return -result
	}
	return result
}

// positivePow is e^(y·ln x) for finite x > 0 and y, with a logarithm of twice the usual digits.
func positivePow(x, y float64) float64 {
	f, e := split(x)
	// s = f/(2 + f), and ln(1 + f) = 2s(1 + s²/3 + s⁴/5 + …)
	below := sum(2, f)
	s := double{high: f / below.high}
	back := product(s.high, below.high)
	s.low = ((f - back.high) - back.low - float64(s.high*below.low)) / below.high
	z, tail := s.times(s), 0.0
	for i := len(oddReciprocals) - 1; i >= 3; i-- { // these add less than 2⁻¹⁸
		tail = float64(oddReciprocals[i]/2) + float64(z.high*tail)
	}
	series := double{high: tail}
	for _, n := range [...]float64{7, 5, 3, 1} {
		one := product(1/n, n)
		series = double{1 / n, ((1 - one.high) - one.low) / n}.plus(z.times(series))
	}
	whole := product(e, ln2High).plus(product(e, ln2Low)).plus(product(e, ln2Lowest))
	ln := whole.plus(s.times(series).times(double{high: 2}))
	power := ln.times(double{high: y})
	if math.Abs(power.high) > 1000 || math.IsNaN(power.high) { // of a product beyond the range of float64, too
		return exp(math.Copysign(1000, float64(ln.high)*math.Copysign(1, y)), 0)
	}
	return exp(power.high, power.low)
}

// ln2Lowest is what ln2High and ln2Low, as a float64, lack of the logarithm of 2.
const ln2Lowest = ln2 - ln2High - 0x1.a39ef35793c76p-33
