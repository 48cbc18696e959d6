package portable

import (
	"encoding/binary"
	"hash/fnv"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

const precision = 300

func number(x float64) *big.Float { return new(big.Float).SetPrec(precision).SetFloat64(x) }

// bigExp is the sum of xⁿ/n! of x/2^60, squared 60 times.
func bigExp(x *big.Float) *big.Float {
	small := new(big.Float).SetMantExp(x, -60)
	sum, term := number(1), number(1)
	for n := 1.; n < 12; n++ {
		term.Mul(term, small).Quo(term, number(n))
		sum.Add(sum, term)
	}
	for range 60 {
		sum.Mul(sum, sum)
	}
	return sum
}

// bigLog finds the logarithm by Newton's method.
func bigLog(x *big.Float) *big.Float {
	f, _ := x.Float64()
	y := number(math.Log(f))
	for range 4 {
		e := bigExp(y)
		delta := new(big.Float).Sub(x, e)
		y.Add(y, delta.Quo(delta, e))
	}
	return y
}

// ulps is the distance of got from the true value in units of got's last place.
func ulps(got float64, want *big.Float) float64 {
	distance := new(big.Float).Sub(number(got), want)
	distance.Quo(distance, number(math.Nextafter(math.Abs(got), math.Inf(1))-math.Abs(got)))
	f, _ := distance.Float64()
	return math.Abs(f)
}

func TestAccuracy(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	worst := map[string]float64{}
	check := func(name string, got float64, want *big.Float, args ...float64) {
		t.Helper()
		worst[name] = max(worst[name], ulps(got, want))
		if ulps(got, want) > 1 {
			t.Fatalf("%s%v = %v is %.3f units in the last place from %v", name, args, got, ulps(got, want), want)
		}
	}
	for i := range 3000 {
		x := (r.Float64() - 0.5) * []float64{1e-9, 1e-3, 1, 10, 1400}[i%5]
		check("exp", Exp(x), bigExp(number(x)), x)
		a := math.Ldexp(1+r.Float64(), r.IntN(2000)-1000)
		if i%3 == 0 {
			a = 1 + (r.Float64()-0.5)*[]float64{1e-9, 1e-3, 1}[i%9/3]
		}
		if a != 1 {
			check("log", Log(a), bigLog(number(a)), a)
		}
		p := (r.Float64() - 0.1) * []float64{1e-12, 1e-3, 1, 1e6}[i%4]
		if p > -1 && p != 0 {
			check("log1p", Log1p(p), bigLog(number(0).Add(number(1), number(p))), p)
		}
		y := (r.Float64() - 0.5) * 2 * min(700/math.Abs(math.Log(a)), 1e9)
		if a != 1 && y != 0 {
			check("pow", Pow(a, y), bigExp(number(0).Mul(number(y), bigLog(number(a)))), a, y)
		}
	}
	t.Log(worst)
}

func TestExactPowers(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range [][3]float64{
		{2, 10, 1024}, {10, 2, 100}, {10, 15, 1e15}, {3, 20, 3486784401}, {0.5, 2, 0.25}, {2, -1074, 5e-324},
		{-2, 3, -8}, {-2, 2, 4}, {9, 0.5, 3}, {1.5, 4, 5.0625}, {1e-300, 2, 0}, {1e300, -2, 0}, {2, 1024, inf},
		{-2, 1025, -inf}, {0.5, -1024, inf}, {2, 1e300, inf}, {0.5, 1e308, 0}, {1 + 0x1p-52, 1e-300, 1},
	} {
		if got := Pow(c[0], c[1]); got != c[2] {
			t.Errorf("Pow(%v, %v) = %v, not %v", c[0], c[1], got, c[2])
		}
	}
}

func TestSpecialCases(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	values := []float64{nan, inf, -inf, 0, math.Copysign(0, -1), 1, -1, 2, -2, 3, 0.5, -0.5, 800, -800, 5e-324, -5e-324,
		math.MaxFloat64}
	same := func(name string, got, want float64, args ...float64) {
		if got != want && !(math.IsNaN(got) && math.IsNaN(want)) && math.Abs(got-want) > 4e-16*math.Abs(want) ||
			math.Signbit(got) != math.Signbit(want) && !math.IsNaN(want) {
			t.Errorf("%s%v = %v, but that of package math is %v", name, args, got, want)
		}
	}
	for _, x := range values {
		same("exp", Exp(x), math.Exp(x), x)
		if x != 5e-324 { // math.Log is wrong there on amd64
			same("log", Log(x), math.Log(x), x)
		}
		same("log1p", Log1p(x), math.Log1p(x), x)
		for _, y := range values {
			same("pow", Pow(x, y), math.Pow(x, y), x, y)
		}
	}
}

// The bits of many results are those that they were on amd64 and, under emulation, on arm64.
func TestBits(t *testing.T) {
	h := fnv.New64a()
	r := rand.New(rand.NewPCG(3, 4))
	for range 100_000 {
		x := math.Ldexp(r.Float64(), r.IntN(20)-10)
		for _, y := range []float64{Exp(x), Exp(-x), Log(x), Log1p(x), Pow(x, float64(40*r.Float64())-20)} {
			b := math.Float64bits(y)
			h.Write(binary.LittleEndian.AppendUint64(nil, b))
		}
	}
	if got, want := h.Sum64(), uint64(0x61c239bab980b908); got != want {
		t.Errorf("the results have the hash %#x, not %#x", got, want)
	}
}

func BenchmarkExp(b *testing.B) {
	sum := 0.0
	for i := range b.N {
		sum += Exp(float64(i&1023) * 0.01)
	}
	_ = sum
}

func BenchmarkPow(b *testing.B) {
	sum := 0.0
	for i := range b.N {
		sum += Pow(float64(i&1023), 0.7)
	}
	_ = sum
}
