package stat

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Quantiles and sums of draws are those of the observations written out as often as
// their blocks were drawn.
func TestDrawsAreWhatTheyWouldBeWrittenOut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 600).Draw(t, "n")
		values := rapid.SliceOfN(rapid.Int64Range(0, 50), n, n).Draw(t, "values")
		length := rapid.IntRange(1, 40).Draw(t, "length")
		missing := rapid.IntRange(0, 3).Draw(t, "missing") // every so-manieth has no value
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		r := NewResampling(len(values), length, 7, random.IntN)
		sums := make([]float64, r.Blocks())
		var samples []Tagged
		for i, v := range values {
			if missing > 0 && i%(missing+1) == 0 {
				continue
			}
			sums[r.Block(i)] += float64(v)
			samples = append(samples, Tagged{math.Float64bits(float64(v)), r.Block(i)})
		}
		percents := []int64{0, 37, 50, 99, 100}
		got := r.Quantiles(SortTagged(samples, make([]Tagged, len(samples))), percents)
		total := r.Sums(sums)
		for d, w := range r.weights {
			var out []float64
			var sum int64
			for i, v := range values {
				if missing > 0 && i%(missing+1) == 0 {
					continue
				}
				for range w[r.Block(i)] {
					out, sum = append(out, float64(v)), sum+v
				}
			}
			slices.Sort(out)
			if total[d] != float64(sum) {
				t.Fatalf("sum of draw %d is %v, want %d", d, total[d], sum)
			}
			for k, p := range percents {
				if len(out) == 0 {
					if !math.IsNaN(got[k][d]) {
						t.Fatalf("p%d of nothing is %v", p, got[k][d])
					}
				} else if want := QuantileFloat(out, p); got[k][d] != want {
					t.Fatalf("p%d of draw %d is %v, want %v of %v", p, d, got[k][d], want, out)
				}
			}
		}
	})
}

// Blocks are contiguous, all there, and differ by at most one in length.
func TestBlocks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 5000).Draw(t, "n")
		r := NewResampling(n, rapid.IntRange(1, 6000).Draw(t, "length"), 1, func(int) int { return 0 })
		has := make([]int, r.Blocks())
		for i := range n {
			has[r.Block(i)]++
			if i > 0 && r.Block(i) < r.Block(i-1) {
				t.Fatal("blocks are not in order")
			}
		}
		if slices.Max(has)-slices.Min(has) > 1 {
			t.Fatalf("blocks have %v", has)
		}
	})
}

// 1000 draws 1, 2, … 1000 of ten blocks: t with 9 degrees of freedom is 2.2622, times
// √(10/9) 2.3845, beyond which the normal distribution has 0.0085508.
func TestIntervalByHand(t *testing.T) {
	var draws []float64
	for i := range 1000 {
		draws = append(draws, float64(1000-i))
	}
	r := NewResampling(100, 10, 1, func(int) int { return 0 })
	lo, hi, ok := r.Interval(draws)
	if !ok || math.Abs(lo-(1+999*0.00855)) > 0.01 || math.Abs(lo+hi-1001) > 1e-9 {
		t.Errorf("%v..%v, %v", lo, hi, ok)
	}
	if p := tail(1_000_000); math.Abs(p-0.025) > 1e-6 {
		t.Errorf("of very many blocks %v", p)
	}
	if x := student(5, z975); math.Abs(x-2.5706) > 0.005 {
		t.Errorf("t of 5 is %v", x)
	}
	for i := range 60 {
		draws[i] = math.NaN()
	}
	if _, _, ok := r.Interval(draws); ok {
		t.Error("an interval, though 6 % of the draws have no value")
	}
	if _, _, ok := NewResampling(9, 9, 1, func(int) int { return 0 }).Interval(draws[60:]); ok {
		t.Error("an interval of one block")
	}
}

// autoregressive is a series with mean 0, variance 1 and correlation phi of
// neighbours.
func autoregressive(n int, phi float64, random *rand.Rand) []float64 {
	x := make([]float64, n)
	x[0] = random.NormFloat64()
	for i := 1; i < n; i++ {
		x[i] = phi*x[i-1] + math.Sqrt(1-phi*phi)*random.NormFloat64()
	}
	return x
}

// Two runs share what their workload does to them, and each adds its own; both are
// correlated over time, and the second is slower by half a standard deviation. Of
// 300 such pairs the intervals of the differences of mean and p90 must hold the
// truth about 95 times of 100; those of blocks that are too short do not.
func TestIntervalsCover(t *testing.T) {
	const n, pairs, shift, phi = 2000, 300, 0.5, 0.9
	random := rand.New(rand.NewPCG(1, 2))
	covered := map[string]int{}
	var unpaired, paired float64 // widths
	for range pairs {
		both, a, b := autoregressive(n, phi, random), autoregressive(n, phi, random), autoregressive(n, phi, random)
		difference := make([]float64, n)
		for i := range both {
			a[i], b[i] = 20+both[i]+a[i]/2, 20+both[i]+b[i]/2+shift
			difference[i] = b[i] - a[i]
		}
		length, enough := BlockLength(difference)
		if !enough {
			t.Fatalf("blocks of %d are not long enough for 2000 requests", length)
		}
		short, blocks, other := NewResampling(n, 4, 400, random.IntN), NewResampling(n, length, 400, random.IntN), NewResampling(n, length, 400, random.IntN)
		for name, draws := range map[string][]float64{
			"mean": minus(means(blocks, b), means(blocks, a)), "p90": minus(p90s(blocks, b), p90s(blocks, a)),
			"mean, blocks of four": minus(means(short, b), means(short, a)),
			"mean, unpaired":       minus(means(other, b), means(blocks, a)),
		} {
			lo, hi, ok := blocks.Interval(draws)
			if ok && lo <= shift && shift <= hi {
				covered[name]++
			}
			switch name {
			case "mean":
				paired += hi - lo
			case "mean, unpaired":
				unpaired += hi - lo
			}
		}
	}
	t.Logf("of %d intervals: %v; those of pairs are %.0f %% as wide as those of none", pairs, covered, 100*paired/unpaired)
	for _, name := range []string{"mean", "p90"} {
		if share := float64(covered[name]) / pairs; share < 0.89 || share > 0.98 {
			t.Errorf("the intervals of %s hold the truth in %.3f of all cases, not in 0.95", name, share)
		}
	}
	if share := float64(covered["mean, blocks of four"]) / pairs; share > 0.8 {
		t.Errorf("intervals of short blocks hold the truth in %.3f of all cases: this does not test blocks", share)
	}
	if paired > 0.6*unpaired {
		t.Errorf("pairs make intervals only %.2f as wide", paired/unpaired)
	}
}

func TestRatios(t *testing.T) {
	got := Ratios([]float64{3, 0, 1, 0}, []float64{2, 4, 0, 0})
	if got[0] != 1.5 || got[1] != 0 || !math.IsNaN(got[2]) || !math.IsNaN(got[3]) {
		t.Errorf("ratios are %v, want 1.5, 0, NaN, NaN", got)
	}
}

func means(r *Resampling, x []float64) []float64 {
	sums, counts := make([]float64, r.Blocks()), make([]float64, r.Blocks())
	for i, v := range x {
		sums[r.Block(i)] += v
		counts[r.Block(i)]++
	}
	return Ratios(r.Sums(sums), r.Sums(counts))
}

func p90s(r *Resampling, x []float64) []float64 {
	samples := make([]Tagged, len(x))
	for i, v := range x {
		samples[i] = Tagged{math.Float64bits(v), r.Block(i)} // all are positive
	}
	return r.Quantiles(SortTagged(samples, make([]Tagged, len(x))), []int64{90})[0]
}

func minus(x, y []float64) []float64 {
	d := slices.Clone(x)
	for i := range d {
		d[i] -= y[i]
	}
	return d
}

// Blocks grow with what neighbours have in common, and with the cube root of the
// series. For the mean of an autoregressive series G/D^(1/2) is known: G is
// 2·phi/(1−phi)², the sum of R (1+phi)/(1−phi).
func TestBlockLength(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	const n = 20_000
	for _, phi := range []float64{0, 0.5, 0.8} {
		got, enough := BlockLength(autoregressive(n, phi, random))
		g, d := 2*phi/((1-phi)*(1-phi)), (1+phi)/(1-phi)
		want := math.Cbrt(g * g / (d * d) * n)
		t.Logf("phi %v: %d, %.1f by the formula", phi, got, want)
		if !enough || float64(got) > 2*want+8 || float64(got) < want/1.5-3 {
			t.Errorf("phi %v: blocks of %d (%v), want about %.1f", phi, got, enough, want)
		}
	}
	var trend []float64
	for i := range 1000 {
		trend = append(trend, float64(i))
	}
	if length, enough := BlockLength(trend); enough || length != 100 {
		t.Errorf("a trend has blocks of %d, %v", length, enough)
	}
	for _, x := range [][]float64{nil, {1}, {2, 2, 2, 2, 2, 2}, {1, 2, 1}} {
		if length, enough := BlockLength(x); length != 1 || !enough {
			t.Errorf("%v has blocks of %d, %v", x, length, enough)
		}
	}
	if length, _ := BlockLength(autoregressive(3*longSeries, 0.5, random)); length > 600 {
		t.Errorf("blocks of %d of a long series", length)
	}
}
