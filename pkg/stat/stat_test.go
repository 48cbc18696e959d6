package stat

import (
	"cmp"
	"math"
	"math/big"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// slowQuantile is the definition in rational numbers: it sorts the samples and
// interpolates linearly at position p·(n−1).
func slowQuantile(samples []*big.Rat, percent, unit int64) *big.Rat {
	s := slices.Clone(samples)
	slices.SortFunc(s, func(a, b *big.Rat) int { return a.Cmp(b) })
	place := new(big.Rat).Mul(big.NewRat(percent, 100), big.NewRat(int64(len(s)-1), 1))
	lo := int(new(big.Int).Div(place.Num(), place.Denom()).Int64())
	hi := min(lo+1, len(s)-1)
	hundredths := new(big.Rat).Sub(place, big.NewRat(int64(lo), 1))
	rise := new(big.Rat).Sub(s[hi], s[lo])
	q := new(big.Rat).Add(s[lo], rise.Mul(rise, hundredths))
	return q.Quo(q, big.NewRat(unit, 1))
}

func rats(values []int64) []*big.Rat {
	r := make([]*big.Rat, len(values))
	for i, v := range values {
		r[i] = big.NewRat(v, 1)
	}
	return r
}

func TestQuantileByHand(t *testing.T) {
	// numpy.percentile([15, 20, 35, 40, 50], p): 0.4·4 = 1.6 of the way, 20 + 0.6·15.
	s := []int64{15, 20, 35, 40, 50}
	for _, c := range []struct {
		percent int64
		want    float64
	}{{0, 15}, {40, 29}, {50, 35}, {75, 40}, {90, 46}, {100, 50}} {
		if got := Quantile(s, c.percent, 1); got != c.want {
			t.Errorf("p%d = %v, want %v", c.percent, got, c.want)
		}
	}
	if got := Quantile([]int64{123456, 123457}, 50, 1000); got != 123.4565 {
		t.Errorf("half way between 123456 and 123457 µs = %v ms", got)
	}
	if got := QuantileFloat([]float64{1.5}, 99); got != 1.5 {
		t.Errorf("p99 of one sample = %v", got)
	}
}

func TestQuantileIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		samples := rapid.SliceOfN(rapid.Int64Range(0, 1<<45), 1, 200).Draw(t, "samples")
		percent := rapid.Int64Range(0, 100).Draw(t, "percent")
		unit := rapid.SampledFrom([]int64{1, 1000}).Draw(t, "unit")
		want, _ := slowQuantile(rats(samples), percent, unit).Float64()
		slices.Sort(samples)
		if got := Quantile(samples, percent, unit); got != want {
			t.Fatalf("p%d = %v, exactly rounded %v", percent, got, want)
		}
	})
}

func TestQuantileFloat(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		samples := rapid.SliceOfN(rapid.Float64Range(0, 1e9), 1, 200).Draw(t, "samples")
		percent := rapid.Int64Range(0, 100).Draw(t, "percent")
		r := make([]*big.Rat, len(samples))
		for i, v := range samples {
			r[i] = new(big.Rat).SetFloat64(v)
		}
		want, _ := slowQuantile(r, percent, 1).Float64()
		slices.Sort(samples)
		got := QuantileFloat(samples, percent)
		// A difference, a product, a quotient, a sum and want are rounded, each by at most 2^-53.
		if math.Abs(got-want) > 0x5p-53*samples[len(samples)-1] {
			t.Fatalf("p%d = %v, want %v", percent, got, want)
		}
		if got < samples[0] || got > samples[len(samples)-1] {
			t.Fatalf("p%d = %v leaves the samples", percent, got)
		}
		if percent > 0 && QuantileFloat(samples, percent-1) > got {
			t.Fatalf("p%d is above p%d", percent-1, percent)
		}
	})
}

// A histogram has the quantiles of the full list of values, below and above the limit
// between array and map.
func TestHistogramMatchesExpandedValues(t *testing.T) {
	value := rapid.OneOf(rapid.Int64Range(0, 3000), rapid.Int64Range(denseLimit-3, denseLimit+3),
		rapid.Int64Range(0, 1<<40))
	rapid.Check(t, func(t *rapid.T) {
		var h Histogram
		var all []int64
		sum := int64(0)
		for range rapid.IntRange(1, 40).Draw(t, "adds") {
			v, n := value.Draw(t, "value"), rapid.Int64Range(0, 9).Draw(t, "n")
			h.Add(v, n)
			sum += v * n
			for range n {
				all = append(all, v)
			}
		}
		if h.N() != int64(len(all)) || h.Sum() != sum {
			t.Fatalf("N = %d, Sum = %d, want %d, %d", h.N(), h.Sum(), len(all), sum)
		}
		sorted := h.Sorted()
		if len(all) == 0 {
			if len(sorted) != 0 {
				t.Fatalf("an empty histogram has %v", sorted)
			}
			return
		}
		slices.Sort(all)
		for percent := range int64(101) {
			if got, want := sorted.Quantile(percent, 1000), Quantile(all, percent, 1000); got != want {
				t.Fatalf("p%d = %v, want %v", percent, got, want)
			}
		}
		if sorted.Max() != all[len(all)-1] {
			t.Fatalf("Max = %d", sorted.Max())
		}
	})
}

func TestHistogramAddDoesNotAllocate(t *testing.T) {
	var h Histogram
	h.Add(12_000, 1)
	h.Add(denseLimit+1, 1)
	if n := testing.AllocsPerRun(1000, func() { h.Add(11_999, 7); h.Add(denseLimit+1, 1) }); n != 0 {
		t.Errorf("Add allocates %v times", n)
	}
}

func TestSortKeyed(t *testing.T) {
	key := rapid.OneOf(rapid.Uint64(), rapid.Uint64Range(0, 300), rapid.Map(rapid.Float64Min(0), math.Float64bits))
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.SliceOfN(key, 0, 300).Draw(t, "keys")
		samples := make([]Keyed, len(keys))
		for i, k := range keys {
			samples[i] = Keyed{k, uint32(i)}
		}
		want := slices.Clone(samples)
		slices.SortStableFunc(want, func(a, b Keyed) int { return cmp.Compare(a.Key, b.Key) })
		if got := SortKeyed(samples, make([]Keyed, len(samples))); !slices.Equal(got, want) {
			t.Fatalf("sorted %v, want %v", got, want)
		}
	})
}

func TestMean(t *testing.T) {
	if got := Mean([]float64{1, 2, 6}); got != 3 {
		t.Errorf("Mean = %v", got)
	}
}

func TestJain(t *testing.T) {
	for _, c := range []struct {
		shares []float64
		want   float64
		ok     bool
	}{
		{[]float64{1, 1, 1, 1}, 1, true},
		{[]float64{0.5, 0, 0, 0}, 0.25, true},
		{[]float64{1, 0.5}, 0.9, true}, // 1.5² / (2 · 1.25)
		{[]float64{0, 0}, 0, false},
		{nil, 0, false},
	} {
		if got, ok := Jain(c.shares); got != c.want || ok != c.ok {
			t.Errorf("Jain(%v) = %v, %v, want %v, %v", c.shares, got, ok, c.want, c.ok)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		shares := rapid.SliceOfN(rapid.Float64Range(0.01, 1), 1, 50).Draw(t, "shares")
		got, ok := Jain(shares)
		if !ok || got < 1/float64(len(shares))-1e-12 || got > 1+1e-12 {
			t.Fatalf("Jain(%v) = %v, %v", shares, got, ok)
		}
	})
}

func BenchmarkSortKeyed(b *testing.B) {
	const n = 1_000_000
	samples, scratch := make([]Keyed, n), make([]Keyed, n)
	for b.Loop() {
		x := uint64(1)
		for i := range samples {
			x = x*6364136223846793005 + 1442695040888963407
			samples[i] = Keyed{x >> 34, uint32(i)}
		}
		SortKeyed(samples, scratch)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/sample")
}

// TestTQuantile: quantiles of Student's t distribution at 97.5 %, from its usual tables.
func TestTQuantile(t *testing.T) {
	for v, want := range map[float64]float64{5: 2.5706, 10: 2.2281, 30: 2.0423, 100: 1.9840} {
		if got := tQuantile(v, z975); math.Abs(got-want) > 3e-3 {
			t.Errorf("%g degrees of freedom: %.4f, want %.4f", v, got, want)
		}
	}
}

// TestTQuantileByHand: the terms of the expansion. z = 1, v = 1: 1 + 2/4 + 24/96 + 24/384. z = 2, v = 1/2: 2 + 10/2 +
// 294/24 + 1098/48.
func TestTQuantileByHand(t *testing.T) {
	for _, c := range []struct{ v, z, want float64 }{{1, 1, 1.8125}, {0.5, 2, 42.125}} {
		if got := tQuantile(c.v, c.z); got != c.want {
			t.Errorf("%g degrees of freedom at %g: %v, want %v", c.v, c.z, got, c.want)
		}
	}
}

// TestHistogramGrows: to values at the ends of its array, and just beyond.
func TestHistogramGrows(t *testing.T) {
	for _, v := range []int64{0, 1023, 1024, 2047, 2048, denseLimit - 1, denseLimit} {
		var h Histogram
		h.Add(v, 3)
		if s := h.Sorted(); h.Sum() != 3*v || len(s) != 1 || s.Max() != v {
			t.Errorf("%d three times: %v, sum %d", v, s, h.Sum())
		}
	}
}

// TestQuantileAmong: of five values, p50 is the third and p60 lies between the third and the fourth.
func TestQuantileAmong(t *testing.T) {
	for _, c := range []struct {
		percent, known int64
		want           float64
		ok             bool
	}{{50, 3, 20, true}, {50, 2, 0, false}, {60, 4, 24, true}, {60, 3, 0, false}, {100, 5, 40, true}, {0, 1, 0, true}} {
		x, ok := QuantileAmong(5, c.percent, c.known, func(i int64) float64 { return float64(10 * i) })
		if x != c.want || ok != c.ok {
			t.Errorf("%+v: %v, %v", c, x, ok)
		}
	}
}
